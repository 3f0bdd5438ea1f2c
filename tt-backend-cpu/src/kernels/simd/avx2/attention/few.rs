//! The products of few rows with keys and values as they lie in the cache.
//!
//! In a decode step a key meets only the query heads that share it. To lay it out anew in memory, as
//! [`many`](super::many) does, would cost more than to multiply it. Here keys are transposed on their
//! way through the registers, and what comes next is asked for, a line at a time: a decode step's
//! keys and values are read from memory, and nothing of them twice.

use std::arch::x86_64::*;
use std::ops::Range;

use half::bf16;

use super::super::lanes::{BLOCK, LINE, evens, load, odds, store};
use super::super::pack::{LANES, transpose};
use super::super::tile::{Operand, Rows};
use super::{Cached, PANEL, Seeing, steps};

/// Rows that are few: with more of them, to lay keys and values out anew is faster, or no slower.
const FEW: usize = 32;

/// Panels of keys between the one that is multiplied and the one that is asked for.
const AHEAD: usize = 2;

/// Positions whose values are multiplied one after the other, before their next dims are: as many as
/// stay in the first cache meanwhile.
const STEP: usize = 32;

/// Whether so many rows with such keys or values are for this module.
pub(super) fn takes(rows: usize, cached: Cached<'_>) -> bool {
    rows <= FEW && cached.head_dim.is_multiple_of(BLOCK)
}

/// The scores of some positions, at the beginning of the rows of `to`, up to whole panels.
#[target_feature(enable = "avx2,fma")]
pub(super) fn scores(
    keys: Cached<'_>,
    positions: Range<usize>,
    rows: usize,
    queries: Operand<'_>,
    to: &mut Rows<'_>,
) {
    let Rows(to, stride) = to;
    for panel in steps(positions.clone(), PANEL) {
        for (first, rows) in parts(0..rows) {
            let queries = Operand(&queries.0[first * queries.1..], queries.1);
            let to = Rows(&mut to[first * *stride + panel.start - positions.start..], *stride);
            match rows {
                1 => panel_scores::<1>(keys, panel.clone(), queries, to),
                2 => panel_scores::<2>(keys, panel.clone(), queries, to),
                3 => panel_scores::<3>(keys, panel.clone(), queries, to),
                4 => panel_scores::<4>(keys, panel.clone(), queries, to),
                5 => panel_scores::<5>(keys, panel.clone(), queries, to),
                _ => panel_scores::<6>(keys, panel.clone(), queries, to),
            }
        }
    }
}

/// Parts, of some rows, of at most six, for which there are registers; and the last not much smaller.
fn parts(rows: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
    let most = rows.len().div_ceil(rows.len().div_ceil(6));
    rows.clone().step_by(most).map(move |first| (first, (rows.end - first).min(most)))
}

