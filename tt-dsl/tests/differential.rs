//! Two closures that agree pass; each way in which they can disagree is told apart.

#![cfg(test)]

use half::bf16;
use tt_dsl::differential::{Difference, Trial, check};
use tt_dsl::parity::{CompareError, Metric, Tolerance};
use tt_dsl::{Bf16, F32, U32, differential, dim};

dim! { Rows = 4; Wide = 48; }

fn drawn(mut t: Trial) -> (Vec<bf16>, Trial) {
    let x = t.extreme::<(Rows, Wide), Bf16>(1.0);
    (x.values().into_owned(), t)
}

/// Doubles what it draws, in one of two outputs by a factor of its own.
fn doubled(t: Trial, factor: f32) -> Trial {
    let (x, t) = drawn(t);
    let double: Vec<f32> = x.iter().map(|x| factor * x.to_f32()).collect();
    t.output_values("x", &x).output_values("double", &double)
}

differential!(what_agrees_passes, |t| doubled(t, 2.0), |t| doubled(t, 2.0), Tolerance::exact());
differential!(small_differences_pass, |t| doubled(t, 2.0), |t| doubled(t, 2.002));
differential!(
    #[should_panic(
        expected = "a_wrong_closure_fails: output `double` at seed 0: rel-l2: expected at most 0.01"
    )]
    a_wrong_closure_fails,
    |t| doubled(t, 2.0),
    |t| doubled(t, 2.1),
);

fn difference(reference: fn(Trial) -> Trial, ours: fn(Trial) -> Trial) -> Difference {
    check(&Tolerance::default(), reference, ours).unwrap_err()
}

#[test]
fn the_output_and_the_figures_are_named() {
    let found = difference(|t| doubled(t, 2.0), |t| doubled(t, 3.0));
    let Difference::Beyond { output, violations, .. } = &found else { panic!("{found}") };
    assert_eq!((*output, violations.0[0].metric), ("double", Metric::RelativeL2));
    assert!(found.to_string().contains("\n    pcc 1.000000  rel-l2 5.00e-1"), "{found}");
}

#[test]
fn inputs_outputs_and_sizes_must_be_the_same() {
    let reference = |t| doubled(t, 2.0);
    let found = difference(reference, |t| doubled(drawn(t).1, 2.0));
    assert_eq!(found, Difference::Inputs(0));
    let found = difference(reference, |t| drawn(t).1.output_values("x", &[1.0f32]));
    assert_eq!(found, Difference::Outputs { reference: vec!["x", "double"], ours: vec!["x"] });
    // Nothing compared is not agreement.
    let found = difference(|t| t, |t| t);
    assert_eq!(found, Difference::Outputs { reference: vec![], ours: vec![] });
    let found = difference(|t| t.output_values("x", &[1u32, 2]), |t| t.output_values("x", &[1u32]));
    assert_eq!(found, Difference::Sizes("x", CompareError::Length { reference: 2, ours: 1 }));
}

/// What a closure can draw, of every dtype.
#[test]
fn inputs_have_the_shape_and_the_spread_that_was_asked_for() {
    let inputs = |mut t: Trial| {
        let (x, y) = (t.normal::<(Rows, Wide), F32>(3.0), t.extreme::<(Rows, Wide), Bf16>(1.0));
        let ids = t.below::<(Rows, Wide)>(10);
        let square: f32 = x.values().iter().map(|x| x * x).sum();
        let deviation = (square / x.values().len() as f32).sqrt();
        assert!((deviation / 3.0 - 1.0).abs() < 0.2, "{deviation}");
        for extreme in [0.0, -3e4, 1e-40] {
            assert!(y.values().contains(&bf16::from_f32(extreme)), "{extreme}");
        }
        let ids: &[<U32 as tt_dsl::Dtype>::Repr] = &ids.values();
        assert!((0..10).all(|id| ids.contains(&id)) && ids.iter().all(|id| *id < 10));
        t.output_values("ids", ids)
    };
    check(&Tolerance::exact(), inputs, inputs).unwrap();
}
