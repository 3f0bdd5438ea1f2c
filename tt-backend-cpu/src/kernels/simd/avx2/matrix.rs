//! Small f32 matrix products.
//!
//! Rows are filled up to a multiple of 16 columns, so that no product has an edge. What is
//! computed of the filling is never read.

use std::arch::x86_64::*;

use super::super::isa::Avx2;
use super::lanes::{load_some, store};
use super::pack::transpose;
use super::tile::{Operand, Rows, tile};

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
        unsafe { add_product(self, a, inner, b, false) }
    }

    /// As [`add_product`](Self::add_product), but only up to the diagonal; what is right of it is
    /// as well computed as not.
    pub(super) fn add_lower_product(&mut self, _: Avx2, a: &Matrix, inner: usize, b: &Matrix) {
        assert_eq!(a.rows, self.rows, "rows of a product");
        assert_eq!(b.stride, self.stride, "columns of a product");
        assert!(inner <= a.stride && inner <= b.rows, "a product's inner size");
        // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
        unsafe { add_product(self, a, inner, b, true) }
    }

    /// Makes this the transpose of `a`, of whose rows and columns there may be fewer.
    pub(super) fn set_transposed(&mut self, _: Avx2, a: &Matrix) {
        assert!(a.rows <= self.stride && self.rows <= a.stride, "a transpose's sizes");
        // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
        unsafe { set_transposed(self, a) }
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
fn add_product(c: &mut Matrix, a: &Matrix, inner: usize, b: &Matrix, lower: bool) {
    let stride = c.stride;
    let mut i = 0;
    while i < c.rows {
        let rows = &mut c.data[i * stride..];
        let a_rows = &a.data[i * a.stride..];
        let end = if lower { stride.min(i + c_rows(i, a.rows)) } else { stride };
        for column in (0..end).step_by(PAD) {
            let b = &b.data[column..];
            let c = &mut rows[column..];
            match c_rows(i, a.rows) {
                6 => tile::<6, 2>(Rows(c, stride), Operand(a_rows, a.stride), inner, Operand(b, stride)),
                4 => tile::<4, 2>(Rows(c, stride), Operand(a_rows, a.stride), inner, Operand(b, stride)),
                _ => tile::<1, 2>(Rows(c, stride), Operand(a_rows, a.stride), inner, Operand(b, stride)),
            }
        }
        i += c_rows(i, a.rows);
    }
}

#[target_feature(enable = "avx2,fma")]
fn set_transposed(c: &mut Matrix, a: &Matrix) {
    for first in (0..a.rows).step_by(8) {
        for column in (0..c.rows).step_by(8) {
            let mut words = [_mm256_setzero_si256(); 8];
            for (r, words) in words.iter_mut().enumerate().take(a.rows - first) {
                *words = _mm256_castps_si256(load_some(&a.row(first + r)[column..column + 8]));
            }
            let count = c.rows - column;
            for (r, words) in transpose(words).into_iter().enumerate().take(count) {
                let (eights, _) = c.row_mut(column + r)[first..].as_chunks_mut::<8>();
                store(&mut eights[0], _mm256_castsi256_ps(words));
            }
        }
    }
}

/// How many rows are computed at once from row `i` on.
fn c_rows(i: usize, rows: usize) -> usize {
    match rows - i {
        // What is left is better two fours than a six and two ones.
        8 => 4,
        6.. => 6,
        4.. => 4,
        _ => 1,
    }
}

/// `c += a b` for one row, `b` with rows as long as `c`.
#[target_feature(enable = "avx2,fma")]
fn row_add_product(c: &mut [f32], a: &[f32], b: &[f32]) {
    let stride = c.len();
    let mut column = 0;
    let row = Operand(a, a.len());
    while column + 64 <= stride {
        let b = Operand(&b[column.min(b.len())..], stride);
        tile::<1, 8>(Rows(&mut c[column..], stride), row, a.len(), b);
        column += 64;
    }
    while column < stride {
        let b = Operand(&b[column.min(b.len())..], stride);
        tile::<1, 2>(Rows(&mut c[column..], stride), row, a.len(), b);
        column += PAD;
    }
}
