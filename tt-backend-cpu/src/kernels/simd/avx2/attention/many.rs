//! The products of many rows with keys and values that are laid out anew for them, some positions
//! at a time: widened once for all rows, and the keys transposed.

use std::arch::x86_64::*;
use std::ops::Range;

use half::bf16;

use super::super::lanes::{BLOCK, LINE, evens, load_bf16, odds, store};
use super::super::pack::{LANES, interleave};
use super::super::tile::{Operand, Rows, column};
use super::{Cached, PANEL, Seeing, steps};

/// Positions that are packed at a time.
pub(super) const STEP: usize = 64;

/// The room that keys or values of `width` dims need, in whole blocks, when they are packed.
pub(super) fn packed(width: usize) -> usize {
    // The last eight keys are written with room for eight more.
    STEP * width + BLOCK
}

/// The scores of some positions, at the beginning of the rows of `to`, up to whole panels.
#[target_feature(enable = "avx2,fma")]
pub(super) fn scores(
    keys: Cached<'_>,
    positions: Range<usize>,
    rows: usize,
    Operand(queries, width): Operand<'_>,
    Rows(to, stride): &mut Rows<'_>,
    packed: &mut [f32],
) {
    let panel_size = PANEL * width;
    for step in steps(positions.clone(), STEP) {
        for (panel, packed) in steps(step.clone(), PANEL).zip(packed.chunks_mut(panel_size)) {
            fetch(keys.at(panel.start), 2 * panel_size, panel_size);
            for half in [0, LANES] {
                let mut rows: [&[bf16]; LANES] = [&[]; LANES];
                for (row, position) in rows.iter_mut().zip(panel.start + half..panel.end) {
                    *row = keys.at(position);
                }
                interleave(rows, PANEL, &mut packed[half..]);
            }
        }
        for first in (0..rows).step_by(6) {
            let rows = (rows - first).min(6);
            let queries = Operand(&queries[first * width..], width);
            for (panel, keys) in steps(step.clone(), PANEL).zip(packed.chunks(panel_size)) {
                let to = &mut to[first * *stride + panel.start - positions.start..];
                for r in 0..rows {
                    to[r * *stride..][..PANEL].fill(0.0);
                }
                column(rows, Rows(to, *stride), queries, width, Operand(keys, PANEL));
            }
        }
    }
}

/// Packs the values of a step: blocks of 16 dims, arranged, all positions in each.
#[target_feature(enable = "avx2,fma")]
pub(super) fn pack_values(values: Cached<'_>, step: Range<usize>, packed: &mut [f32]) {
    let block_size = step.len() * BLOCK;
    for (i, position) in step.enumerate() {
        let value = values.at(position);
        fetch(value, 16 * values.head_dim, values.head_dim);
        for (block, value) in value.chunks(BLOCK).enumerate() {
            let value = load_bf16(value);
            let (eights, _) = packed[block * block_size + i * BLOCK..].as_chunks_mut::<8>();
            store(&mut eights[0], evens(value));
            store(&mut eights[1], odds(value));
        }
    }
}

/// Adds to rows of `sums`, arranged, the packed values of a step of `length` positions, as weighted
/// in the beginning of the rows of `weights`.
#[target_feature(enable = "avx2,fma")]
pub(super) fn mix(
    packed: &[f32],
    length: usize,
    seeing: Seeing,
    Operand(weights, stride): Operand<'_>,
    Rows(sums, width): &mut Rows<'_>,
) {
    let Seeing { rows, positions } = seeing;
    for first in rows.clone().step_by(6) {
        let weights = Operand(&weights[first * stride..], stride);
        for (dim, values) in (0..*width).step_by(BLOCK).zip(packed.chunks(length * BLOCK)) {
            let sums = Rows(&mut sums[first * *width + dim..], *width);
            column((rows.end - first).min(6), sums, weights, positions, Operand(values, BLOCK));
        }
    }
}

/// Asks for `count` values that lie `ahead` of the first of `from`. They need not exist.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn fetch(from: &[bf16], ahead: usize, count: usize) {
    for value in (0..count).step_by(LINE) {
        _mm_prefetch::<_MM_HINT_T0>(from.as_ptr().wrapping_add(ahead + value).cast());
    }
}
