//! Matrix product of many rows with a weight: the kernel where a prefill spends its time.
//!
//! Each output is one chain of multiply-adds over K, from the first value to the last, whatever
//! is computed beside it. What differs is only where its operands lie. From the inside out:
//!
//! - a *tile* of 6 rows and 16 outputs lives in registers, while a *depth* of K goes by;
//! - a *band*, the 6 rows of `x` at that depth, and a *panel*, the 16 rows of `w`, lie
//!   interleaved in f32 ([`pack`](super::pack)). A panel is packed and stays in the first-level
//!   cache while it meets all bands, which are asked for ahead from the second: they are the
//!   smaller stream;
//! - a *strip* is the task of a thread: some panels, which meet the bands of one depth after the
//!   other, so that those of a depth stay in the second-level cache. The bands were packed before
//!   by all threads;
//! - sums wait in f32 from one depth to the next, and are rounded once after the last.

use half::bf16;
use std::arch::x86_64::*;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::isa::Avx2;
use super::lanes::{BLOCK, LINE, load, store};
use super::linear::Output;
use super::pack::{LANES, interleave, interleave_and_fetch};
use super::scratch;
use crate::kernels::LinearDims;
use crate::pool::Pool;

/// Rows of a tile, at most.
const ROWS: usize = 6;
/// Outputs of a tile.
const COLUMNS: usize = 16;
/// How much of K is packed at a time.
const DEPTH: usize = 256;
/// Rows that are packed at a time. More are done piece by piece.
const PIECE: usize = 512;
/// Panels of a strip, at most.
const STRIP: usize = 16;
/// Strips of a thread, at least: more than one, so that threads finish together.
const STRIPS_PER_THREAD: usize = 4;
/// Values of a packed band: the last values are written eight at a time.
const BAND: usize = DEPTH * ROWS + BLOCK;
/// Values of a packed panel.
const PANEL: usize = DEPTH * COLUMNS;
/// Steps of K at a time: a part of [`BLOCK`].
const UNROLL: usize = 8;
/// How far ahead of its use a band is asked for, in values: the first-level cache holds little beside
/// a panel.
const AHEAD: usize = 384;
/// Sums of a tile.
const TILE: usize = ROWS * COLUMNS;

/// Multiplications in about a nanosecond.
const SPEED: usize = 32;
/// Values that are packed in about a nanosecond.
const PACKING: usize = 4;

/// `out: rows × outputs = (x: rows × inputs) (w: outputs × inputs)^T`. Lengths are the caller's
/// to check.
pub(super) fn gemm<O: Output>(
    isa: Avx2,
    pool: &Pool,
    dims: LinearDims,
    x: &[bf16],
    w: &[bf16],
    out: &mut [O],
) {
    let LinearDims { inputs, outputs, .. } = dims;
    for (x, out) in x.chunks(PIECE * inputs).zip(out.chunks_mut(PIECE * outputs)) {
        let rows = out.len() / outputs;
        let bands = Bands::of(rows);
        let depths = inputs.div_ceil(DEPTH);
        scratch::with(depths * bands.count() * BAND, |packed| {
            bands.pack(isa, pool, x, inputs, packed);
            Product { _isa: isa, bands: &bands, x: packed, w, inputs, outputs }.run(pool, out);
        });
    }
}

/// Rows divided into bands of nearly the same number, at most [`ROWS`].
///
/// Where each begins is kept: a division takes as long as a good part of a tile.
struct Bands(Vec<usize>);

impl Bands {
    fn of(rows: usize) -> Self {
        let count = rows.div_ceil(ROWS);
        Self((0..=count).map(|band| band * rows / count).collect())
    }

    fn count(&self) -> usize {
        self.0.len() - 1
    }

    fn rows(&self, band: usize) -> Range<usize> {
        self.0[band]..self.0[band + 1]
    }

    /// Packs band after band, depth after depth, `BAND` values each.
    fn pack(&self, isa: Avx2, pool: &Pool, x: &[bf16], inputs: usize, packed: &mut [f32]) {
        let block = pool.block(packed.len() / BAND, BAND / PACKING);
        pool.for_each(packed.chunks_mut(block * BAND), |i, packed| {
            for (j, packed) in packed.chunks_exact_mut(BAND).enumerate() {
                let (depth, band) = ((i * block + j) / self.count(), (i * block + j) % self.count());
                let (values, rows) = (values(inputs, depth), self.rows(band));
                interleave_rows(isa, rows.len(), packed, |r| {
                    &x[(rows.start + r) * inputs..][..inputs][values.clone()]
                });
            }
        });
    }
}

/// The part of K at a depth.
fn values(inputs: usize, depth: usize) -> Range<usize> {
    inputs.min(depth * DEPTH)..inputs.min((depth + 1) * DEPTH)
}

