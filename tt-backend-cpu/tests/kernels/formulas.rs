//! The plain kernels against the formulas, computed in f64 with the roundings that a kernel's
//! documentation names, and against values made by hand.

use half::bf16;
use tt_backend_cpu::kernels::reference::*;
use tt_backend_cpu::kernels::{
    AttentionCache, AttentionDims, AttentionInputs, ConvDims, DeltaDims, DeltaInputs, LinearDims, RopeDims,
    Rows, Span,
};

use crate::support::{F32_ROUNDING, Kind, Values, assert_near, rounding, wide};

const EPS: f32 = 1e-6;

fn bf(x: f64) -> bf16 {
    bf16::from_f64(x)
}

fn zeros(count: usize) -> Vec<bf16> {
    vec![bf16::ZERO; count]
}

fn bf16s(values: &[f64]) -> Vec<bf16> {
    values.iter().copied().map(bf).collect()
}

fn random(seed: u64, count: usize) -> Vec<bf16> {
    Values::new(seed, Kind::Finite).bf16s(count)
}

/// Where f32 and f64 fall on two sides of a rounding boundary, one ulp; else the same.
#[track_caller]
fn assert_rounded(found: bf16, exact: f64, what: &str) {
    let bound = rounding(exact) + exact.abs() * 20.0 * F32_ROUNDING;
    assert_near(found.to_f32(), exact, bound, what);
}

#[test]
fn linear_by_hand() {
    let x = bf16s(&[1.0, 2.0, 3.0, -1.0, 0.5, 0.0]);
    let w = bf16s(&[1.0, 0.0, -1.0, 0.25, 4.0, 2.0]);
    let dims = LinearDims { rows: 2, inputs: 3, outputs: 2 };
    let mut out = [0.0; 4];
    linear_f32(dims, &x, &w, &mut out);
    assert_eq!(out, [-2.0, 14.25, -1.0, 1.75]);
}

#[test]
fn linear_rounds_once_at_the_end() {
    // 256 + 1 is no bf16; a sum that rounded as it went would stay at 256.
    let x = bf16s(&[256.0, 1.0, 1.0]);
    let w = bf16s(&[1.0, 1.0, 1.0]);
    let mut out = zeros(1);
    linear(LinearDims { rows: 1, inputs: 3, outputs: 1 }, &x, &w, &mut out);
    assert_eq!(out[0].to_f32(), 258.0);
}

#[test]
fn rms_norm_is_zero_centred() {
    let (x, w) = (random(1, 3 * 50), random(2, 50));
    let mut out = zeros(x.len());
    rms_norm(Rows::contiguous(&x, 3, 50), &w, EPS, &mut out);
    for (x, out) in x.chunks(50).zip(out.chunks(50)) {
        let mean = x.iter().map(|&x| wide(x) * wide(x)).sum::<f64>() / 50.0;
        for i in 0..50 {
            let exact = wide(x[i]) / (mean + f64::from(EPS)).sqrt() * (1.0 + wide(w[i]));
            assert_rounded(out[i], exact, "rms_norm");
        }
    }
}

#[test]
fn add_rounds_to_even() {
    let mut out = zeros(2);
    add(&bf16s(&[256.0, 258.0]), &bf16s(&[1.0, 1.0]), &mut out);
    assert_eq!(out, bf16s(&[256.0, 260.0]), "257 and 259 are ties");
}

#[test]
fn swiglu_rounds_twice() {
    let (gate, up) = (random(3, 500), random(4, 500));
    let mut out = zeros(500);
    swiglu(&gate, &up, &mut out);
    for i in 0..500 {
        let silu = wide(gate[i]) / (1.0 + (-wide(gate[i])).exp());
        assert_eq!(out[i], bf(wide(bf(silu)) * wide(up[i])));
    }
}

#[test]
fn sigmoid_gate_rounds_twice() {
    let (x, pairs) = (random(5, 4 * 20), random(6, 4 * 40));
    let mut out = zeros(x.len());
    sigmoid_gate(&x, Rows::strided(&pairs, 4, 20, 40, 20), &mut out);
    for row in 0..4 {
        for i in 0..20 {
            let sigmoid = 1.0 / (1.0 + (-wide(pairs[row * 40 + 20 + i])).exp());
            let at = row * 20 + i;
            assert_eq!(out[at], bf(wide(bf(sigmoid)) * wide(x[at])));
        }
    }
}

