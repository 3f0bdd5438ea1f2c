//! Sums and gated products, element by element: the bits of the plain kernels, sixteen at a time.

use std::arch::x86_64::*;

use half::bf16;

use super::super::isa::Avx2;
use super::super::tables::{SIGMOID, SILU, Table};
use super::lanes::{BLOCK, evens, load_bf16, odds, paired, rounded, store_block};
use crate::kernels::Rows;
use crate::kernels::dims::check;
use crate::pool::Pool;

/// Nanoseconds for sixteen elements in the caches.
const SUM: usize = 4;
/// Nanoseconds for sixteen elements that are looked up.
const LOOKUP: usize = 12;

/// See [`reference::add`](crate::kernels::reference::add).
pub(in super::super) fn add(_: Avx2, pool: &Pool, a: &[bf16], b: &[bf16], out: &mut [bf16]) {
    check("add b", b.len(), a.len());
    check("add out", out.len(), a.len());
    let block = pool.block(out.len().div_ceil(BLOCK), SUM) * BLOCK;
    pool.for_each(out.chunks_mut(block), |i, out| {
        let part = i * block..i * block + out.len();
        // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
        unsafe { sums(&a[part.clone()], &b[part], out) }
    });
}

/// How many values are looked up before the first of them is used: what was just stored one by one
/// cannot be loaded as a block right away.
const STRETCH: usize = 32 * BLOCK;

/// See [`reference::swiglu`](crate::kernels::reference::swiglu).
pub(in super::super) fn swiglu(_: Avx2, pool: &Pool, gate: &[bf16], up: &[bf16], out: &mut [bf16]) {
    check("swiglu up", up.len(), gate.len());
    check("swiglu out", out.len(), gate.len());
    let block = pool.block(out.len().div_ceil(BLOCK), LOOKUP) * BLOCK;
    pool.for_each(out.chunks_mut(block), |i, out| {
        let part = i * block..i * block + out.len();
        // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
        unsafe { gated(&SILU, &gate[part.clone()], &up[part], out) }
    });
}

/// See [`reference::sigmoid_gate`](crate::kernels::reference::sigmoid_gate).
pub(in super::super) fn sigmoid_gate(_: Avx2, pool: &Pool, x: &[bf16], gate: Rows<'_>, out: &mut [bf16]) {
    let width = gate.width();
    check("sigmoid_gate x", x.len(), gate.count() * width);
    check("sigmoid_gate out", out.len(), x.len());
    if width == 0 {
        return;
    }
    let block = pool.block(gate.count(), width.div_ceil(BLOCK) * LOOKUP);
    pool.for_each(out.chunks_mut(block * width), |i, out| {
        for (j, out) in out.chunks_exact_mut(width).enumerate() {
            let row = i * block + j;
            // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
            unsafe { gated(&SIGMOID, gate.row(row), &x[row * width..(row + 1) * width], out) }
        }
    });
}

/// `bf(a + b)`.
#[target_feature(enable = "avx2,fma")]
fn sums(a: &[bf16], b: &[bf16], out: &mut [bf16]) {
    for ((a, b), out) in a.chunks(BLOCK).zip(b.chunks(BLOCK)).zip(out.chunks_mut(BLOCK)) {
        let (a, b) = (load_bf16(a), load_bf16(b));
        let even = _mm256_add_ps(evens(a), evens(b));
        let odd = _mm256_add_ps(odds(a), odds(b));
        store_block(out, paired(rounded(even), rounded(odd)));
    }
}

/// `bf(table(gate) x)`.
#[target_feature(enable = "avx2,fma")]
fn gated(table: &Table<bf16>, gate: &[bf16], x: &[bf16], out: &mut [bf16]) {
    for ((gate, x), out) in gate.chunks(STRETCH).zip(x.chunks(STRETCH)).zip(out.chunks_mut(STRETCH)) {
        for (y, gate) in out.iter_mut().zip(gate) {
            *y = table.at(*gate);
        }
        for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            let (gate, x) = (load_bf16(out), load_bf16(x));
            let even = _mm256_mul_ps(evens(gate), evens(x));
            let odd = _mm256_mul_ps(odds(gate), odds(x));
            store_block(out, paired(rounded(even), rounded(odd)));
        }
    }
}
