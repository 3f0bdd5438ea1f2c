//! The greedy choice of a token.

use std::arch::x86_64::*;

use super::super::isa::Avx2;
use super::lanes::load;

/// See [`reference::argmax`](crate::kernels::reference::argmax).
pub(in super::super) fn argmax(_: Avx2, logits: &[f32]) -> usize {
    // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
    let largest = unsafe { largest(logits) };
    // Zeros of either sign are equal here, as they are in the reference.
    logits.iter().position(|&x| x == largest).unwrap_or(0)
}

/// The largest number; minus infinity if there is none.
#[target_feature(enable = "avx2,fma")]
fn largest(logits: &[f32]) -> f32 {
    const REGISTERS: usize = 4;
    let mut best = [_mm256_set1_ps(f32::NEG_INFINITY); REGISTERS];
    let (eights, rest) = logits.as_chunks::<8>();
    let (groups, more) = eights.as_chunks::<REGISTERS>();
    for group in groups {
        for (best, x) in best.iter_mut().zip(group) {
            // Of a NaN and a number this instruction returns its second operand.
            *best = _mm256_max_ps(load(x), *best);
        }
    }
    for x in more {
        best[0] = _mm256_max_ps(load(x), best[0]);
    }
    let mut lanes = [[f32::NEG_INFINITY; 8]; REGISTERS];
    for (lanes, best) in lanes.iter_mut().zip(best) {
        super::lanes::store(lanes, best);
    }
    let lanes = lanes.as_flattened().iter();
    lanes.chain(rest).copied().fold(f32::NEG_INFINITY, f32::max)
}
