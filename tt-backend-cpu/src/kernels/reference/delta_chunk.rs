//! The gated delta rule in chunks.

use half::bf16;

use super::delta_step::{query_scale, unit};
use super::scalar::{bf, sum};
use crate::kernels::{DeltaDims, DeltaInputs};

/// Rows of a chunk.
pub const CHUNK: usize = 64;

/// As many steps as there are valid rows, in chunks of [`CHUNK`]. Reference 3, "Gated
/// DeltaNet", steps 3 and 5: the same mathematics as [`delta_step`](super::delta_step), with
/// other roundings (a few times 1e-5).
///
/// For each value head and chunk, `G = cumsum(g)`, `D[i, j] = exp(G_i - G_j)` for `j <= i`,
/// `A = strict lower part of (beta K) K^T ∘ D`, all in f32:
///
/// - `(I + A) U = beta V` and `(I + A) W = beta K ∘ exp(G)`, solved from the first row down
/// - `V' = U - W S`
/// - `out = bf((Q ∘ exp(G)) S + (Q K^T ∘ D) V')`
/// - `S = exp(G_last) S + (K ∘ exp(G_last - G))^T V'`
///
/// The last chunk is shorter, where the reference pads it with zeros; a row of zeros changes
/// neither the state nor the rows above it. No row depends on one below it, also where values
/// are not finite.
///
/// - `inputs`: see [`DeltaInputs`]
/// - `state`: `value_heads × key_dim × value_dim`, zeros before the start of a sequence
/// - `out`: `T × value_heads × value_dim`; rows from `rows` on become zeros
///
/// # Panics
///
/// If a length disagrees.
pub fn delta_chunk(
    dims: DeltaDims,
    rows: usize,
    inputs: DeltaInputs<'_>,
    state: &mut [f32],
    out: &mut [bf16],
) {
    let t = inputs.beta.len() / dims.value_heads.max(1);
    let DeltaInputs { qkv, beta, g } = inputs;
    dims.check(t, [qkv.len(), beta.len(), g.len()], state.len(), out.len());
    assert!(rows <= t, "{rows} valid rows of {t}");
    let width = dims.value_dim;
    for head in 0..dims.value_heads {
        let state = &mut state[head * dims.head_state()..(head + 1) * dims.head_state()];
        for first in (0..rows).step_by(CHUNK) {
            let len = CHUNK.min(rows - first);
            let o = chunk_head(dims, inputs, head, first, len, state);
            for (i, o) in o.iter().enumerate() {
                let at = ((first + i) * dims.value_heads + head) * width;
                for (y, o) in out[at..at + width].iter_mut().zip(o) {
                    *y = bf(*o);
                }
            }
        }
    }
    out[rows * dims.value_heads * width..].fill(bf16::ZERO);
}

/// The chunk of rows `first .. first + len` of one value head, on its own state. Returns the
/// output before rounding, `len × value_dim`.
pub(in crate::kernels) fn chunk_head(
    dims: DeltaDims,
    inputs: DeltaInputs<'_>,
    head: usize,
    first: usize,
    len: usize,
    state: &mut [f32],
) -> Vec<Vec<f32>> {
    let DeltaDims { value_heads, key_dim, value_dim, .. } = dims;
    let (q_at, k_at, v_at) = dims.offsets(head);
    let row = |i: usize| &inputs.qkv[(first + i) * dims.channels()..][..dims.channels()];
    let gate = |i: usize| (first + i) * value_heads + head;
    let (mut q, mut k, mut v, mut beta, mut g) = (vec![], vec![], vec![], vec![], vec![]);
    let mut cumulative = 0.0;
    for i in 0..len {
        q.push(unit(&row(i)[q_at..q_at + key_dim], query_scale(dims)));
        k.push(unit(&row(i)[k_at..k_at + key_dim], 1.0));
        let value = &row(i)[v_at..v_at + value_dim];
        v.push(value.iter().map(|v| v.to_f32()).collect::<Vec<_>>());
        beta.push(inputs.beta[gate(i)].to_f32());
        cumulative += inputs.g[gate(i)];
        g.push(cumulative);
    }
    let decay = |i: usize, j: usize| (g[i] - g[j]).exp();

    // Rows of U, W and V' above row i are done when row i is begun.
    let mut u: Vec<Vec<f32>> = Vec::with_capacity(len);
    let mut w: Vec<Vec<f32>> = Vec::with_capacity(len);
    let mut corrected: Vec<Vec<f32>> = Vec::with_capacity(len);
    for i in 0..len {
        let key: Vec<f32> = k[i].iter().map(|k| k * beta[i]).collect();
        let a: Vec<f32> = (0..i).map(|j| dot(&key, &k[j]) * decay(i, j)).collect();
        let mut u_row: Vec<f32> = v[i].iter().map(|v| v * beta[i]).collect();
        let mut w_row: Vec<f32> = key.iter().map(|k| k * g[i].exp()).collect();
        for (j, a) in a.iter().enumerate() {
            add_scaled(&mut u_row, -a, &u[j]);
            add_scaled(&mut w_row, -a, &w[j]);
        }
        let mut v_row = u_row.clone();
        for (w, s) in w_row.iter().zip(state.chunks_exact(value_dim.max(1))) {
            add_scaled(&mut v_row, -w, s);
        }
        u.push(u_row);
        w.push(w_row);
        corrected.push(v_row);
    }

    let mut out = Vec::with_capacity(len);
    for i in 0..len {
        let mut o = vec![0.0; value_dim];
        for (q, s) in q[i].iter().zip(state.chunks_exact(value_dim.max(1))) {
            add_scaled(&mut o, q * g[i].exp(), s);
        }
        for (j, v) in corrected.iter().enumerate().take(i + 1) {
            add_scaled(&mut o, dot(&q[i], &k[j]) * decay(i, j), v);
        }
        out.push(o);
    }

    let last = len - 1;
    for (d, s) in state.chunks_exact_mut(value_dim.max(1)).enumerate() {
        s.iter_mut().for_each(|s| *s *= g[last].exp());
        for (i, v) in corrected.iter().enumerate() {
            add_scaled(s, k[i][d] * decay(last, i), v);
        }
    }
    out
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    sum(a.iter().zip(b).map(|(a, b)| a * b))
}

/// `y += scale x`.
fn add_scaled(y: &mut [f32], scale: f32, x: &[f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += scale * x;
    }
}
