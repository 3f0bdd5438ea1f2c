//! Matrix product of a few rows with a weight: the kernel where a decode step spends its time. Many
//! rows are left to [`gemm`](super::gemm()).
//!
//! Each output has one accumulator of eight lanes. Block by block of 16 values of K, the even
//! and then the odd products are added to it; at the end its lanes are summed in a fixed order.
//! That does not depend on what else is computed at the same time, so an output has the same
//! bits for one row and for a few. (For many rows it is another sum: lanes along K let a weight be
//! used as it lies, which is what counts when it is used once or twice.) Several outputs at once, of
//! up to four rows, keep the multipliers busy and let a weight, once widened, serve all the rows;
//! more than nine sums would not fit into the registers.

use std::arch::x86_64::*;

use half::bf16;

use super::super::isa::Avx2;
use super::super::split::strips;
use super::gemm::gemm;
use super::lanes::{BLOCK, LINE, arrange, evens, load, load_bf16, odds, rounded, store_bf16, sum};
use crate::kernels::LinearDims;
use crate::pool::Pool;

/// Multiplications in about a nanosecond.
const SPEED: usize = 8;

/// How many weights to use for all rows before the next are read: they stay in the second
/// level cache.
const PANEL: usize = 1 << 17;

/// From so many rows on it pays to rearrange the weights.
const MANY: usize = 8;

/// What a sum becomes.
pub(in super::super) trait Output: Copy + Send {
    fn from_sum(sum: f32) -> Self;

    /// Stores the first `out.len()` of sixteen sums.
    ///
    /// # Safety
    ///
    /// The CPU has AVX2 and FMA.
    unsafe fn store(sums: &[f32; 16], out: &mut [Self]);
}

impl Output for f32 {
    fn from_sum(sum: f32) -> Self {
        sum
    }

    #[inline]
    unsafe fn store(sums: &[f32; 16], out: &mut [Self]) {
        out.copy_from_slice(&sums[..out.len()]);
    }
}

impl Output for bf16 {
    fn from_sum(sum: f32) -> Self {
        bf16::from_f32(sum)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn store(sums: &[f32; 16], out: &mut [Self]) {
        let (halves, _) = sums.as_chunks::<8>();
        store_bf16(out, rounded(load(&halves[0])), rounded(load(&halves[1])));
    }
}

/// See [`reference::linear`](crate::kernels::reference::linear).
pub(in super::super) fn linear<O: Output>(
    isa: Avx2,
    pool: &Pool,
    dims: LinearDims,
    x: &[bf16],
    w: &[bf16],
    out: &mut [O],
) {
    dims.check(x.len(), w.len(), out.len());
    let LinearDims { rows, inputs, outputs } = dims;
    if rows >= MANY && inputs > 0 && outputs > 0 {
        return gemm(isa, pool, dims, x, w, out);
    }
    let x = ArrangedRows::new(isa, rows, inputs, |t| &x[t * inputs..(t + 1) * inputs]);
    let block = pool.block(outputs, rows * inputs / SPEED).next_multiple_of(8);
    if rows == 1 {
        pool.reading(bytemuck::cast_slice(w));
        // A strip of one row is a slice: made without asking for memory, it costs nothing.
        return pool.for_each(out.chunks_mut(block), |i, part| {
            let w = &w[i * block * inputs..][..part.len() * inputs];
            products(isa, &x, w, &mut [part]);
        });
    }
    pool.for_each(strips(out, outputs, block), |i, mut strip| {
        let width = strip.first().map_or(0, |row| row.len());
        let w = &w[i * block * inputs..][..width * inputs];
        products(isa, &x, w, &mut strip);
    });
}

/// Rows in f32 and in the order that [`arrange`] makes.
pub(super) struct ArrangedRows {
    data: Vec<f32>,
    /// Before filling up with zeros.
    width: usize,
    /// After.
    stride: usize,
}

impl ArrangedRows {
    /// `count` rows of `width` values, read by `row`.
    pub(super) fn new<'a>(_: Avx2, count: usize, width: usize, row: impl Fn(usize) -> &'a [bf16]) -> Self {
        let stride = width.next_multiple_of(BLOCK);
        let mut data = vec![0.0; count * stride];
        for t in 0..count {
            // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
            unsafe { arrange(row(t), &mut data[t * stride..(t + 1) * stride]) };
        }
        Self { data, width, stride }
    }

    fn rows<const R: usize>(&self, first: usize) -> [&[f32]; R] {
        std::array::from_fn(|r| &self.data[(first + r) * self.stride..][..self.stride])
    }
}

/// `out[t][n]` = row `t` of `x` times row `n` of `w`, rows of `x.width` values.
pub(super) fn products<O: Output>(_: Avx2, x: &ArrangedRows, w: &[bf16], out: &mut [&mut [O]]) {
    // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
    unsafe { panels(x, w, out) }
}

