//! The SIMD kernels against the plain ones, over shapes and values of all kinds; each of them on
//! one to three threads. Lengths begin at 0 and reach past several vectors.

use half::bf16;
use proptest::prelude::*;
use tt_backend_cpu::kernels::{
    AttentionCache, AttentionDims, AttentionInputs, ConvDims, DeltaDims, DeltaInputs, LinearDims, RopeDims,
    Rows, Span,
};

use crate::support::{F32_ROUNDING, Kind, Same, Values, all_ways, assert_near, rounding, wide};

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Finite), Just(Kind::Grid), Just(Kind::Wild)]
}

/// A seed and the kind of the values.
fn values() -> impl Strategy<Value = (u64, Kind)> {
    (any::<u64>(), kind())
}

/// Mostly short; some past the part of a product's sums that is computed at a time.
fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0..200usize, 1 => 500..1100usize]
}

fn zeros(count: usize) -> Vec<bf16> {
    vec![bf16::ZERO; count]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn linear(rows in 0..20usize, inputs in lengths(), outputs in 0..40usize, (seed, kind) in values()) {
        let dims = LinearDims { rows, inputs, outputs };
        let mut values = Values::new(seed, kind);
        let x = values.bf16s(rows * inputs);
        let w = values.bf16s(outputs * inputs);
        let [plain, _, simd] = all_ways(|kernels, pool| {
            let mut exact = vec![0.0; rows * outputs];
            kernels.linear_f32(pool, dims, &x, &w, &mut exact);
            let mut rounded = zeros(rows * outputs);
            kernels.linear(pool, dims, &x, &w, &mut rounded);
            let expected: Vec<bf16> = exact.iter().map(|&x| bf16::from_f32(x)).collect();
            rounded.assert_same(&expected, "one rounding of the f32 sum");
            exact
        });
        for t in 0..rows {
            for n in 0..outputs {
                let products = (0..inputs).map(|k| wide(x[t * inputs + k]) * wide(w[n * inputs + k]));
                let sum: f64 = products.clone().sum();
                let size: f64 = products.map(f64::abs).sum();
                // A sum of K terms rounds K times at most, each time by at most half an ulp of
                // a partial sum, which is at most `size`.
                let bound = inputs as f64 * F32_ROUNDING * size;
                let i = t * outputs + n;
                assert_near(plain[i], sum, bound, "plain");
                assert_near(simd[i], sum, bound, "simd");
            }
        }
        if kind == Kind::Grid {
            simd.assert_same(&plain, "sums are exact");
        }
    }

    #[test]
    fn rms_norm(count in 0..6usize, width in 0..70usize, (seed, kind) in values()) {
        let mut values = Values::new(seed, kind);
        let x = values.bf16s(count * 2 * width);
        let w = values.bf16s(width);
        for offset in [0, width] {
            let [plain, _, simd] = all_ways(|kernels, pool| {
                let rows = Rows::strided(&x, count, width, 2 * width, offset);
                let mut out = zeros(count * width);
                kernels.rms_norm(pool, rows, &w, 1e-6, &mut out);
                out
            });
            simd.assert_same(&plain, "rms_norm");
        }
    }

    #[test]
    fn element_by_element(count in 0..200usize, (seed, kind) in values()) {
        let mut values = Values::new(seed, kind);
        let (a, b) = (values.bf16s(count), values.bf16s(count));
        let [plain, _, simd] = all_ways(|kernels, pool| {
            let (mut sum, mut swiglu) = (zeros(count), zeros(count));
            kernels.add(pool, &a, &b, &mut sum);
            kernels.swiglu(pool, &a, &b, &mut swiglu);
            (sum, swiglu)
        });
        simd.assert_same(&plain, "add and swiglu");
    }

    #[test]
    fn sigmoid_gate(count in 0..6usize, width in 0..40usize, (seed, kind) in values()) {
        let mut values = Values::new(seed, kind);
        let x = values.bf16s(count * width);
        let pairs = values.bf16s(count * 2 * width);
        let [plain, _, simd] = all_ways(|kernels, pool| {
            let gate = Rows::strided(&pairs, count, width, 2 * width, width);
            let mut out = zeros(count * width);
            kernels.sigmoid_gate(pool, &x, gate, &mut out);
            out
        });
        simd.assert_same(&plain, "sigmoid_gate");
    }

    #[test]
    fn rope(
        t in 0..5usize, heads in 0..4usize, half in 0..10usize, pass in 0..5usize,
        start in 0..100_000usize, (seed, kind) in values(),
    ) {
        let dims = RopeDims { heads, head_dim: 2 * half + pass, rotary: 2 * half };
        let x = Values::new(seed, kind).bf16s(t * heads * dims.head_dim);
        let [plain, _, simd] = all_ways(|kernels, pool| {
            let (mut cos, mut sin) = (zeros(t * dims.rotary), zeros(t * dims.rotary));
            kernels.rope_tables(start, dims.rotary, 1e7, &mut cos, &mut sin);
            let mut x = x.clone();
            kernels.rope(pool, dims, &cos, &sin, &mut x);
            (cos, sin, x)
        });
        simd.assert_same(&plain, "rope");
    }

    #[test]
    fn attention(
        (kv_heads, group) in (1..4usize, 1..7usize),
        head_dim in prop_oneof![0..50usize, (0..4usize).prop_map(|blocks| 16 * blocks)],
        (start, t) in (0..40usize, 0..10usize),
        padding in 0..3usize, (seed, kind) in values(),
    ) {
        let rows = t.saturating_sub(padding);
        let dims = AttentionDims { heads: kv_heads * group, kv_heads, head_dim, context: 50 };
        let span = Span { start, rows };
        let mut values = Values::new(seed, kind);
        let q = values.bf16s(t * dims.heads * head_dim);
        let k = values.bf16s(t * kv_heads * head_dim);
        let v = values.bf16s(t * kv_heads * head_dim);
        let cached_k = values.bf16s(kv_heads * dims.context * head_dim);
        let cached_v = values.bf16s(kv_heads * dims.context * head_dim);
        let [plain, _, simd] = all_ways(|kernels, pool| {
            let (mut k_cache, mut v_cache) = (cached_k.clone(), cached_v.clone());
            let cache = AttentionCache { k: &mut k_cache, v: &mut v_cache };
            let mut out = zeros(q.len());
            kernels.attention(pool, dims, span, AttentionInputs { q: &q, k: &k, v: &v }, cache, &mut out);
            (k_cache, v_cache, out)
        });
        simd.0.assert_same(&plain.0, "cached keys");
        simd.1.assert_same(&plain.1, "cached values");
        // Of values within `size`, weighted means are within it too. A score differs by at most D
        // roundings of at most `size^2 sqrt(D)`, or is exact, and its exponential by two roundings
        // more; a weight by as much and by the rounding to bf16, which can go the other way.
        let (size, roundings) = if kind == Kind::Finite { (1.0, head_dim as f64) } else { (2.0, 0.0) };
        let scores = (roundings * (head_dim as f64).sqrt() + 4.0) * F32_ROUNDING;
        for (a, b) in simd.2.iter().zip(&plain.2) {
            let bound = size * (8.0 * scores + 4.0 * rounding(1.0));
            assert_near(a.to_f32(), wide(*b), bound, "attention");
        }
    }

    #[test]
    fn causal_conv(
        t in 0..7usize, padding in 0..4usize, channels in 0..40usize, kernel in 1..5usize,
        (seed, kind) in values(),
    ) {
        let dims = ConvDims { rows: t.saturating_sub(padding), channels, kernel };
        let mut values = Values::new(seed, kind);
        let x = values.bf16s(t * channels);
        let w = values.bf16s(channels * kernel);
        let before = values.bf16s((kernel - 1) * channels);
        let [plain, _, simd] = all_ways(|kernels, pool| {
            let (mut state, mut out) = (before.clone(), zeros(x.len()));
            kernels.causal_conv(pool, dims, &x, &w, &mut state, &mut out);
            (state, out)
        });
        simd.assert_same(&plain, "causal_conv");
    }

    #[test]
    fn gdn_gates(t in 0..5usize, heads in 0..20usize, (seed, kind) in values()) {
        let mut values = Values::new(seed, kind);
        let (a, b) = (values.bf16s(t * heads), values.bf16s(t * heads));
        let (a_log, dt_bias) = (values.f32s(heads), values.bf16s(heads));
        let [plain, _, simd] = all_ways(|kernels, _| {
            let (mut beta, mut g) = (zeros(a.len()), vec![0.0; a.len()]);
            kernels.gdn_gates(&a, &b, &a_log, &dt_bias, &mut beta, &mut g);
            (beta, g)
        });
        simd.assert_same(&plain, "gdn_gates");
    }

    #[test]
    fn delta_step(dims in delta_dims(), (seed, kind) in values()) {
        let case = DeltaCase::new(dims, 1, seed, kind);
        let [plain, _, simd] = all_ways(|kernels, pool| {
            let (mut state, mut out) = (case.state.clone(), case.zeros());
            kernels.delta_step(pool, dims, case.inputs(), &mut state, &mut out);
            (state, out)
        });
        simd.assert_same(&plain, "delta_step");
    }

    #[test]
    fn delta_chunk(dims in delta_dims(), t in 0..140usize, padding in 0..3usize, seed: u64, finite: bool) {
        let rows = t.saturating_sub(padding);
        // No grid: where a query is orthogonal to a key, a product is zero or a rounding, and an
        // infinity makes NaN of the one and an infinity of the other.
        let mut case = DeltaCase::new(dims, t, seed, Kind::Finite);
        // A product over no keys is a plain zero; whether NaN is multiplied by it is no matter.
        if !finite && dims.key_dim > 0 {
            case.spoil(seed);
        }
        let [plain, _, simd] = all_ways(|kernels, pool| {
            let (mut state, mut out) = (case.state.clone(), case.zeros());
            kernels.delta_chunk(pool, dims, rows, case.inputs(), &mut state, &mut out);
            (state, out)
        });
        // Keys have unit length and write strengths are at most 1, so neither the state nor an
        // intermediate grows beyond a few times the values that go in. An element is made in
        // some hundred roundings of such values.
        let bound = 1000.0 * 4.0 * F32_ROUNDING;
        for (a, b) in simd.0.iter().zip(&plain.0) {
            assert_near(*a, f64::from(*b), bound, "state");
        }
        for (a, b) in simd.1.iter().zip(&plain.1) {
            assert_near(a.to_f32(), wide(*b), bound + 2.0 * rounding(wide(*b)), "out");
        }
    }

    #[test]
    fn gated_norm(count in 0..6usize, width in 0..70usize, (seed, kind) in values()) {
        let mut values = Values::new(seed, kind);
        let (x, z) = (values.bf16s(count * width), values.bf16s(count * width));
        let w = values.f32s(width);
        let [plain, _, simd] = all_ways(|kernels, pool| {
            let mut out = zeros(x.len());
            kernels.gated_norm(pool, &x, &z, &w, 1e-6, &mut out);
            out
        });
        simd.assert_same(&plain, "gated_norm");
    }

    #[test]
    fn argmax(count in 0..100usize, (seed, kind) in values()) {
        let logits = Values::new(seed, kind).f32s(count);
        let [plain, _, simd] = all_ways(|kernels, _| kernels.argmax(&logits));
        simd.assert_same(&plain, "argmax");
    }

    #[test]
    fn embed(ids in prop::collection::vec(0..7u32, 0..9), width in 0..20usize, (seed, kind) in values()) {
        let table = Values::new(seed, kind).bf16s(7 * width);
        let [plain, _, simd] = all_ways(|kernels, _| {
            let mut out = zeros(ids.len() * width);
            kernels.embed(&ids, &table, width, &mut out);
            out
        });
        simd.assert_same(&plain, "embed");
    }
}