#[test]
fn rope_tables_are_cosines_of_angles() {
    let (mut cos, mut sin) = (zeros(6 * 64), zeros(6 * 64));
    rope_tables(1000, 64, 1e7, &mut cos, &mut sin);
    for t in 0..6 {
        for j in 0..64 {
            let inv_freq = 1e7f64.powf(-((j % 32) as f64) / 32.0);
            let angle = (1000 + t) as f64 * inv_freq;
            // The angle is an f32: an angle of 1000 is off by up to 3e-5, and a little for the
            // power and the product.
            let bound = angle * 4.0 * F32_ROUNDING;
            let at = t * 64 + j;
            assert_near(cos[at].to_f32(), angle.cos(), bound + rounding(angle.cos()), "cos");
            assert_near(sin[at].to_f32(), angle.sin(), bound + rounding(angle.sin()), "sin");
        }
    }
}

#[test]
fn rope_by_hand() {
    let dims = RopeDims { heads: 1, head_dim: 5, rotary: 4 };
    let cos = bf16s(&[0.0, 0.5, 0.0, 0.5]);
    let sin = bf16s(&[1.0, 0.25, 1.0, 0.25]);
    let mut x = bf16s(&[2.0, 4.0, 3.0, 8.0, 7.0]);
    rope(dims, &cos, &sin, &mut x);
    // The pairs are (2, 3) and (4, 8).
    assert_eq!(x, bf16s(&[-3.0, 0.0, 2.0, 5.0, 7.0]));
}

#[test]
fn rope_rounds_products_and_sums() {
    let dims = RopeDims { heads: 3, head_dim: 24, rotary: 16 };
    let (mut cos, mut sin) = (zeros(2 * 16), zeros(2 * 16));
    rope_tables(5, 16, 100.0, &mut cos, &mut sin);
    let x = random(7, 2 * 3 * 24);
    let mut out = x.clone();
    rope(dims, &cos, &sin, &mut out);
    for (i, (x, out)) in x.chunks(24).zip(out.chunks(24)).enumerate() {
        let table = i / 3 * 16;
        for j in 0..8 {
            let (a, b) = (wide(x[j]), wide(x[j + 8]));
            let (c, s) = (wide(cos[table + j]), wide(sin[table + j]));
            assert_eq!(out[j], bf(wide(bf(a * c)) + wide(bf(-b * s))));
            assert_eq!(out[j + 8], bf(wide(bf(b * c)) + wide(bf(a * s))));
        }
        assert_eq!(out[16..], x[16..]);
    }
}

#[test]
fn attention_is_a_causal_softmax() {
    let dims = AttentionDims { heads: 6, kv_heads: 2, head_dim: 16, context: 12 };
    let (start, rows, width) = (4, 5, 16);
    let q = random(8, rows * 6 * width);
    let (k, v) = (random(9, rows * 2 * width), random(10, rows * 2 * width));
    let mut k_cache = random(11, 2 * 12 * width);
    let mut v_cache = random(12, 2 * 12 * width);
    let before = k_cache.clone();
    let mut out = zeros(q.len());
    attention(
        dims,
        Span { start, rows },
        AttentionInputs { q: &q, k: &k, v: &v },
        AttentionCache { k: &mut k_cache, v: &mut v_cache },
        &mut out,
    );
    for kv in 0..2 {
        let head = kv * 12 * width;
        assert_eq!(k_cache[head..head + 4 * width], before[head..head + 4 * width]);
        for t in 0..rows {
            let (cached, new) = (head + (start + t) * width, (t * 2 + kv) * width);
            assert_eq!(k_cache[cached..cached + width], k[new..new + width]);
            assert_eq!(v_cache[cached..cached + width], v[new..new + width]);
        }
    }
    for t in 0..rows {
        for h in 0..6 {
            let at = (t * 6 + h) * width;
            let cached = |p: usize| (h / 3 * 12 + p) * width;
            let score = |p: usize| {
                let products = (0..width).map(|d| wide(q[at + d]) * wide(k_cache[cached(p) + d]));
                (products.sum::<f64>() / 4.0).exp()
            };
            let total: f64 = (0..=start + t).map(score).sum();
            for d in 0..width {
                let weighted = (0..=start + t).map(|p| score(p) * wide(v_cache[cached(p) + d]));
                let exact = weighted.clone().sum::<f64>() / total;
                // Each weight is rounded to bf16.
                let size = weighted.map(f64::abs).sum::<f64>() / total;
                assert_near(
                    out[at + d].to_f32(),
                    exact,
                    1.01 * rounding(size) + rounding(exact),
                    "attention",
                );
            }
        }
    }
}

