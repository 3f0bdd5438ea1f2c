//! The gated delta rule in chunks: a handful of small matrix products for each head and chunk.
//!
//! The formula and its order are those of the reference, with multiplications and additions
//! fused. Where the reference sums over the rows down to the diagonal, so does this, rather than over
//! zeros above the diagonal, which an infinity would turn into NaN.

use std::arch::x86_64::*;

use half::bf16;

use super::super::isa::Avx2;
use super::super::split::strips;
use super::exp::exp;
use super::lanes::{BLOCK, load, load_some, rounded, store, store_bf16, sum, widened};
use super::matrix::Matrix;
use crate::kernels::reference::{CHUNK, query_scale, rsqrt};
use crate::kernels::{DeltaDims, DeltaInputs};
use crate::pool::Pool;

/// Multiplications in about a nanosecond.
const SPEED: usize = 8;

/// See [`reference::delta_chunk`](crate::kernels::reference::delta_chunk).
pub(in super::super) fn delta_chunk(
    isa: Avx2,
    pool: &Pool,
    dims: DeltaDims,
    rows: usize,
    inputs: DeltaInputs<'_>,
    state: &mut [f32],
    out: &mut [bf16],
) {
    let DeltaInputs { qkv, beta, g } = inputs;
    let t = beta.len() / dims.value_heads.max(1);
    dims.check(t, [qkv.len(), beta.len(), g.len()], state.len(), out.len());
    assert!(rows <= t, "{rows} valid rows of {t}");
    if dims.head_state() == 0 {
        return out.fill(bf16::ZERO);
    }
    let states = state.chunks_exact_mut(dims.head_state());
    let outs = strips(out, dims.value_heads * dims.value_dim, dims.value_dim);
    let mut heads: Vec<_> = states.zip(outs).enumerate().collect();
    let products = 3 * dims.head_state() + CHUNK * (3 * dims.key_dim + 2 * dims.value_dim) / 2;
    let block = pool.block(heads.len(), rows * products / SPEED);
    pool.for_each(heads.chunks_mut(block), |_, heads| {
        let mut chunk = Chunk::new(isa, dims);
        for (head, (state, outs)) in heads {
            chunk.read_state(state);
            for first in (0..rows).step_by(CHUNK) {
                let outs = &mut outs[first..rows.min(first + CHUNK)];
                chunk.run(inputs, *head, first, outs);
            }
            chunk.write_state(state);
            for out in &mut outs[rows..] {
                out.fill(bf16::ZERO);
            }
        }
    });
}

/// The matrices of one head and chunk; names as in the formula.
struct Chunk {
    isa: Avx2,
    dims: DeltaDims,
    /// The state, `Dk × Dv`.
    s: Matrix,
    /// `Q`, then `Q ∘ exp(G)`: `CHUNK × Dk`.
    q: Matrix,
    /// `beta K`: `CHUNK × Dk`.
    beta_k: Matrix,
    /// `K`: `CHUNK × Dk`.
    k: Matrix,
    /// `K^T`, then `(K ∘ exp(G_last - G))^T`: `Dk × CHUNK`.
    k_t: Matrix,
    /// `(beta K) K^T`, then `-A` below the diagonal: `CHUNK × CHUNK`.
    a: Matrix,
    /// `Q K^T`, then `Q K^T ∘ D` up to the diagonal: `CHUNK × CHUNK`.
    scores: Matrix,
    /// `-W`: `CHUNK × Dk`.
    w: Matrix,
    /// `U`, then `V'`: `CHUNK × Dv`.
    v: Matrix,
    /// The output: `CHUNK × Dv`.
    o: Matrix,
    /// `G`.
    g: Vec<f32>,
}