fn delta_dims() -> impl Strategy<Value = DeltaDims> {
    (1..4usize, 1..3usize, 0..40usize, 0..100usize).prop_map(|(key_heads, group, key_dim, value_dim)| {
        DeltaDims { key_heads, value_heads: key_heads * group, key_dim, value_dim }
    })
}

struct DeltaCase {
    dims: DeltaDims,
    qkv: Vec<bf16>,
    beta: Vec<bf16>,
    g: Vec<f32>,
    state: Vec<f32>,
}

impl DeltaCase {
    fn new(dims: DeltaDims, t: usize, seed: u64, kind: Kind) -> Self {
        let mut values = Values::new(seed, kind);
        Self {
            dims,
            qkv: values.bf16s(t * dims.channels()),
            beta: values.strengths(t * dims.value_heads),
            g: values.decays(t * dims.value_heads),
            state: values.f32s(dims.value_heads * dims.head_state()),
        }
    }

    /// Puts one infinity or NaN somewhere. (With many, everything is NaN soon.)
    fn spoil(&mut self, seed: u64) {
        let special = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN][seed as usize % 3];
        let place = (seed >> 8) as usize;
        match (seed >> 2) % 4 {
            0 if !self.qkv.is_empty() => {
                let place = place % self.qkv.len();
                self.qkv[place] = bf16::from_f32(special);
            }
            1 if !self.beta.is_empty() => {
                let place = place % self.beta.len();
                self.beta[place] = bf16::from_f32(special);
            }
            2 if !self.g.is_empty() => {
                let place = place % self.g.len();
                self.g[place] = special;
            }
            _ if !self.state.is_empty() => {
                let place = place % self.state.len();
                self.state[place] = special;
            }
            _ => {}
        }
    }

    fn inputs(&self) -> DeltaInputs<'_> {
        DeltaInputs { qkv: &self.qkv, beta: &self.beta, g: &self.g }
    }

    fn zeros(&self) -> Vec<bf16> {
        zeros(self.beta.len() * self.dims.value_dim)
    }
}