#[test]
fn attention_divides_by_the_sum_before_rounding_the_exponentials() {
    // Two positions, with scores 0 and ln(1 + 1/256) below the maximum or so: e of the second
    // is no bf16, and the sum holds it unrounded.
    let dims = AttentionDims { heads: 1, kv_heads: 1, head_dim: 1, context: 2 };
    let (mut k, mut v) = (bf16s(&[0.0, 0.0]), bf16s(&[1.0, 0.0]));
    let mut out = zeros(1);
    attention(
        dims,
        Span { start: 1, rows: 1 },
        AttentionInputs { q: &bf16s(&[1.0]), k: &bf16s(&[0.01]), v: &bf16s(&[0.0]) },
        AttentionCache { k: &mut k, v: &mut v },
        &mut out,
    );
    let e = (-wide(bf(0.01))).exp();
    assert_rounded(out[0], wide(bf(e)) / (1.0 + e), "attention");
}

#[test]
fn conv_by_hand() {
    // Taps 1, 10, 100 on rows -2, -1, 0 from the state and 1, 2.
    let dims = ConvDims { rows: 2, channels: 1, kernel: 3 };
    let w = bf16s(&[1.0, 10.0, 100.0]);
    let mut state = bf16s(&[-2.0, -1.0]);
    let mut out = zeros(3);
    causal_conv(dims, &bf16s(&[1.0, -3.0, 9.0]), &w, &mut state, &mut out);
    assert_eq!(out, bf16s(&[88.0, 0.0, 0.0]), "88, silu(-291) = 0, and a row that is not valid");
    assert_eq!(state, bf16s(&[1.0, -3.0]));
}

#[test]
fn conv_rounds_before_silu() {
    let dims = ConvDims { rows: 9, channels: 7, kernel: 4 };
    let (x, w) = (random(13, 9 * 7), random(14, 7 * 4));
    let before = random(15, 3 * 7);
    let (mut state, mut out) = (before.clone(), zeros(x.len()));
    causal_conv(dims, &x, &w, &mut state, &mut out);
    let all = [before, x].concat();
    for t in 0..9 {
        for c in 0..7 {
            let sum: f64 = (0..4).map(|j| wide(w[c * 4 + j]) * wide(all[(t + j) * 7 + c])).sum();
            let rounded = wide(bf(sum));
            assert_eq!(out[t * 7 + c], bf(rounded / (1.0 + (-rounded).exp())));
        }
    }
    assert_eq!(state, all[9 * 7..]);
}

