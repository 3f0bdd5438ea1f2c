//! Causal attention with a cache: two products, and a softmax between them.
//!
//! The query heads that share a key head are rows of one product with its keys. A *block* is the
//! query heads of one key head in some rows of the input; a *chunk* is some positions of the
//! cache. Where there are many blocks they are the tasks of the threads; else, in a decode step, a
//! block's chunks are. Both divide the work in the same way and only the order differs, so that
//! the bits do not:
//!
//! - a score is one chain of multiply-adds over the head's dims;
//! - the maximum is that of all positions which a row may see;
//! - exponentials, and values weighted by them, are summed from the first position of a chunk to
//!   its last, and the sums of the chunks from the first chunk to the last; over positions that
//!   the row may see, and no others: infinities behind them do not reach it.
//!
//! The products are those of [`few`] rows, as in a decode step, or of [`many`]; these, too, give the
//! same bits.

mod few;
mod many;
mod softmax;

use std::ops::Range;

use half::bf16;

use super::super::isa::Avx2;
use super::super::split::strips;
use super::lanes::{BLOCK, store, widened};
use super::scratch;
use super::tile::{Operand, Rows};
use crate::kernels::reference::{append, check_attention};
use crate::kernels::{AttentionCache, AttentionDims, AttentionInputs, Span};
use crate::pool::Pool;
use softmax::{divide, exponentials, scale_and_max};

/// Rows of the input in a block.
const ROWS: usize = 32;

/// Positions of a chunk.
const CHUNK: usize = 512;

/// Positions whose scores are computed at once.
const PANEL: usize = BLOCK;

/// See [`reference::attention`](crate::kernels::reference::attention).
pub(in super::super) fn attention(
    isa: Avx2,
    pool: &Pool,
    dims: AttentionDims,
    span: Span,
    inputs: AttentionInputs<'_>,
    cache: AttentionCache<'_>,
    out: &mut [bf16],
) {
    check_attention(dims, span, inputs, &cache, out);
    append(dims, span, inputs.k, cache.k);
    append(dims, span, inputs.v, cache.v);
    let AttentionCache { k, v } = cache;

    let group = dims.group() * dims.head_dim;
    let width = dims.kv_heads * group;
    let (valid, rest) = out.split_at_mut(span.rows * width);
    rest.fill(bf16::ZERO);
    if group == 0 {
        return;
    }
    let shared = Shared { _isa: isa, dims, start: span.start, q: inputs.q, k, v };
    let mut blocks: Vec<(Block, Vec<&mut [bf16]>)> = Vec::new();
    for (i, rows) in valid.chunks_mut(ROWS * width).enumerate() {
        for (kv, out) in strips(rows, width, group).into_iter().enumerate() {
            blocks.push((shared.block(kv, i * ROWS, out.len()), out));
        }
    }
    if blocks.len() >= 4 * pool.threads() {
        // The last blocks see the most.
        pool.for_each(blocks.into_iter().rev(), |_, (block, mut out)| shared.whole(block, &mut out));
    } else {
        for blocks in blocks.chunks_mut(dims.kv_heads) {
            shared.in_chunks(pool, blocks);
        }
    }
}

/// What all blocks read.
#[derive(Clone, Copy)]
struct Shared<'a> {
    /// What is marked with these instructions may be called.
    _isa: Avx2,
    dims: AttentionDims,
    /// The position of the first row of the input.
    start: usize,
    q: &'a [bf16],
    k: &'a [bf16],
    v: &'a [bf16],
}

/// The query heads of one key head, in some rows of the input.
#[derive(Clone, Copy)]
struct Block {
    /// The key head.
    kv: usize,
    /// The first row of the input.
    first: usize,
    /// Rows of the products: so many rows of the input, times the query heads.
    rows: usize,
    /// Positions that its last row sees.
    seen: usize,
}

impl Block {
    fn chunks(self) -> usize {
        self.seen.div_ceil(CHUNK)
    }

    fn chunk(self, index: usize) -> Range<usize> {
        index * CHUNK..self.seen.min((index + 1) * CHUNK)
    }

    /// The length of a row of scores: whole panels, and not a power of two.
    fn stride(self) -> usize {
        self.seen.next_multiple_of(PANEL) + PANEL
    }
}

/// Rows of a block that see the same.
struct Seeing {
    rows: Range<usize>,
    /// How many of the positions in question, from the first on.
    positions: usize,
}

/// The keys or values of a head, as they lie in the cache.
#[derive(Clone, Copy)]
struct Cached<'a> {
    /// Of all positions.
    values: &'a [bf16],
    /// The values of one.
    head_dim: usize,
}

impl<'a> Cached<'a> {
    fn at(self, position: usize) -> &'a [bf16] {
        &self.values[position * self.head_dim..][..self.head_dim]
    }
}

/// Parts of a range, whose first is a multiple of the length of a part.
fn steps(range: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(length).map(move |first| first..range.end.min(first + length))
}

