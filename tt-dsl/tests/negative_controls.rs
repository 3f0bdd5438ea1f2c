//! Negative controls of the parity figures: errors that a comparator must report (museum 26).
//! Several of them pass a bound on the correlation alone, which is why no tolerance is one.

use proptest::prelude::*;
use tt_dsl::parity::{Comparison, LogitsComparison, Metric, Tolerance};

const ROWS: usize = 256;
const HEADS: usize = 4;
const HEAD_DIM: usize = 16;
const COLUMNS: usize = HEADS * HEAD_DIM;

/// An activation-like tensor, `(ROWS, HEADS x HEAD_DIM)`: no two rows or heads alike.
fn activations() -> Vec<f32> {
    let mut state = 1u32;
    let uniform = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..ROWS * COLUMNS).map(uniform).collect()
}

/// The figures of `wrong`, which the default tolerance must refuse.
#[track_caller]
fn refused(reference: &[f32], wrong: &[f32]) -> Comparison {
    let found = Comparison::of(reference, wrong).expect("equally long");
    assert!(Tolerance::default().check(&found).is_err(), "not refused: {found}");
    found
}

/// Whether the usual bound on the correlation alone would let it pass.
fn passes_pcc_alone(found: &Comparison) -> bool {
    Tolerance::finite().with(Metric::Pcc, 0.99).check(found).is_ok()
}

#[test]
fn times_two() {
    let reference = activations();
    let found = refused(&reference, &reference.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
    assert!(passes_pcc_alone(&found));
}

#[test]
fn an_offset() {
    let reference = activations();
    let found = refused(&reference, &reference.iter().map(|x| x + 0.05).collect::<Vec<_>>());
    assert!(passes_pcc_alone(&found));
}

#[test]
fn one_nan_on_either_side() {
    let reference = activations();
    for bad in [f32::NAN, f32::INFINITY] {
        let mut wrong = reference.clone();
        wrong[777] = bad;
        for found in [refused(&reference, &wrong), refused(&wrong, &reference), refused(&wrong, &wrong)] {
            assert_eq!(found.non_finite, 1);
            assert!(!passes_pcc_alone(&found));
        }
    }
}

#[test]
fn two_heads_swapped() {
    let reference = activations();
    let mut wrong = reference.clone();
    for row in wrong.chunks_exact_mut(COLUMNS) {
        let (first, second) = row.split_at_mut(HEAD_DIM);
        first.swap_with_slice(&mut second[..HEAD_DIM]);
    }
    refused(&reference, &wrong);
}

#[test]
fn two_heads_swapped_in_one_row() {
    let reference = activations();
    let mut wrong = reference.clone();
    let (first, second) = wrong.split_at_mut(HEAD_DIM);
    first.swap_with_slice(&mut second[..HEAD_DIM]);
    assert!(passes_pcc_alone(&refused(&reference, &wrong)));
}

#[test]
fn one_row_shifted() {
    let reference = activations();
    let mut wrong = reference.clone();
    wrong[5 * COLUMNS..6 * COLUMNS].rotate_right(1);
    assert!(passes_pcc_alone(&refused(&reference, &wrong)));
}

#[test]
fn one_element_of_many() {
    let reference = activations();
    let mut wrong = reference.clone();
    wrong[4242] += 0.5;
    let found = refused(&reference, &wrong);
    assert!(passes_pcc_alone(&found));
    assert!(found.relative_l2 < 0.01, "only the peak sees it: {found}");
}

#[test]
fn a_constant() {
    let reference = activations();
    for constant in [0.0, 1.0] {
        let found = refused(&reference, &vec![constant; reference.len()]);
        assert_eq!(found.pcc, None);
        refused(&vec![constant; reference.len()], &reference);
    }
    refused(&[1.0; 64], &[2.0; 64]);
}

#[test]
fn a_scaled_distribution_keeps_its_best_token_but_not_its_divergence() {
    let reference: Vec<f32> = activations().iter().map(|x| 8.0 * x).collect();
    let doubled: Vec<f32> = reference.iter().map(|x| 2.0 * x).collect();
    let found = LogitsComparison::of(&reference, &doubled).unwrap();
    assert!(found.top1 && found.top5 == 1.0);
    assert!(Tolerance::finite().with(Metric::Kl, 0.01).check(&found).is_err());
}

/// bf16 rounding of the same numbers is what a tolerance is there to allow.
#[test]
fn rounding_to_bf16_passes() {
    let reference = activations();
    let rounded: Vec<half::bf16> = reference.iter().map(|&x| half::bf16::from_f32(x)).collect();
    let found = Comparison::of(&reference, &rounded).unwrap();
    assert_eq!(Tolerance::default().check(&found), Ok(()), "{found}");
    assert!(found.max_ulp <= 0.5);
}

proptest! {
    /// Whatever the vectors: a figure is NaN only together with a non-finite count, the distance
    /// is zero only between equal vectors, and swapping the sides keeps the symmetric figures.
    #[test]
    fn figures_never_hide_a_difference(
        pairs in prop::collection::vec((any::<f32>(), any::<f32>()), 1..50),
    ) {
        let (reference, ours): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        let there = Comparison::of(&reference, &ours).unwrap();
        let back = Comparison::of(&ours, &reference).unwrap();
        let finite = reference.iter().chain(&ours).all(|x| x.is_finite());
        prop_assert_eq!(there.max_abs.is_nan(), !finite);
        prop_assert_eq!(there.non_finite == 0, finite);
        prop_assert_eq!(there.is_exact(), finite && reference == ours);
        prop_assert_eq!(there.non_finite, back.non_finite);
        if finite {
            prop_assert_eq!(there.max_abs, back.max_abs);
            prop_assert_eq!(there.max_ulp, back.max_ulp);
        }
    }
}