#[test]
fn conv_state_with_fewer_rows_than_it_holds() {
    let dims = ConvDims { rows: 1, channels: 2, kernel: 4 };
    let mut state = bf16s(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let w = random(16, 8);
    causal_conv(dims, &bf16s(&[7.0, 8.0]), &w, &mut state, &mut zeros(2));
    assert_eq!(state, bf16s(&[3.0, 4.0, 5.0, 6.0, 7.0, 8.0]));
}

#[test]
fn gates_in_f64() {
    let (a, b) = (random(17, 30), random(18, 30));
    let a_log = Values::new(19, Kind::Finite).f32s(10);
    let mut dt_bias = random(20, 10);
    dt_bias[3] = bf(25.0);
    let (mut beta, mut g) = (zeros(30), [0.0; 30]);
    gdn_gates(&a, &b, &a_log, &dt_bias, &mut beta, &mut g);
    for i in 0..30 {
        assert_eq!(beta[i], bf(1.0 / (1.0 + (-wide(b[i])).exp())));
        let x = wide(a[i]) + wide(dt_bias[i % 10]);
        let softplus = x.exp().ln_1p();
        let exact = -f64::from(a_log[i % 10]).exp() * softplus;
        assert_near(g[i], exact, exact.abs() * 10.0 * F32_ROUNDING, "g");
    }
}

/// Steps of the recurrence in f64: the final state, and the outputs.
fn delta_in_f64(dims: DeltaDims, inputs: DeltaInputs<'_>, rows: usize) -> (Vec<f64>, Vec<f64>) {
    let DeltaDims { key_heads, value_heads, key_dim, value_dim } = dims;
    let mut states = vec![0.0; value_heads * key_dim * value_dim];
    let mut outs = Vec::new();
    for t in 0..rows {
        let row = &inputs.qkv[t * dims.channels()..(t + 1) * dims.channels()];
        for head in 0..value_heads {
            let state = &mut states[head * key_dim * value_dim..(head + 1) * key_dim * value_dim];
            let key_head = head * key_heads / value_heads;
            let unit = |at: usize| -> Vec<f64> {
                let u: Vec<f64> = row[at..at + key_dim].iter().map(|&u| wide(u)).collect();
                let norm = (u.iter().map(|u| u * u).sum::<f64>() + 1e-6).sqrt();
                u.iter().map(|u| u / norm).collect()
            };
            let q = unit(key_head * key_dim);
            let k = unit((key_heads + key_head) * key_dim);
            let v = &row[2 * key_heads * key_dim + head * value_dim..][..value_dim];
            let decay = f64::from(inputs.g[t * value_heads + head]).exp();
            let beta = wide(inputs.beta[t * value_heads + head]);
            for (c, v) in v.iter().enumerate() {
                let s = |d: usize| d * value_dim + c;
                let recalled: f64 = (0..key_dim).map(|d| decay * state[s(d)] * k[d]).sum();
                let change = (wide(*v) - recalled) * beta;
                for d in 0..key_dim {
                    state[s(d)] = decay * state[s(d)] + k[d] * change;
                }
                let o: f64 = (0..key_dim).map(|d| state[s(d)] * q[d]).sum();
                outs.push(o / (key_dim as f64).sqrt());
            }
        }
    }
    (states, outs)
}

#[test]
fn delta_rule_in_f64() {
    let dims = DeltaDims { key_heads: 2, value_heads: 6, key_dim: 16, value_dim: 12 };
    let rows = 130;
    let mut values = Values::new(21, Kind::Finite);
    let qkv = values.bf16s(rows * dims.channels());
    let beta = values.strengths(rows * 6);
    let g: Vec<f32> = values.decays(rows * 6).iter().map(|g| g / 5.0).collect();
    let inputs = DeltaInputs { qkv: &qkv, beta: &beta, g: &g };
    let (exact_state, exact_out) = delta_in_f64(dims, inputs, rows);

    let check = |state: &[f32], out: &[bf16]| {
        for (s, exact) in state.iter().zip(&exact_state) {
            assert_near(*s, *exact, 2e-6, "state");
        }
        for (o, exact) in out.iter().zip(&exact_out) {
            assert_near(o.to_f32(), *exact, 2e-6 + rounding(*exact), "out");
        }
    };

    let mut state = vec![0.0; exact_state.len()];
    let mut out = zeros(exact_out.len());
    for t in 0..rows {
        let row = DeltaInputs {
            qkv: &qkv[t * dims.channels()..(t + 1) * dims.channels()],
            beta: &beta[t * 6..(t + 1) * 6],
            g: &g[t * 6..(t + 1) * 6],
        };
        delta_step(dims, row, &mut state, &mut out[t * 72..(t + 1) * 72]);
    }
    check(&state, &out);

    let mut state = vec![0.0; exact_state.len()];
    let mut out = zeros(exact_out.len());
    delta_chunk(dims, rows, inputs, &mut state, &mut out);
    check(&state, &out);
}

#[test]
fn delta_step_by_hand() {
    // A unit key and query along the first axis; half of the old value decays, and half of the
    // error is corrected: 4 -> 2, then 2 + (10 - 2) / 2 = 6; the query is scaled by 1/sqrt(4).
    let dims = DeltaDims { key_heads: 1, value_heads: 1, key_dim: 4, value_dim: 1 };
    let qkv = bf16s(&[1024.0, 0.0, 0.0, 0.0, 1024.0, 0.0, 0.0, 0.0, 10.0]);
    let inputs = DeltaInputs { qkv: &qkv, beta: &bf16s(&[0.5]), g: &[0.5f32.ln()] };
    let mut state = [4.0, 8.0, 0.0, 0.0];
    let mut out = zeros(1);
    delta_step(dims, inputs, &mut state, &mut out);
    assert_eq!(state, [6.0, 4.0, 0.0, 0.0]);
    assert_eq!(out, bf16s(&[3.0]));
}

#[test]
fn gated_norm_has_plain_weights_and_three_roundings() {
    let (x, z) = (random(22, 3 * 40), random(23, 3 * 40));
    let w = Values::new(24, Kind::Finite).f32s(40);
    let mut out = zeros(x.len());
    gated_norm(&x, &z, &w, EPS, &mut out);
    for (i, y) in out.iter().enumerate() {
        let row = &x[i / 40 * 40..][..40];
        let mean = row.iter().map(|&x| wide(x) * wide(x)).sum::<f64>() / 40.0;
        let n = bf(wide(x[i]) / (mean + f64::from(EPS)).sqrt());
        let n = bf(wide(n) * f64::from(w[i % 40]));
        let silu = wide(z[i]) / (1.0 + (-wide(z[i])).exp());
        assert_rounded(*y, wide(n) * silu, "gated_norm");
    }
}
