//! The tile of a small product: some rows and columns of it, in registers.

use std::arch::x86_64::*;

use super::lanes::{load, store};

/// Rows to be added to, and how far they are apart.
pub(super) struct Rows<'a>(pub(super) &'a mut [f32], pub(super) usize);

/// Rows to be read, and how far they are apart.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a>(pub(super) &'a [f32], pub(super) usize);

/// `R` rows of `c`, `8 N` columns, += `R` rows of `a`, `inner` columns, times `inner` rows of `b`.
/// Each element's products are added from the first to the last.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn tile<const R: usize, const N: usize>(
    Rows(c, c_stride): Rows<'_>,
    Operand(a, a_stride): Operand<'_>,
    inner: usize,
    Operand(b, b_stride): Operand<'_>,
) {
    if inner == 0 {
        return;
    }
    assert!(c.len() >= (R - 1) * c_stride + 8 * N);
    assert!(a.len() >= (R - 1) * a_stride + inner);
    assert!(b.len() >= (inner - 1) * b_stride + 8 * N);
    let mut sums = [[_mm256_setzero_ps(); N]; R];
    for r in 0..R {
        let (c, _) = c[r * c_stride..].as_chunks::<8>();
        for n in 0..N {
            sums[r][n] = load(&c[n]);
        }
    }
    // Two steps at a time: counting takes the multipliers' ports.
    let pairs = inner / 2;
    for pair in 0..pairs {
        for k in [2 * pair, 2 * pair + 1] {
            // SAFETY: `k < inner`, and the assertions.
            unsafe { step(&mut sums, k, Operand(a, a_stride), Operand(b, b_stride)) }
        }
    }
    if inner % 2 == 1 {
        // SAFETY: `inner - 1 < inner`, and the assertions.
        unsafe { step(&mut sums, inner - 1, Operand(a, a_stride), Operand(b, b_stride)) }
    }
    for r in 0..R {
        let (c, _) = c[r * c_stride..].as_chunks_mut::<8>();
        for n in 0..N {
            store(&mut c[n], sums[r][n]);
        }
    }
}

/// The products of column `k` of `a` with row `k` of `b`.
///
/// # Safety
///
/// `a` has `R` rows of more than `k` values, and `b` more than `k` rows of `8 N` values, the last
/// row of each to that length at least.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn step<const R: usize, const N: usize>(
    sums: &mut [[__m256; N]; R],
    k: usize,
    Operand(a, a_stride): Operand<'_>,
    Operand(b, b_stride): Operand<'_>,
) {
    let mut row = [_mm256_setzero_ps(); N];
    for (n, eight) in row.iter_mut().enumerate() {
        // SAFETY: eight values of row `k` of `b`: the caller's promise.
        *eight = unsafe { _mm256_loadu_ps(b.as_ptr().add(k * b_stride + 8 * n)) };
    }
    for (r, sums) in sums.iter_mut().enumerate() {
        // SAFETY: a value of row `r` of `a`: the caller's promise.
        let a = _mm256_set1_ps(unsafe { *a.get_unchecked(r * a_stride + k) });
        for (sum, eight) in sums.iter_mut().zip(row) {
            *sum = _mm256_fmadd_ps(a, eight, *sum);
        }
    }
}

/// [`tile`] of 16 columns and any number of rows, six at a time.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn column(
    rows: usize,
    Rows(c, c_stride): Rows<'_>,
    Operand(a, a_stride): Operand<'_>,
    inner: usize,
    b: Operand<'_>,
) {
    let mut r = 0;
    while r < rows {
        let (c, a) = (Rows(&mut c[r * c_stride..], c_stride), Operand(&a[r * a_stride..], a_stride));
        match rows - r {
            1 => tile::<1, 2>(c, a, inner, b),
            2 => tile::<2, 2>(c, a, inner, b),
            3 => tile::<3, 2>(c, a, inner, b),
            // Eight are better two fours than a six and a two.
            4 | 8 => tile::<4, 2>(c, a, inner, b),
            5 => tile::<5, 2>(c, a, inner, b),
            _ => tile::<6, 2>(c, a, inner, b),
        }
        r += match rows - r {
            4 | 8 => 4,
            left => left.min(6),
        };
    }
}