impl Chunk {
    fn new(isa: Avx2, dims: DeltaDims) -> Self {
        let keys = Matrix::zeros(CHUNK, dims.key_dim);
        let values = Matrix::zeros(CHUNK, dims.value_dim);
        let square = Matrix::zeros(CHUNK, CHUNK);
        Self {
            isa,
            dims,
            s: Matrix::zeros(dims.key_dim, dims.value_dim),
            q: keys.clone(),
            beta_k: keys.clone(),
            k: keys.clone(),
            k_t: Matrix::zeros(dims.key_dim, CHUNK),
            a: square.clone(),
            scores: square,
            w: keys,
            v: values.clone(),
            o: values,
            g: Vec::with_capacity(CHUNK),
        }
    }

    fn read_state(&mut self, state: &[f32]) {
        let width = self.dims.value_dim;
        for (d, row) in state.chunks_exact(width).enumerate() {
            self.s.row_mut(d)[..width].copy_from_slice(row);
        }
    }

    fn write_state(&self, state: &mut [f32]) {
        let width = self.dims.value_dim;
        for (d, row) in state.chunks_exact_mut(width).enumerate() {
            row.copy_from_slice(&self.s.row(d)[..width]);
        }
    }

    /// The rows from `first` on, one for each of `outs`.
    fn run(&mut self, inputs: DeltaInputs<'_>, head: usize, first: usize, outs: &mut [&mut [bf16]]) {
        let rows = outs.len();
        self.read(inputs, head, first, rows);
        self.multiply_keys(rows);
        self.solve();
        self.correct();
        self.output(rows);
        self.advance(rows);
        for (i, out) in outs.iter_mut().enumerate() {
            // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
            unsafe { round(self.o.row(i), out) }
        }
    }

    /// `Q`, `K^T`, `beta K`, `beta V`, `beta K ∘ exp(G)` and `G`.
    fn read(&mut self, inputs: DeltaInputs<'_>, head: usize, first: usize, rows: usize) {
        let DeltaDims { value_heads, key_dim, value_dim, .. } = self.dims;
        let (q_at, k_at, v_at) = self.dims.offsets(head);
        for matrix in [&mut self.q, &mut self.k, &mut self.beta_k, &mut self.w, &mut self.v] {
            matrix.clear(rows);
        }
        self.g.clear();
        let mut cumulative = 0.0;
        for i in 0..rows {
            let row = &inputs.qkv[(first + i) * self.dims.channels()..][..self.dims.channels()];
            let gate = (first + i) * value_heads + head;
            let beta = inputs.beta[gate].to_f32();
            cumulative += inputs.g[gate];
            self.g.push(cumulative);
            // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
            unsafe {
                unit(&row[q_at..q_at + key_dim], query_scale(self.dims), self.q.row_mut(i));
                unit(&row[k_at..k_at + key_dim], 1.0, self.k.row_mut(i));
                scaled(self.k.row(i), beta, self.beta_k.row_mut(i));
                // Solved with its sign turned: only `-W` is used.
                scaled(self.beta_k.row(i), -cumulative.exp(), self.w.row_mut(i));
                widen(&row[v_at..v_at + value_dim], beta, self.v.row_mut(i));
            }
        }
        self.k_t.set_transposed(self.isa, &self.k);
    }

    /// `-A` below the diagonal, and `Q K^T ∘ D` up to it.
    fn multiply_keys(&mut self, rows: usize) {
        let key_dim = self.dims.key_dim;
        self.a.clear(rows);
        self.a.add_lower_product(self.isa, &self.beta_k, key_dim, &self.k_t);
        self.scores.clear(rows);
        self.scores.add_lower_product(self.isa, &self.q, key_dim, &self.k_t);
        for i in 0..rows {
            let (a, scores) = (self.a.row_mut(i), self.scores.row_mut(i));
            // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
            unsafe { decay(self.g[i], &self.g[..=i], a, scores) }
        }
    }

    /// `U` and `-W`, from the first row down.
    fn solve(&mut self) {
        self.v.substitute(self.isa, &self.a);
        self.w.substitute(self.isa, &self.a);
    }

    /// `V' = U - W S`.
    fn correct(&mut self) {
        self.v.add_product(self.isa, &self.w, self.dims.key_dim, &self.s);
    }

