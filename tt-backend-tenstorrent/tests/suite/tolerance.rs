//! How far each op, layer and model may be from the CPU's reference, and why.

use tt_dsl::parity::{self, Metric};

/// A budget for one op.
#[derive(Clone, Copy)]
pub(crate) struct Tolerance {
    /// Of the expected value.
    pub(crate) relative: f32,
    /// Of the rms of all expected values: what sums lose to terms larger than their result.
    pub(crate) of_rms: f32,
}

/// Not a bit of difference.
const EXACT: Tolerance = Tolerance { relative: 0.0, of_rms: 0.0 };

/// One unit in the last place of bf16 where a value lies just above a power of two.
const BF16_ULP: f32 = 1.0 / 128.0;

/// In `fast` numerics: f32, the sums in the reference's order, rounding to nearest even.
pub(crate) fn fast(op: &str) -> Tolerance {
    match op {
        // The reference runs several rows in chunks, the device one row after the other: the same
        // mathematics, f32 roundings apart, which may cross a rounding to bf16.
        "gated_delta, rows" => Tolerance { relative: BF16_ULP, of_rms: 1e-4 },
        "gated_delta, state" => Tolerance { relative: 1e-4, of_rms: 1e-4 },
        // Everything else adds the same products in the same order and takes the same functions of
        // the C library.
        _ => EXACT,
    }
}

/// In `tensix` numerics at HiFi4 with an f32 destination.
pub(crate) fn tensix(op: &str) -> Tolerance {
    match op {
        // Data movement, and f32 of the vector unit that is never packed to bf16.
        "embed" | "last_row" | "gates, log_decay" | "attention, keys" | "conv, state" => EXACT,
        // The unit cuts each group of eight products at the last bit of its largest (3e-4 of the
        // result for random data, measured; single results can lose more to cancellation) and the
        // packer rounds ties away from zero.
        "linear" => Tolerance { relative: BF16_ULP, of_rms: 3e-3 },
        "lm_head" => Tolerance { relative: 1e-3, of_rms: 3e-3 },
        // Two such products and exponentials between: a score of some tens is off by some hundredths,
        // and so, in relation, is its exponential.
        "attention" => Tolerance { relative: BF16_ULP, of_rms: 6e-2 },
        // Four rounded steps whose ties may each go the other way.
        "rope" => Tolerance { relative: 2.0 * BF16_ULP, of_rms: 2.0 * BF16_ULP },
        // Two or three roundings to bf16, one after the other.
        "swiglu" | "sigmoid_gate" | "gated_norm" | "conv" => {
            Tolerance { relative: 3.0 * BF16_ULP, of_rms: 1e-3 }
        }
        "gated_delta, rows" => Tolerance { relative: BF16_ULP, of_rms: 1e-4 },
        "gated_delta, state" => Tolerance { relative: 1e-4, of_rms: 1e-4 },
        // One rounding, whose ties go away from zero.
        _ => Tolerance { relative: BF16_ULP, of_rms: 0.0 },
    }
}

/// Of a layer, and of each op of a model, where `fast` numerics are the reference's bit for bit.
pub(crate) fn bits() -> parity::Tolerance {
    parity::Tolerance::exact()
}

/// Of a layer, and of each op of a model, in `tensix` numerics at HiFi4: the few roundings of
/// bf16 that the default allows hold what the matrix unit cuts (3e-4) and ties that go the other way.
/// One phase drops bits of both factors, 2.7e-2 of a product (measured), and does not pass.
pub(crate) fn layer() -> parity::Tolerance {
    parity::Tolerance::default()
}

/// The relative L2 distance alone, to see at which op LoFi leaves: between the 3e-4 that a
/// product loses with all phases and the 2.7e-2 that it loses with one.
pub(crate) fn one_phase() -> parity::Tolerance {
    parity::Tolerance::finite().with(Metric::RelativeL2, 1e-2)
}

/// The relative L2 distance of the logits of a model with random weights when its prefill runs in
/// chunks on one side and row by row on the other: f32 roundings, which eight layers of bf16 amplify.
pub(crate) const CHUNKED_LOGITS: f32 = 2e-2;

/// The same distance for HiFi4 in `tensix` numerics: what an op loses, amplified by eight layers.
pub(crate) const HIFI4_LOGITS: f32 = 5e-2;

/// The worst of the values by its budget: how often it is exceeded, and where.
pub(crate) fn excess(tolerance: Tolerance, found: &[f32], expected: &[f32]) -> Option<String> {
    assert_eq!(found.len(), expected.len());
    let finite = expected.iter().filter(|v| v.is_finite());
    let square: f32 = finite.clone().map(|v| v * v).sum();
    let rms = (square / finite.count().max(1) as f32).sqrt();
    let within = |found: f32, expected: f32| {
        found == expected
            || (found.is_nan() && expected.is_nan())
            || (found - expected).abs() <= tolerance.relative * expected.abs() + tolerance.of_rms * rms
    };
    let at = found.iter().zip(expected).position(|(f, e)| !within(*f, *e))?;
    let count = found.iter().zip(expected).filter(|(f, e)| !within(**f, **e)).count();
    Some(format!(
        "at {at}: expected {}, found {} ({count} of {} so; rms {rms})",
        expected[at],
        found[at],
        found.len()
    ))
}
