//! The gated delta rule in chunks: a handful of small matrix products for each head and chunk.
//!
//! The formula and its order are those of the reference, with multiplications and additions
//! fused. Where the reference sums over the rows down to the diagonal, so does this: a product
//! with a triangle goes row by row, rather than over zeros above the diagonal, which an
//! infinity would turn into NaN.

use half::bf16;

use super::super::isa::Avx2;
use super::super::split::strips;
use super::matrix::Matrix;
use crate::kernels::reference::{CHUNK, query_scale, unit};
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
        self.solve(rows);
        self.correct();
        self.output(rows);
        self.advance(rows);
        for (i, out) in outs.iter_mut().enumerate() {
            for (y, o) in out.iter_mut().zip(self.o.row(i)) {
                *y = bf16::from_f32(*o);
            }
        }
    }

    /// `Q`, `K^T`, `beta K`, `beta V`, `beta K ∘ exp(G)` and `G`.
    fn read(&mut self, inputs: DeltaInputs<'_>, head: usize, first: usize, rows: usize) {
        let DeltaDims { value_heads, key_dim, value_dim, .. } = self.dims;
        let (q_at, k_at, v_at) = self.dims.offsets(head);
        for matrix in [&mut self.q, &mut self.beta_k, &mut self.w, &mut self.v] {
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
            let grown = cumulative.exp();

            let q = unit(&row[q_at..q_at + key_dim], query_scale(self.dims));
            self.q.row_mut(i)[..key_dim].copy_from_slice(&q);
            let k = unit(&row[k_at..k_at + key_dim], 1.0);
            let (beta_k, w) = (self.beta_k.row_mut(i), self.w.row_mut(i));
            for (d, k) in k.iter().enumerate() {
                self.k_t.row_mut(d)[i] = *k;
                beta_k[d] = k * beta;
                // Solved with its sign turned: only `-W` is used.
                w[d] = -(beta_k[d] * grown);
            }
            let value = &row[v_at..v_at + value_dim];
            for (v, value) in self.v.row_mut(i).iter_mut().zip(value) {
                *v = value.to_f32() * beta;
            }
        }
    }

    /// `-A` below the diagonal, and `Q K^T ∘ D` up to it.
    fn multiply_keys(&mut self, rows: usize) {
        let key_dim = self.dims.key_dim;
        self.a.clear(rows);
        self.a.add_product(self.isa, &self.beta_k, key_dim, &self.k_t);
        self.scores.clear(rows);
        self.scores.add_product(self.isa, &self.q, key_dim, &self.k_t);
        for i in 0..rows {
            let (a, scores) = (self.a.row_mut(i), self.scores.row_mut(i));
            // `A` ends before the diagonal; what is done to it there is not read.
            for j in 0..=i {
                let decay = (self.g[i] - self.g[j]).exp();
                a[j] *= -decay;
                scores[j] *= decay;
            }
        }
    }

    /// `U` and `-W`, from the first row down.
    fn solve(&mut self, rows: usize) {
        for i in 1..rows {
            let a = &self.a.row(i)[..i];
            self.v.row_add_product_above(self.isa, i, a);
            self.w.row_add_product_above(self.isa, i, a);
        }
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
        for i in 0..rows {
            let scores = &self.scores.row(i)[..=i];
            self.o.row_add_product(self.isa, i, scores, &self.v);
        }
    }

    /// `S = exp(G_last) S + (K ∘ exp(G_last - G))^T V'`.
    fn advance(&mut self, rows: usize) {
        let last = self.g[rows - 1];
        let decays: Vec<f32> = self.g.iter().map(|g| (last - g).exp()).collect();
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