/// The scores of a panel: sixteen chains a row, over the head's dims.
///
/// # Panics
///
/// If a head's dims are no multiple of 16; if the queries, or the rows of `to`, are shorter than `R` rows of a head's dims, or of a panel.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn panel_scores<const R: usize>(
    keys: Cached<'_>,
    panel: Range<usize>,
    Operand(queries, queries_stride): Operand<'_>,
    Rows(to, stride): Rows<'_>,
) {
    let head_dim = keys.head_dim;
    // What the last panel is filled up with has scores, too, that nobody looks at.
    let keys: [&[bf16]; PANEL] = std::array::from_fn(|r| keys.at((panel.start + r).min(panel.end - 1)));
    assert!(head_dim.is_multiple_of(BLOCK) && queries.len() >= (R - 1) * queries_stride + head_dim);
    let next = keys[0].as_ptr().wrapping_add(AHEAD * PANEL * head_dim);
    let mut sums = [[_mm256_setzero_ps(); 2]; R];
    for first in (0..head_dim).step_by(BLOCK) {
        let mut halves = [[_mm256_setzero_si256(); LANES]; 2];
        for (words, keys) in halves.iter_mut().zip(keys.chunks_exact(LANES)) {
            for (words, key) in words.iter_mut().zip(keys) {
                // SAFETY: a key is `head_dim` values, a multiple of 16 and more than `first`.
                *words = unsafe { _mm256_loadu_si256(key.as_ptr().add(first).cast()) };
            }
            *words = transpose(*words);
        }
        for (pair, (low, high)) in halves[0].into_iter().zip(halves[1]).enumerate() {
            // These sixteen dims of a panel are eight lines, one for each pair of dims.
            _mm_prefetch::<_MM_HINT_T0>(next.wrapping_add(first * PANEL + pair * LINE).cast());
            let keys = [[evens(low), evens(high)], [odds(low), odds(high)]];
            for (k, keys) in keys.into_iter().enumerate() {
                for (r, sums) in sums.iter_mut().enumerate() {
                    let at = r * queries_stride + first + 2 * pair + k;
                    // SAFETY: less than `head_dim` in a row of the queries: the assertion.
                    let query = _mm256_set1_ps(unsafe { *queries.get_unchecked(at) });
                    sums[0] = _mm256_fmadd_ps(query, keys[0], sums[0]);
                    sums[1] = _mm256_fmadd_ps(query, keys[1], sums[1]);
                }
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        let (eights, _) = to[r * stride..].as_chunks_mut::<8>();
        store(&mut eights[0], sums[0]);
        store(&mut eights[1], sums[1]);
    }
}

/// Adds to rows of `sums`, arranged, the values of some positions from `start` on, as weighted in
/// the beginning of the rows of `weights`.
#[target_feature(enable = "avx2,fma")]
pub(super) fn mix(
    values: Cached<'_>,
    start: usize,
    seeing: Seeing,
    Operand(weights, stride): Operand<'_>,
    Rows(sums, width): &mut Rows<'_>,
) {
    for step in steps(start..start + seeing.positions, STEP) {
        for dim in (0..values.head_dim).step_by(BLOCK) {
            for (first, rows) in parts(seeing.rows.clone()) {
                let weights = Operand(&weights[first * stride + step.start - start..], stride);
                let sums = Rows(&mut sums[first * *width + dim..], *width);
                match rows {
                    1 => block_mix::<1>(values, dim, step.clone(), weights, sums),
                    2 => block_mix::<2>(values, dim, step.clone(), weights, sums),
                    3 => block_mix::<3>(values, dim, step.clone(), weights, sums),
                    4 => block_mix::<4>(values, dim, step.clone(), weights, sums),
                    5 => block_mix::<5>(values, dim, step.clone(), weights, sums),
                    _ => block_mix::<6>(values, dim, step.clone(), weights, sums),
                }
            }
        }
    }
}

/// [`mix`] of sixteen dims, from `dim` on.
///
/// # Panics
///
/// If values, weights or sums are shorter than what these positions, dims and rows need.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn block_mix<const R: usize>(
    values: Cached<'_>,
    dim: usize,
    positions: Range<usize>,
    Operand(weights, weights_stride): Operand<'_>,
    Rows(sums, width): Rows<'_>,
) {
    let (count, head_dim) = (positions.len(), values.head_dim);
    let values = &values.values[positions.start * head_dim + dim..];
    assert!(values.len() + head_dim >= count * head_dim + BLOCK);
    assert!(weights.len() >= (R - 1) * weights_stride + count);
    let mut both = [[_mm256_setzero_ps(); 2]; R];
    for (r, both) in both.iter_mut().enumerate() {
        let (eights, _) = sums[r * width..].as_chunks::<8>();
        *both = [load(&eights[0]), load(&eights[1])];
    }
    // This call's part of the next step: as many blocks after those of the dims before.
    let next = values.as_ptr().wrapping_add(STEP * head_dim + dim * (STEP - 1));
    for i in 0..count {
        // SAFETY: the first assertion.
        let value = unsafe { _mm256_loadu_si256(values.as_ptr().add(i * head_dim).cast()) };
        // Two hints a line, which cost less than to count.
        _mm_prefetch::<_MM_HINT_T0>(next.wrapping_add(i * BLOCK).cast());
        let (even, odd) = (evens(value), odds(value));
        for (r, sums) in both.iter_mut().enumerate() {
            // SAFETY: the second assertion.
            let weight = _mm256_set1_ps(unsafe { *weights.get_unchecked(r * weights_stride + i) });
            sums[0] = _mm256_fmadd_ps(weight, even, sums[0]);
            sums[1] = _mm256_fmadd_ps(weight, odd, sums[1]);
        }
    }
    for (r, both) in both.iter().enumerate() {
        let (eights, _) = sums[r * width..].as_chunks_mut::<8>();
        store(&mut eights[0], both[0]);
        store(&mut eights[1], both[1]);
    }
}