/// [`interleave`] for `count` rows next to each other, at most eight.
fn interleave_rows<'a>(_: Avx2, count: usize, to: &mut [f32], row: impl Fn(usize) -> &'a [bf16]) {
    let rows = std::array::from_fn(|r| if r < count { row(r) } else { &[] });
    // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
    unsafe { interleave(rows, count, to) }
}

/// What the tasks of a product share.
struct Product<'a> {
    /// Tiles may be computed.
    _isa: Avx2,
    bands: &'a Bands,
    /// Packed.
    x: &'a [f32],
    w: &'a [bf16],
    inputs: usize,
    outputs: usize,
}

impl Product<'_> {
    fn run<O: Output>(&self, pool: &Pool, out: &mut [O]) {
        let panels = self.outputs.div_ceil(COLUMNS);
        let cost = self.bands.count() * ROWS * self.inputs * COLUMNS / SPEED;
        let threads = if pool.block(panels, cost) < panels { pool.threads() } else { 1 };
        let strip = panels.div_ceil(threads * STRIPS_PER_THREAD).min(STRIP);
        let strips = panels.div_ceil(strip);
        let panels = |i: usize| (i * strip).min(panels)..((i + 1) * strip).min(panels);
        let out = Matrix { first: out.as_mut_ptr(), columns: self.outputs, len: out.len() };
        // A thread takes its next strip before it begins one, so as to know what to fetch.
        let next = AtomicUsize::new(0);
        let take = || next.fetch_add(1, Ordering::Relaxed).min(strips);
        pool.run(threads.min(strips), |_| {
            let mut now = take();
            while now < strips {
                let then = take();
                scratch::with(PANEL, |w| {
                    scratch::with(self.bands.count() * strip * TILE, |sums| {
                        // SAFETY: no two strips have a column of the output in common, and each is
                        // taken once; and an `Avx2` exists only where the CPU has AVX2 and FMA.
                        unsafe { self.strip(panels(now), panels(then), w, sums, &out) }
                    });
                });
                now = then;
            }
        });
    }

    /// # Safety
    ///
    /// No other thread writes to the columns of these panels meanwhile, and the CPU has AVX2 and
    /// FMA.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn strip<O: Output>(
        &self,
        panels: Range<usize>,
        then: Range<usize>,
        w: &mut [f32],
        sums: &mut [f32],
        out: &Matrix<O>,
    ) {
        let depths = self.inputs.div_ceil(DEPTH);
        for depth in 0..depths {
            let last = depth + 1 == depths;
            let length = values(self.inputs, depth).len().next_multiple_of(BLOCK);
            let x = &self.x[depth * self.bands.count() * BAND..];
            for (panel, sums) in panels.clone().zip(sums.chunks_exact_mut(self.bands.count() * TILE)) {
                self.pack(panel, depth, w);
                let next = match (panel + 1 == panels.end, last) {
                    (false, _) => (panel + 1, depth),
                    (true, false) => (panels.start, depth + 1),
                    (true, true) => (then.start, 0),
                };
                let mut next = self.lines(next);
                let columns = panel * COLUMNS..self.outputs.min((panel + 1) * COLUMNS);
                let bands = x.chunks_exact(BAND).zip(sums.chunks_exact_mut(TILE));
                for (band, (x, sums)) in (0..self.bands.count()).zip(bands) {
                    next.fetch_some();
                    if last && band + 1 < self.bands.count() {
                        for row in self.bands.rows(band + 1) {
                            out.fetch(row, columns.start);
                        }
                    }
                    let rows = self.bands.rows(band);
                    let part = Part { x, w, length, first: depth == 0 };
                    part.add(rows.len(), sums);
                    if last {
                        for (row, sums) in rows.zip(sums.as_chunks::<COLUMNS>().0) {
                            // SAFETY: the caller's promise.
                            let out = unsafe { out.part(row, columns.clone()) };
                            // SAFETY: as above.
                            unsafe { O::store(sums, out) };
                        }
                    }
                }
            }
        }
    }

    /// The lines of the weights of a panel at a depth, a share of them for each band.
    fn lines(&self, (panel, depth): (usize, usize)) -> Lines {
        let values = values(self.inputs, depth);
        let lines = values.len().div_ceil(LINE);
        Lines {
            row: self.w.as_ptr().wrapping_add(panel * COLUMNS * self.inputs + values.start),
            stride: self.inputs,
            lines,
            line: 0,
            share: (COLUMNS * lines).div_ceil(self.bands.count()),
            left: COLUMNS * lines,
        }
    }

    /// Packs the outputs of a panel at a depth.
    #[target_feature(enable = "avx2,fma")]
    fn pack(&self, panel: usize, depth: usize, packed: &mut [f32]) {
        let values = values(self.inputs, depth);
        for lanes in [0, LANES] {
            let first = (panel * COLUMNS + lanes) * self.inputs + values.start;
            let rows = std::array::from_fn(|r| {
                let row = first + r * self.inputs;
                self.w.get(row..row + values.len()).unwrap_or(&[])
            });
            let next = self.w.as_ptr().wrapping_add(first + LANES * self.inputs);
            let next = std::array::from_fn(|r| next.wrapping_add(r * self.inputs));
            interleave_and_fetch(rows, COLUMNS, &mut packed[lanes..], next);
        }
    }
}