impl Shared<'_> {
    fn block(&self, kv: usize, first: usize, rows: usize) -> Block {
        Block { kv, first, rows: rows * self.dims.group(), seen: self.start + first + rows }
    }

    /// A head's dims, filled up to whole blocks.
    fn width(&self) -> usize {
        self.dims.head_dim.next_multiple_of(BLOCK)
    }

    /// Positions that a row of the products sees.
    fn seen(&self, block: Block, row: usize) -> usize {
        self.start + block.first + row / self.dims.group() + 1
    }

    /// A block from its scores to its output.
    fn whole(&self, block: Block, out: &mut [&mut [bf16]]) {
        let width = self.width();
        let (size, stride) = (block.rows * width, block.stride());
        // Queries, the sums of a chunk, and all sums.
        scratch::with(3 * size, |lent| {
            let (queries, lent) = lent.split_at_mut(size);
            let (part, sums) = lent.split_at_mut(size);
            self.widen_queries(block, queries);
            scratch::with(block.rows * stride, |scores| {
                for chunk in 0..block.chunks() {
                    self.scores(block, block.chunk(chunk), queries, &mut Rows(scores, stride));
                }
                let mut totals = vec![0.0; block.rows];
                for (row, total) in totals.iter_mut().enumerate() {
                    let scores = &mut scores[row * stride..][..self.seen(block, row)];
                    let max = self.scale(scores);
                    for chunk in scores.chunks_mut(CHUNK) {
                        *total += self.weights(chunk, max);
                    }
                }
                sums.fill(0.0);
                for chunk in 0..block.chunks() {
                    let positions = block.chunk(chunk);
                    part.fill(0.0);
                    self.mix(block, positions.clone(), Operand(&scores[positions.start..], stride), part);
                    self.add(part, sums);
                }
                self.finish(sums, &totals, out);
            });
        });
    }

    /// The blocks of some rows, all of which see as much, with the chunks as tasks.
    fn in_chunks(&self, pool: &Pool, blocks: &mut [(Block, Vec<&mut [bf16]>)]) {
        let Some((block, _)) = blocks.first() else { return };
        let (rows, chunks, width) = (block.rows, block.chunks(), self.width());
        // A task's own: its scores, its sums, and for each row a maximum and a total.
        let scores = rows * (CHUNK + PANEL);
        let size = (scores + rows * width + 2 * rows).next_multiple_of(BLOCK);
        let queries_size = rows * width;
        scratch::with(blocks.len() * (queries_size + chunks * size), |lent| {
            let (queries, lent) = lent.split_at_mut(blocks.len() * queries_size);
            for ((block, _), queries) in blocks.iter().zip(queries.chunks_exact_mut(queries_size)) {
                self.widen_queries(*block, queries);
            }
            let queries = &*queries;
            let task = |i: usize| (blocks[i / chunks].0, i / chunks, blocks[i / chunks].0.chunk(i % chunks));
            // All of a task's positions are seen by a row, or those before some position.
            let seen = |block: Block, positions: &Range<usize>, row: usize| {
                self.seen(block, row).clamp(positions.start, positions.end) - positions.start
            };
            let stride = CHUNK + PANEL;

            let cost = self.cost(rows);
            let together = pool.block(lent.len() / size, cost);
            pool.for_each(lent.chunks_mut(together * size), |i, lent| {
                for (j, lent) in lent.chunks_exact_mut(size).enumerate() {
                    let (block, b, positions) = task(i * together + j);
                    let queries = &queries[b * queries_size..][..queries_size];
                    let (scores, lent) = lent.split_at_mut(scores);
                    self.scores_from(block, positions.clone(), queries, &mut Rows(scores, stride));
                    for (row, max) in lent[rows * width..][..rows].iter_mut().enumerate() {
                        let seen = seen(block, &positions, row);
                        *max = self.scale(&mut scores[row * stride..][..seen]);
                    }
                }
            });

            let at = |b: usize, chunk: usize| (b * chunks + chunk) * size + scores + rows * width;
            let largest: Vec<f32> = (0..blocks.len() * rows)
                .map(|i| {
                    let maxima = (0..chunks).map(|chunk| lent[at(i / rows, chunk) + i % rows]);
                    maxima.fold(f32::NEG_INFINITY, f32::max)
                })
                .collect();

            pool.for_each(lent.chunks_mut(together * size), |i, lent| {
                for (j, lent) in lent.chunks_exact_mut(size).enumerate() {
                    let (block, b, positions) = task(i * together + j);
                    let (scores, lent) = lent.split_at_mut(scores);
                    let (sums, lent) = lent.split_at_mut(rows * width);
                    for (row, total) in lent[rows..][..rows].iter_mut().enumerate() {
                        let seen = seen(block, &positions, row);
                        *total = self.weights(&mut scores[row * stride..][..seen], largest[b * rows + row]);
                    }
                    sums.fill(0.0);
                    self.mix(block, positions, Operand(scores, stride), sums);
                }
            });

            for (b, (_, out)) in blocks.iter_mut().enumerate() {
                let totals: Vec<f32> = (0..rows)
                    .map(|row| (0..chunks).fold(0.0, |total, chunk| total + lent[at(b, chunk) + rows + row]))
                    .collect();
                scratch::with(rows * width, |sums| {
                    sums.fill(0.0);
                    for chunk in 0..chunks {
                        self.add(&lent[at(b, chunk) - rows * width..][..rows * width], sums);
                    }
                    self.finish(sums, &totals, out);
                });
            }
        });
    }

    /// Nanoseconds for a chunk of each of the two products of a block, about.
    fn cost(&self, rows: usize) -> usize {
        CHUNK * self.dims.head_dim * (rows + 8) / 32
    }

    /// The queries of a block in f32, one after the other.
    fn widen_queries(&self, block: Block, to: &mut [f32]) {
        let (heads, group, width) = (self.dims.heads, self.dims.group(), self.dims.head_dim);
        for (r, to) in to.chunks_exact_mut(self.width()).enumerate() {
            let (t, h) = (block.first + r / group, block.kv * group + r % group);
            let query = &self.q[(t * heads + h) * width..][..width];
            // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
            unsafe { widen(query, to) }
        }
    }

    /// The scores of some positions, at their places in the rows of `to`.
    fn scores(&self, block: Block, positions: Range<usize>, queries: &[f32], to: &mut Rows<'_>) {
        let Rows(to, stride) = to;
        self.scores_from(block, positions.clone(), queries, &mut Rows(&mut to[positions.start..], *stride));
    }

    /// The scores of some positions, at the beginning of the rows of `to`, up to whole panels.
    fn scores_from(&self, block: Block, positions: Range<usize>, queries: &[f32], to: &mut Rows<'_>) {
        let (keys, rows) = (self.cached(self.k, block.kv), block.rows);
        let queries = Operand(queries, self.width());
        if few::takes(rows, keys) {
            // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
            unsafe { few::scores(keys, positions, rows, queries, to) }
        } else {
            scratch::with(many::packed(self.width()), |packed| {
                // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
                unsafe { many::scores(keys, positions, rows, queries, to, packed) }
            });
        }
    }

    /// Makes scores of products: divides by the root of the dims. Returns the largest.
    fn scale(&self, products: &mut [f32]) -> f32 {
        let scale = 1.0 / (self.dims.head_dim as f32).sqrt();
        // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
        unsafe { scale_and_max(products, scale) }
    }

    /// Makes `bf(exp(s - max))` of the scores of a chunk. Returns their sum before rounding.
    fn weights(&self, scores: &mut [f32], max: f32) -> f32 {
        // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
        unsafe { exponentials(scores, max) }
    }

    /// Adds to each row of `sums`, arranged, the values of some positions, as weighted in the
    /// beginning of the rows of `weights`.
    fn mix(&self, block: Block, positions: Range<usize>, weights: Operand<'_>, sums: &mut [f32]) {
        let values = self.cached(self.v, block.kv);
        let sums = &mut Rows(sums, self.width());
        if few::takes(block.rows, values) {
            for seen in self.seeing(block, &positions) {
                // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
                unsafe { few::mix(values, positions.start, seen, weights, sums) }
            }
            return;
        }
        scratch::with(many::packed(self.width()), |packed| {
            for step in steps(positions.clone(), many::STEP) {
                let weights = Operand(&weights.0[step.start - positions.start..], weights.1);
                // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
                unsafe { many::pack_values(values, step.clone(), packed) };
                for seen in self.seeing(block, &step) {
                    // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
                    unsafe { many::mix(packed, step.len(), seen, weights, sums) }
                }
            }
        });
    }

    /// Divides the rows of a block so that those of a part see the same of some positions.
    fn seeing(&self, block: Block, positions: &Range<usize>) -> impl Iterator<Item = Seeing> {
        // All see what the first sees.
        let alike = if positions.end <= self.seen(block, 0) { block.rows } else { self.dims.group() };
        let (this, positions) = (*self, positions.clone());
        (0..block.rows).step_by(alike).map(move |first| Seeing {
            rows: first..block.rows.min(first + alike),
            positions: this.seen(block, first).clamp(positions.start, positions.end) - positions.start,
        })
    }

    /// The keys or values of a head.
    fn cached<'c>(&self, cache: &'c [bf16], kv: usize) -> Cached<'c> {
        let size = self.dims.context * self.dims.head_dim;
        Cached { values: &cache[kv * size..(kv + 1) * size], head_dim: self.dims.head_dim }
    }

    /// `sums += part`.
    fn add(&self, part: &[f32], sums: &mut [f32]) {
        for (sum, part) in sums.iter_mut().zip(part) {
            *sum += part;
        }
    }

    /// `bf(sum / total)`.
    fn finish(&self, sums: &[f32], totals: &[f32], out: &mut [&mut [bf16]]) {
        let outs = out.iter_mut().flat_map(|out| out.chunks_exact_mut(self.dims.head_dim));
        for ((sums, total), out) in sums.chunks_exact(self.width()).zip(totals).zip(outs) {
            // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
            unsafe { divide(sums, *total, out) }
        }
    }
}

/// In f32, with zeros up to a multiple of 16.
#[target_feature(enable = "avx2,fma")]
fn widen(from: &[bf16], to: &mut [f32]) {
    for (i, to) in to.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        store(to, widened(&from[from.len().min(8 * i)..]));
    }
}
