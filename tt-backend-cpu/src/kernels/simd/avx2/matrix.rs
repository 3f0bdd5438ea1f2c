//! Small f32 matrix products.
//!
//! Rows are filled up to a multiple of 16 columns, so that no product has an edge. What is
//! computed of the filling is never read.

use std::arch::x86_64::*;

use super::super::isa::Avx2;
use super::lanes::{load, store};

/// Columns come in multiples of this.
const PAD: usize = 16;

/// A row-major matrix whose rows are filled up with zeros.
#[derive(Clone)]
pub(super) struct Matrix {
    data: Vec<f32>,
    rows: usize,
    stride: usize,
}

impl Matrix {
    pub(super) fn zeros(rows: usize, columns: usize) -> Self {
        let stride = columns.next_multiple_of(PAD);
        Self { data: vec![0.0; rows * stride], rows, stride }
    }

    /// Makes all elements zero, and `rows` the number of rows; at most as many as at first.
    pub(super) fn clear(&mut self, rows: usize) {
        self.rows = rows;
        self.data[..rows * self.stride].fill(0.0);
    }

    /// A row, with its filling.
    pub(super) fn row(&self, i: usize) -> &[f32] {
        &self.data[i * self.stride..(i + 1) * self.stride]
    }

    /// A row, with its filling.
    pub(super) fn row_mut(&mut self, i: usize) -> &mut [f32] {
        &mut self.data[i * self.stride..(i + 1) * self.stride]
    }

    /// `self += a b`, where the first `inner` columns of `a` count. Each element's products are
    /// added from the first to the last.
    pub(super) fn add_product(&mut self, _: Avx2, a: &Matrix, inner: usize, b: &Matrix) {
        assert_eq!(a.rows, self.rows, "rows of a product");
        assert_eq!(b.stride, self.stride, "columns of a product");
        assert!(inner <= a.stride && inner <= b.rows, "a product's inner size");
        // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
        unsafe { add_product(self, a, inner, b) }
    }

    /// Row `i` += `a` times the first `a.len()` rows of `b`.
    pub(super) fn row_add_product(&mut self, _: Avx2, i: usize, a: &[f32], b: &Matrix) {
        assert_eq!(b.stride, self.stride, "columns of a product");
        assert!(a.len() <= b.rows, "a product's inner size");
        // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
        unsafe { row_add_product(self.row_mut(i), a, &b.data) }
    }

    /// Row `i` += `a` times the first `a.len()` rows of the matrix itself, all above row `i`.
    pub(super) fn row_add_product_above(&mut self, _: Avx2, i: usize, a: &[f32]) {
        assert!(a.len() <= i, "only rows above");
        let (above, row) = self.data.split_at_mut(i * self.stride);
        // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
        unsafe { row_add_product(&mut row[..self.stride], a, above) }
    }
}

#[target_feature(enable = "avx2,fma")]
fn add_product(c: &mut Matrix, a: &Matrix, inner: usize, b: &Matrix) {
    let stride = c.stride;
    let mut i = 0;
    while i < c.rows {
        let rows = &mut c.data[i * stride..];
        let a_rows = &a.data[i * a.stride..];
        for column in (0..stride).step_by(PAD) {
            let b = &b.data[column..];
            let c = &mut rows[column..];
            match c_rows(i, a.rows) {
                4 => tile::<4, 2>(c, a_rows, a.stride, inner, b, stride),
                _ => tile::<1, 2>(c, a_rows, a.stride, inner, b, stride),
            }
        }
        i += c_rows(i, a.rows);
    }
}

/// How many rows are computed at once from row `i` on.
fn c_rows(i: usize, rows: usize) -> usize {
    if rows - i >= 4 { 4 } else { 1 }
}

/// `c += a b` for one row, `b` with rows as long as `c`.
#[target_feature(enable = "avx2,fma")]
fn row_add_product(c: &mut [f32], a: &[f32], b: &[f32]) {
    let stride = c.len();
    let mut column = 0;
    while column + 64 <= stride {
        tile::<1, 8>(&mut c[column..], a, a.len(), a.len(), &b[column.min(b.len())..], stride);
        column += 64;
    }
    while column < stride {
        tile::<1, 2>(&mut c[column..], a, a.len(), a.len(), &b[column.min(b.len())..], stride);
        column += PAD;
    }
}

/// `R` rows of `c`, `8 N` columns, += `R` rows of `a` times `inner` rows of `b`. `c` and `b`
/// begin at the first of the columns; their rows are `stride` apart, those of `a` `a_stride`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn tile<const R: usize, const N: usize>(
    c: &mut [f32],
    a: &[f32],
    a_stride: usize,
    inner: usize,
    b: &[f32],
    stride: usize,
) {
    if inner == 0 {
        return;
    }
    assert!(c.len() >= (R - 1) * stride + 8 * N);
    assert!(a.len() >= (R - 1) * a_stride + inner);
    assert!(b.len() >= (inner - 1) * stride + 8 * N);
    let mut sums = [[_mm256_setzero_ps(); N]; R];
    for r in 0..R {
        let (c, _) = c[r * stride..].as_chunks::<8>();
        for n in 0..N {
            sums[r][n] = load(&c[n]);
        }
    }
    for k in 0..inner {
        let mut row = [_mm256_setzero_ps(); N];
        for (n, eight) in row.iter_mut().enumerate() {
            // SAFETY: `k < inner`, so the eight values end within `b`, by the third assertion.
            *eight = unsafe { _mm256_loadu_ps(b.as_ptr().add(k * stride + 8 * n)) };
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: `r < R` and `k < inner`: within `a`, by the second assertion.
            let a = _mm256_set1_ps(unsafe { *a.get_unchecked(r * a_stride + k) });
            for (sum, eight) in sums.iter_mut().zip(row) {
                *sum = _mm256_fmadd_ps(a, eight, *sum);
            }
        }
    }
    for r in 0..R {
        let (c, _) = c[r * stride..].as_chunks_mut::<8>();
        for n in 0..N {
            store(&mut c[n], sums[r][n]);
        }
    }
}