/// Lines of the weights that are packed next. They lie in runs too short for the CPU to find out by
/// itself, so they are asked for, some with each band.
struct Lines {
    /// Where a row's run begins.
    row: *const bf16,
    /// To the next row.
    stride: usize,
    /// Of a run.
    lines: usize,
    /// The next of it.
    line: usize,
    /// How many at a time.
    share: usize,
    /// How many are left.
    left: usize,
}

impl Lines {
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn fetch_some(&mut self) {
        let share = self.share.min(self.left);
        self.left -= share;
        for _ in 0..share {
            fetch(self.row.wrapping_add(self.line * LINE));
            self.line += 1;
            if self.line == self.lines {
                self.line = 0;
                self.row = self.row.wrapping_add(self.stride);
            }
        }
    }
}

/// Asks for a line to be brought into the second-level cache. It need not exist: past the end that
/// is a wasted hint, and no more.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn fetch<T>(from: *const T) {
    _mm_prefetch::<_MM_HINT_T1>(from.cast());
}

/// A band and a panel at the same depth.
struct Part<'a> {
    x: &'a [f32],
    w: &'a [f32],
    length: usize,
    /// The sums begin here.
    first: bool,
}

impl Part<'_> {
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn add(&self, rows: usize, sums: &mut [f32]) {
        let (sums, _) = sums.as_chunks_mut();
        match rows {
            6 => self.tile::<6>(sums),
            5 => self.tile::<5>(sums),
            4 => self.tile::<4>(sums),
            3 => self.tile::<3>(sums),
            2 => self.tile::<2>(sums),
            _ => self.tile::<1>(sums),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn tile<const R: usize>(&self, kept: &mut [[f32; COLUMNS]]) {
        let mut sums = [[_mm256_setzero_ps(); 2]; R];
        let kept: &mut [[f32; COLUMNS]; R] = kept.first_chunk_mut().expect("a tile has six rows");
        if !self.first {
            for r in 0..R {
                let (kept, _) = kept[r].as_chunks::<8>();
                sums[r] = [load(&kept[0]), load(&kept[1])];
            }
        }
        let (x, _) = self.x[..self.length * R].as_chunks::<R>();
        let (w, _) = self.w[..self.length * COLUMNS].as_chunks::<COLUMNS>();
        // Several steps at a time: counting takes the multipliers' ports.
        for (x, w) in x.as_chunks::<UNROLL>().0.iter().zip(w.as_chunks::<UNROLL>().0) {
            // These steps' share of a band is three lines, of 16 f32 each.
            for line in [0, 16, 32] {
                let ahead = x.as_ptr().cast::<f32>().wrapping_add(AHEAD + line);
                _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
            }
            for i in 0..UNROLL {
                let (w, _) = w[i].as_chunks::<8>();
                let (low, high) = (load(&w[0]), load(&w[1]));
                for r in 0..R {
                    let x = _mm256_set1_ps(x[i][r]);
                    sums[r][0] = _mm256_fmadd_ps(x, low, sums[r][0]);
                    sums[r][1] = _mm256_fmadd_ps(x, high, sums[r][1]);
                }
            }
        }
        for r in 0..R {
            let (kept, _) = kept[r].as_chunks_mut::<8>();
            store(&mut kept[0], sums[r][0]);
            store(&mut kept[1], sums[r][1]);
        }
    }
}

/// A row-major matrix of which several threads write different parts.
struct Matrix<T> {
    first: *mut T,
    columns: usize,
    len: usize,
}

// SAFETY: the pointer is used in `part` only, whose caller sees to it that parts do not overlap.
unsafe impl<T: Send> Sync for Matrix<T> {}

impl<T> Matrix<T> {
    /// Asks for the line of an element.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn fetch(&self, row: usize, column: usize) {
        fetch(self.first.wrapping_add(row * self.columns + column));
    }

    /// A piece of a row.
    ///
    /// # Safety
    ///
    /// What the matrix was made of is borrowed and alive, and no other reference to an element of
    /// the piece exists while the piece is used.
    #[allow(clippy::mut_from_ref)]
    unsafe fn part(&self, row: usize, columns: Range<usize>) -> &mut [T] {
        assert!(columns.start <= columns.end && columns.end <= self.columns, "columns of a matrix");
        assert!((row + 1) * self.columns <= self.len, "rows of a matrix");
        // SAFETY: within the matrix, as just asserted; the rest is the caller's promise.
        unsafe {
            std::slice::from_raw_parts_mut(self.first.add(row * self.columns + columns.start), columns.len())
        }
    }
}
