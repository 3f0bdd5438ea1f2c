//! Small f32 matrix products.
//!
//! Rows are filled up to a multiple of 16 columns, so that no product has an edge. What is
//! computed of the filling is never read.

use std::arch::x86_64::*;
use std::ops::Range;

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
    /// Columns, with their filling.
    width: usize,
    /// From row to row: an odd number of lines of the cache, for with a power of two the pieces of a
    /// strip of columns would all want the same few places of the first-level cache.
    stride: usize,
}

impl Matrix {
    pub(super) fn zeros(rows: usize, columns: usize) -> Self {
        let width = columns.next_multiple_of(PAD);
        let stride = ((width / PAD) | 1) * PAD;
        Self { data: vec![0.0; rows * stride], rows, width, stride }
    }

    /// Makes all elements zero, and `rows` the number of rows; at most as many as at first.
    pub(super) fn clear(&mut self, rows: usize) {
        self.rows = rows;
        self.data[..rows * self.stride].fill(0.0);
    }

    /// A row, with its filling.
    pub(super) fn row(&self, i: usize) -> &[f32] {
        &self.data[i * self.stride..][..self.width]
    }

    /// A row, with its filling.
    pub(super) fn row_mut(&mut self, i: usize) -> &mut [f32] {
        &mut self.data[i * self.stride..][..self.width]
    }

    /// `self += a b`, where the first `inner` columns of `a` count. Each element's products are
    /// added from the first to the last.
    pub(super) fn add_product(&mut self, _: Avx2, a: &Matrix, inner: usize, b: &Matrix) {
        assert_eq!(a.rows, self.rows, "rows of a product");
        assert_eq!(b.width, self.width, "columns of a product");
        assert!(inner <= a.width && inner <= b.rows, "a product's inner size");
        // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
        unsafe { add_product(self, a, inner, b, false) }
    }

    /// As [`add_product`](Self::add_product), but only up to the diagonal; what is right of it is
    /// as well computed as not.
    pub(super) fn add_lower_product(&mut self, _: Avx2, a: &Matrix, inner: usize, b: &Matrix) {
        assert_eq!(a.rows, self.rows, "rows of a product");
        assert_eq!(b.width, self.width, "columns of a product");
        assert!(inner <= a.width && inner <= b.rows, "a product's inner size");
        // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
        unsafe { add_product(self, a, inner, b, true) }
    }

    /// Makes this the transpose of `a`, of whose rows and columns there may be fewer.
    pub(super) fn set_transposed(&mut self, _: Avx2, a: &Matrix) {
        assert!(a.rows <= self.width && self.rows <= a.width, "a transpose's sizes");
        // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
        unsafe { set_transposed(self, a) }
    }

    /// `self += a b`, where of a row of `a` the elements up to the diagonal count, and no others.
    pub(super) fn add_triangle_product(&mut self, _: Avx2, a: &Matrix, b: &Matrix) {
        assert_eq!(a.rows, self.rows, "rows of a product");
        assert_eq!(b.width, self.width, "columns of a product");
        assert!(self.rows <= a.width && self.rows <= b.rows, "a triangle's size");
        for rows in bands(self.rows) {
            let (a, data) = (Operand(&a.data[rows.start * a.stride..], a.stride), &mut self.data);
            let c = Rows(&mut data[rows.start * self.stride..], self.stride);
            // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
            unsafe { add_band(rows.len(), self.width, c, a, rows.start, Operand(&b.data, b.stride)) };
            for i in rows.clone() {
                let a = &a.0[(i - rows.start) * a.1..][rows.start..=i];
                let b = Operand(&b.data[rows.start * b.stride..], b.stride);
                // SAFETY: as above.
                unsafe { row_add_product(self.row_mut(i), a, b) }
            }
        }
    }

    /// From the first row to the last: each row += its row of `a`, of which the elements before the
    /// diagonal count, times the rows above it as they have become.
    pub(super) fn substitute(&mut self, _: Avx2, a: &Matrix) {
        assert_eq!(a.rows, self.rows, "rows of a substitution");
        assert!(self.rows <= a.width, "a triangle's size");
        let (width, stride) = (self.width, self.stride);
        for rows in bands(self.rows) {
            let (above, from) = self.data.split_at_mut(rows.start * stride);
            let a = Operand(&a.data[rows.start * a.stride..], a.stride);
            // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
            unsafe { add_band(rows.len(), width, Rows(from, stride), a, rows.start, Operand(above, stride)) };
            for i in 1..rows.len() {
                let (above, row) = from.split_at_mut(i * stride);
                let a = &a.0[i * a.1..][rows.start..rows.start + i];
                // SAFETY: as above.
                unsafe { row_add_product(&mut row[..width], a, Operand(above, stride)) }
            }
        }
    }
}

#[target_feature(enable = "avx2,fma")]
fn add_product(c: &mut Matrix, a: &Matrix, inner: usize, b: &Matrix, lower: bool) {
    let stride = c.stride;
    // A strip of `b` stays in the first-level cache while it meets all rows.
    for column in (0..c.width).step_by(PAD) {
        let b = Operand(&b.data[column..], b.stride);
        for rows in bands(c.rows) {
            if !lower || column < rows.end {
                let c = Rows(&mut c.data[rows.start * stride + column..], stride);
                let a = Operand(&a.data[rows.start * a.stride..], a.stride);
                add_tile(rows.len(), c, a, inner, b);
            }
        }
    }
}

/// A band's rows, at the beginning of `c` and of `a`: `width` columns of them.
#[target_feature(enable = "avx2,fma")]
fn add_band(
    rows: usize,
    width: usize,
    Rows(c, stride): Rows<'_>,
    a: Operand<'_>,
    inner: usize,
    Operand(b, b_stride): Operand<'_>,
) {
    if inner > 0 {
        for column in (0..width).step_by(PAD) {
            add_tile(rows, Rows(&mut c[column..], stride), a, inner, Operand(&b[column..], b_stride));
        }
    }
}

/// [`PAD`] columns of a band.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn add_tile(rows: usize, c: Rows<'_>, a: Operand<'_>, inner: usize, b: Operand<'_>) {
    match rows {
        6 => tile::<6, 2>(c, a, inner, b),
        4 => tile::<4, 2>(c, a, inner, b),
        _ => tile::<1, 2>(c, a, inner, b),
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

/// The rows that are computed at once.
fn bands(rows: usize) -> impl Iterator<Item = Range<usize>> {
    let mut first = 0;
    std::iter::from_fn(move || {
        let count = match rows - first {
            0 => return None,
            // What is left is better two fours than a six and two ones.
            8 => 4,
            6.. => 6,
            4.. => 4,
            _ => 1,
        };
        first += count;
        Some(first - count..first)
    })
}

/// `c += a b` for one row.
#[target_feature(enable = "avx2,fma")]
fn row_add_product(c: &mut [f32], a: &[f32], Operand(b, stride): Operand<'_>) {
    let width = c.len();
    let row = Operand(a, a.len());
    let mut column = 0;
    while column < width {
        let b = Operand(&b[column.min(b.len())..], stride);
        let c = Rows(&mut c[column..], width);
        if column + 64 <= width {
            tile::<1, 8>(c, row, a.len(), b);
            column += 64;
        } else {
            tile::<1, 2>(c, row, a.len(), b);
            column += PAD;
        }
    }
}