    /// `(Q ∘ exp(G)) S + (Q K^T ∘ D) V'`.
    fn output(&mut self, rows: usize) {
        for i in 0..rows {
            let grown = self.g[i].exp();
            self.q.row_mut(i).iter_mut().for_each(|q| *q *= grown);
        }
        self.o.clear(rows);
        self.o.add_product(self.isa, &self.q, self.dims.key_dim, &self.s);
        self.o.add_triangle_product(self.isa, &self.scores, &self.v);
    }

    /// `S = exp(G_last) S + (K ∘ exp(G_last - G))^T V'`.
    fn advance(&mut self, rows: usize) {
        let last = self.g[rows - 1];
        let mut decays = [0.0; CHUNK];
        // SAFETY: an `Avx2` exists only where the CPU has AVX2 and FMA.
        unsafe { exponentials(last, &self.g, &mut decays) }
        let decay = last.exp();
        for d in 0..self.dims.key_dim {
            self.s.row_mut(d).iter_mut().for_each(|s| *s *= decay);
            for (k, decay) in self.k_t.row_mut(d).iter_mut().zip(&decays) {
                *k *= decay;
            }
        }
        self.s.add_product(self.isa, &self.k_t, rows, &self.v);
    }
}

/// `u rsqrt(sum u^2 + 1e-6) scale`.
#[target_feature(enable = "avx2,fma")]
fn unit(u: &[bf16], scale: f32, to: &mut [f32]) {
    widen(u, 1.0, to);
    let mut squares = _mm256_setzero_ps();
    for x in to.as_chunks::<8>().0 {
        squares = _mm256_fmadd_ps(load(x), load(x), squares);
    }
    let norm = rsqrt(sum(squares) + 1e-6);
    to.iter_mut().for_each(|x| *x = *x * norm * scale);
}

/// `x scale`.
#[target_feature(enable = "avx2,fma")]
fn scaled(x: &[f32], scale: f32, to: &mut [f32]) {
    for (to, x) in to.iter_mut().zip(x) {
        *to = x * scale;
    }
}

/// `x scale`, and zeros behind it up to a multiple of eight.
#[target_feature(enable = "avx2,fma")]
fn widen(x: &[bf16], scale: f32, to: &mut [f32]) {
    let scale = _mm256_set1_ps(scale);
    for (x, to) in x.chunks(8).zip(to.as_chunks_mut::<8>().0) {
        store(to, _mm256_mul_ps(widened(x), scale));
    }
}

/// `bf(x)`.
#[target_feature(enable = "avx2,fma")]
fn round(x: &[f32], to: &mut [bf16]) {
    for (x, to) in x.chunks(BLOCK).zip(to.chunks_mut(BLOCK)) {
        store_bf16(to, rounded(load_some(x)), rounded(load_some(&x[8.min(x.len())..])));
    }
}

/// `to[i] = exp(g - gs[i])`, or zero where that would be subnormal: the CPU takes a hundred times
/// as long to multiply with such numbers, and no result is large enough to notice them.
#[target_feature(enable = "avx2,fma")]
fn exponentials(g: f32, gs: &[f32], to: &mut [f32; CHUNK]) {
    for (gs, to) in gs.chunks(8).zip(to.as_chunks_mut::<8>().0) {
        store(to, exp(_mm256_sub_ps(_mm256_set1_ps(g), load_some(gs))));
    }
}

/// Multiplies the elements of a row of `A` with `-exp(g - gs)`, and those of a row of scores with
/// `exp(g - gs)`, up to the diagonal. `A` ends before it; what is done to it there is not read.
#[target_feature(enable = "avx2,fma")]
fn decay(g: f32, gs: &[f32], a: &mut [f32], scores: &mut [f32]) {
    let mut decays = [0.0; CHUNK];
    exponentials(g, gs, &mut decays);
    for ((a, scores), decay) in a.iter_mut().zip(scores).zip(&decays[..gs.len()]) {
        *a *= -decay;
        *scores *= decay;
    }
}
