//! The gates of the gated delta rule.

use half::bf16;

use super::scalar::{bf, sigmoid, softplus};
use crate::kernels::dims::check;

/// `beta = bf(sigmoid(b))` and `g = -exp(A_log) softplus(a + dt_bias)`, the latter in f32 and
/// not rounded; the decay of a step is `exp(g)`. Reference 3, "Gated DeltaNet", step 2.
///
/// - `a`, `b`: `T × Hv`
/// - `a_log`, `dt_bias`: `Hv`
/// - `beta`, `g`: `T × Hv`
///
/// # Panics
///
/// If a length disagrees.
pub fn gdn_gates(a: &[bf16], b: &[bf16], a_log: &[f32], dt_bias: &[bf16], beta: &mut [bf16], g: &mut [f32]) {
    check("gdn_gates dt_bias", dt_bias.len(), a_log.len());
    check("gdn_gates b", b.len(), a.len());
    check("gdn_gates beta", beta.len(), a.len());
    check("gdn_gates g", g.len(), a.len());
    for (y, b) in beta.iter_mut().zip(b) {
        *y = bf(sigmoid(b.to_f32()));
    }
    let heads = a_log.len();
    if heads == 0 {
        return check("gdn_gates a", a.len(), 0);
    }
    assert!(a.len().is_multiple_of(heads), "gdn_gates a: whole rows");
    for (i, (g, a)) in g.iter_mut().zip(a).enumerate() {
        let head = i % heads;
        *g = -a_log[head].exp() * softplus(a.to_f32() + dt_bias[head].to_f32());
    }
}