#[target_feature(enable = "avx2,fma")]
fn panels<O: Output>(x: &ArrangedRows, w: &[bf16], out: &mut [&mut [O]]) {
    let outputs = out.first().map_or(0, |row| row.len());
    let panel = (PANEL / x.width.max(1)).next_multiple_of(8);
    for first in (0..outputs).step_by(panel) {
        let columns = first..outputs.min(first + panel);
        let mut t = 0;
        while t < out.len() {
            match out.len() - t {
                1 => t += band::<1, 2, O>(x, w, out, t, columns.clone()),
                2 => t += band::<2, 4, O>(x, w, out, t, columns.clone()),
                3 => t += band::<3, 3, O>(x, w, out, t, columns.clone()),
                _ => t += band::<4, 2, O>(x, w, out, t, columns.clone()),
            }
        }
    }
}

/// Rows `t .. t + R` of a range of columns, `N` columns at a time. Returns `R`.
#[target_feature(enable = "avx2,fma")]
fn band<const R: usize, const N: usize, O: Output>(
    x: &ArrangedRows,
    w: &[bf16],
    out: &mut [&mut [O]],
    t: usize,
    columns: std::ops::Range<usize>,
) -> usize {
    let rows = x.rows::<R>(t);
    let mut n = columns.start;
    while n + N <= columns.end {
        let sums = tile::<R, N>(rows, x.width, &w[n * x.width..(n + N) * x.width]);
        for (out, sums) in out[t..t + R].iter_mut().zip(sums) {
            for (out, sum) in out[n..n + N].iter_mut().zip(sums) {
                *out = O::from_sum(sum);
            }
        }
        n += N;
    }
    for n in n..columns.end {
        let sums = tile::<R, 1>(rows, x.width, &w[n * x.width..(n + 1) * x.width]);
        for (out, [sum]) in out[t..t + R].iter_mut().zip(sums) {
            out[n] = O::from_sum(sum);
        }
    }
    R
}

/// `R` rows times `N` rows of weights of `width` values that follow each other.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn tile<const R: usize, const N: usize>(x: [&[f32]; R], width: usize, w: &[bf16]) -> [[f32; N]; R] {
    assert_eq!(w.len(), N * width);
    assert!(x.iter().all(|x| x.len() >= width.next_multiple_of(BLOCK)));
    let mut sums = [[_mm256_setzero_ps(); N]; R];
    let whole = width / BLOCK * BLOCK;
    // Two blocks of a row of weights are a line of the cache.
    let lines = whole / LINE * LINE;
    for k in (0..lines).step_by(LINE) {
        for n in 0..N {
            if R == 1 {
                // Every weight is read once, and rows are too short for the CPU to find out where
                // the next begin: ask for the lines of the next tile, one after the other. Past the
                // end of the weights that is a wasted hint, and no more.
                let ahead = w.as_ptr().wrapping_add(N * (width + k) + n * LINE);
                _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
            }
            for k in [k, k + BLOCK] {
                // SAFETY: `k + 16 <= width`, and row `n` of `w` and each row of `x` have `width` values.
                unsafe { add_products(&mut sums, n, whole_block(w, n * width + k), &x, k) };
            }
        }
    }
    if lines < whole {
        for n in 0..N {
            // SAFETY: as above.
            unsafe { add_products(&mut sums, n, whole_block(w, n * width + lines), &x, lines) };
        }
    }
    if whole < width {
        for n in 0..N {
            let block = load_bf16(&w[n * width + whole..(n + 1) * width]);
            // SAFETY: rows of `x` are filled up to the next multiple of 16.
            unsafe { add_products(&mut sums, n, block, &x, whole) };
        }
    }
    let mut out = [[0.0; N]; R];
    for r in 0..R {
        for n in 0..N {
            out[r][n] = sum(sums[r][n]);
        }
    }
    out
}

/// The 16 weights from `first` on.
///
/// # Safety
///
/// They are inside of `w`.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn whole_block(w: &[bf16], first: usize) -> __m256i {
    debug_assert!(first + BLOCK <= w.len());
    // SAFETY: the caller's promise: the 32 bytes are inside of `w`. The load needs no alignment.
    unsafe { _mm256_loadu_si256(w.as_ptr().add(first).cast()) }
}

/// Adds the products of a block of weights with a block of each row to `sums[..][n]`.
///
/// # Safety
///
/// Each row of `x` has at least `k + 16` values.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn add_products<const R: usize, const N: usize>(
    sums: &mut [[__m256; N]; R],
    n: usize,
    block: __m256i,
    x: &[&[f32]; R],
    k: usize,
) {
    let (even, odd) = (evens(block), odds(block));
    for r in 0..R {
        let x = x[r].as_ptr();
        // SAFETY: the caller's promise: both loads are of values `k .. k + 16` of the row.
        let (x_even, x_odd) = unsafe { (_mm256_loadu_ps(x.add(k)), _mm256_loadu_ps(x.add(k + BLOCK / 2))) };
        sums[r][n] = _mm256_fmadd_ps(x_even, even, sums[r][n]);
        sums[r][n] = _mm256_fmadd_ps(x_odd, odd, sums[r][n]);
    }
}
