//! What must make no difference, and to the last bit: how many threads there are, which rows are
//! computed together, how a sequence is cut, what lies in rows that are not valid.

use half::bf16;
use proptest::prelude::*;
use proptest::sample::select;
use tt_backend_cpu::kernels::{
    AttentionCache, AttentionDims, AttentionInputs, ConvDims, DeltaDims, DeltaInputs, Kernels, LinearDims,
    Plain, Simd, Span,
};
use tt_backend_cpu::pool::Pool;

use crate::support::{Kind, Same, Values, on_pool};

fn zeros(count: usize) -> Vec<bf16> {
    vec![bf16::ZERO; count]
}

/// The plain kernels and the fast ones, with and without special instructions.
fn every(body: impl Fn(&dyn Kernels, &Pool)) {
    for kernels in [&Plain as &dyn Kernels, &Simd::portable(), &Simd::new()] {
        on_pool(2, |pool| body(kernels, pool));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// A row has the same bits whatever other rows and outputs are computed with it. That is so for
    /// fewer than 8 rows, and for 8 and more; the two are different sums, for one is bound by the
    /// reading of weights where they lie, and the other by multiplications.
    #[test]
    fn linear_rows(few in 1..8usize, many in 8..70usize, inputs in 1..300usize, outputs in 1..70usize, seed: u64) {
        let mut values = Values::new(seed, Kind::Finite);
        let x = values.bf16s(many * inputs);
        let w = values.bf16s(outputs * inputs);
        every(|kernels, pool| {
            let product = |first: usize, rows: usize, skip: usize| {
                let dims = LinearDims { rows, inputs, outputs: outputs - skip };
                let mut out = vec![0.0; rows * dims.outputs];
                let x = &x[first * inputs..(first + rows) * inputs];
                kernels.linear_f32(pool, dims, x, &w[skip * inputs..], &mut out);
                out
            };
            for (rows, piece) in [(few, 1), (many, 8)] {
                let all = product(0, rows, 0);
                for first in 0..=rows - piece {
                    let expected = all[first * outputs..(first + piece) * outputs].to_vec();
                    product(first, piece, 0).assert_same(&expected, "some rows by themselves");
                }
                let expected: Vec<f32> = all.chunks(outputs).map(|row| row[outputs - 1]).collect();
                product(0, rows, outputs - 1).assert_same(&expected, "an output by itself");
            }
        });
    }

    /// All rows at once, with padding, and row by row.
    #[test]
    fn attention_steps(
        rows in 1..11usize, start in 0..30usize, group in 1..8usize, width in select(&[16usize, 24, 32][..]),
        seed: u64,
    ) {
        let dims = AttentionDims { heads: 2 * group, kv_heads: 2, head_dim: width, context: 48 };
        let (q_row, kv_row) = (dims.heads * width, dims.kv_heads * width);
        let mut values = Values::new(seed, Kind::Finite);
        let (q, k, v) = (values.bf16s(rows * q_row), values.bf16s(rows * kv_row), values.bf16s(rows * kv_row));
        let cached = values.bf16s(dims.kv_heads * dims.context * width);
        every(|kernels, pool| {
            let attend = |span: Span, q: &[bf16], k: &[bf16], v: &[bf16], cache: &mut (Vec<bf16>, Vec<bf16>)| {
                let mut out = vec![bf16::NAN; q.len()];
                let cache = AttentionCache { k: &mut cache.0, v: &mut cache.1 };
                kernels.attention(pool, dims, span, AttentionInputs { q, k, v }, cache, &mut out);
                out
            };
            let mut at_once = (cached.clone(), cached.clone());
            let padded = |x: &[bf16], row: usize| [x, &vec![bf16::NAN; 3 * row]].concat();
            let all = attend(
                Span { start, rows }, &padded(&q, q_row), &padded(&k, kv_row), &padded(&v, kv_row), &mut at_once,
            );
            let mut by_row = (cached.clone(), cached.clone());
            let mut steps = Vec::new();
            for t in 0..rows {
                let (q, k, v) = (&q[t * q_row..][..q_row], &k[t * kv_row..][..kv_row], &v[t * kv_row..][..kv_row]);
                steps.extend(attend(Span { start: start + t, rows: 1 }, q, k, v, &mut by_row));
            }
            steps.extend(zeros(3 * q_row));
            all.assert_same(&steps, "attention");
            at_once.assert_same(&by_row, "caches");
        });
    }

    /// The same past several chunks of positions, with as many rows as make many tasks.
    #[test]
    fn attention_at_length(
        rows in 40..140usize, start in 400..1100usize, kv_heads in 1..4usize,
        width in select(&[8usize, 16][..]), seed: u64,
    ) {
        let dims = AttentionDims { heads: 2 * kv_heads, kv_heads, head_dim: width, context: 1250 };
        let (q_row, kv_row) = (dims.heads * width, kv_heads * width);
        let mut values = Values::new(seed, Kind::Finite);
        let (q, k, v) = (values.bf16s(rows * q_row), values.bf16s(rows * kv_row), values.bf16s(rows * kv_row));
        let cached = values.bf16s(kv_heads * dims.context * width);
        let attend = |kernels: &dyn Kernels, threads: usize, pieces: &[usize]| {
            let (mut k_cache, mut v_cache) = (cached.clone(), cached.clone());
            let (mut all, mut first) = (Vec::new(), 0);
            for &rows in pieces {
                let span = Span { start: start + first, rows };
                let (q, kv) = (&q[first * q_row..][..rows * q_row], first * kv_row..(first + rows) * kv_row);
                let inputs = AttentionInputs { q, k: &k[kv.clone()], v: &v[kv] };
                let cache = AttentionCache { k: &mut k_cache, v: &mut v_cache };
                let mut out = vec![bf16::NAN; rows * q_row];
                on_pool(threads, |pool| kernels.attention(pool, dims, span, inputs, cache, &mut out));
                all.extend(out);
                first += rows;
            }
            all
        };
        let kernels = Simd::new();
        let expected = attend(&kernels, 1, &[rows]);
        for threads in 1..=3 {
            attend(&kernels, threads, &[rows]).assert_same(&expected, "threads");
            attend(&kernels, threads, &[1, 1, 7, 1, rows - 10]).assert_same(&expected, "pieces");
        }
        let plain = attend(&Plain, 1, &[rows]);
        for (found, plain) in expected.iter().zip(&plain) {
            // All values are within 1. A weight is off by a few roundings of its score, and may be
            // rounded to the other bf16, as may the result.
            let error = (found.to_f32() - plain.to_f32()).abs();
            prop_assert!(error <= 4.0 / 256.0, "{} and {}", found, plain);
        }
    }

    /// A sequence at once, with padding, and in two pieces, the second row by row.
    #[test]
    fn conv_steps(rows in 0..12usize, cut in 0..12usize, kernel in 1..6usize, channels in 1..40usize, seed: u64) {
        let cut = cut.min(rows);
        let mut values = Values::new(seed, Kind::Finite);
        let x = values.bf16s(rows * channels);
        let w = values.bf16s(channels * kernel);
        let before = values.bf16s((kernel - 1) * channels);
        every(|kernels, pool| {
            let conv = |rows: usize, x: &[bf16], state: &mut Vec<bf16>| {
                let mut out = vec![bf16::NAN; x.len()];
                kernels.causal_conv(pool, ConvDims { rows, channels, kernel }, x, &w, state, &mut out);
                out
            };
            let mut at_once = before.clone();
            let padded = [&x[..], &vec![bf16::NAN; 2 * channels]].concat();
            let all = conv(rows, &padded, &mut at_once);
            let mut in_pieces = before.clone();
            let mut pieces = conv(cut, &x[..cut * channels], &mut in_pieces);
            for row in x[cut * channels..].chunks(channels) {
                pieces.extend(conv(1, row, &mut in_pieces));
            }
            pieces.extend(zeros(2 * channels));
            all.assert_same(&pieces, "outputs");
            at_once.assert_same(&in_pieces, "states");
        });
    }
}

/// `T` rows of the gated delta rule.
struct Delta {
    dims: DeltaDims,
    rows: usize,
    qkv: Vec<bf16>,
    beta: Vec<bf16>,
    g: Vec<f32>,
}

impl Delta {
    fn new(rows: usize) -> Self {
        let dims = DeltaDims { key_heads: 2, value_heads: 4, key_dim: 24, value_dim: 40 };
        let mut values = Values::new(7, Kind::Finite);
        Self {
            dims,
            rows,
            qkv: values.bf16s(rows * dims.channels()),
            beta: values.strengths(rows * dims.value_heads),
            g: values.decays(rows * dims.value_heads).iter().map(|g| g / 10.0).collect(),
        }
    }

    fn inputs(&self, first: usize, rows: usize) -> DeltaInputs<'_> {
        let (width, heads) = (self.dims.channels(), self.dims.value_heads);
        DeltaInputs {
            qkv: &self.qkv[first * width..(first + rows) * width],
            beta: &self.beta[first * heads..(first + rows) * heads],
            g: &self.g[first * heads..(first + rows) * heads],
        }
    }

    fn state(&self) -> Vec<f32> {
        vec![0.0; self.dims.value_heads * self.dims.head_state()]
    }

    fn zeros(&self, rows: usize) -> Vec<bf16> {
        zeros(rows * self.dims.value_heads * self.dims.value_dim)
    }

    /// Pieces that end after these numbers of rows.
    fn in_pieces(&self, kernels: &dyn Kernels, pool: &Pool, ends: &[usize]) -> (Vec<f32>, Vec<bf16>) {
        let (mut state, mut all, mut first) = (self.state(), Vec::new(), 0);
        for &end in ends {
            let mut out = self.zeros(end - first);
            kernels.delta_chunk(
                pool,
                self.dims,
                end - first,
                self.inputs(first, end - first),
                &mut state,
                &mut out,
            );
            all.extend(out);
            first = end;
        }
        (state, all)
    }
}

#[test]
fn delta_chunks_may_be_cut_between_chunks() {
    let delta = Delta::new(150);
    every(|kernels, pool| {
        let at_once = delta.in_pieces(kernels, pool, &[150]);
        let in_pieces = delta.in_pieces(kernels, pool, &[64, 128, 150]);
        at_once.assert_same(&in_pieces, "cut after 64 and 128 rows");
    });
}

#[test]
fn delta_rows_that_are_not_valid_are_not_read() {
    let mut delta = Delta::new(100);
    every(|kernels, pool| {
        let expected = delta.in_pieces(kernels, pool, &[70]);
        let (mut state, mut out) = (delta.state(), vec![bf16::NAN; delta.zeros(100).len()]);
        kernels.delta_chunk(pool, delta.dims, 70, delta.inputs(0, 100), &mut state, &mut out);
        state.assert_same(&expected.0, "states");
        let expected = [expected.1, delta.zeros(30)].concat();
        out.assert_same(&expected, "outputs");
    });
    let valid = 70 * delta.dims.value_heads;
    delta.g[valid..].fill(f32::NAN);
    every(|kernels, pool| {
        let mut state = delta.state();
        kernels.delta_chunk(pool, delta.dims, 70, delta.inputs(0, 100), &mut state, &mut delta.zeros(100));
        assert!(state.iter().all(|s| s.is_finite()));
    });
}

/// Steps and chunks are the same mathematics, and nearly the same numbers.
#[test]
fn delta_steps_are_nearly_chunks() {
    let delta = Delta::new(150);
    every(|kernels, pool| {
        let (state, out) = delta.in_pieces(kernels, pool, &[150]);
        let mut stepped = delta.state();
        let mut steps = Vec::new();
        for t in 0..delta.rows {
            let mut o = delta.zeros(1);
            kernels.delta_step(pool, delta.dims, delta.inputs(t, 1), &mut stepped, &mut o);
            steps.extend(o);
        }
        for (a, b) in state.iter().zip(&stepped) {
            assert!((a - b).abs() < 3e-6, "states: {a} and {b}");
        }
        for (a, b) in out.iter().zip(&steps) {
            let (a, b) = (a.to_f32(), b.to_f32());
            assert!((a - b).abs() <= 3e-6 + b.abs() / 128.0, "outputs: {a} and {b}");
        }
        let largest = state.iter().fold(0.0f32, |m, s| m.max(s.abs()));
        assert!(largest > 0.1, "the test has no substance: {largest}");
    });
}

/// With the grain of a real pool, and work large enough to be shared.
#[test]
fn threads_make_no_difference_to_large_work() {
    let dims = LinearDims { rows: 5, inputs: 1000, outputs: 700 };
    let mut values = Values::new(3, Kind::Finite);
    let x = values.bf16s(dims.rows * dims.inputs);
    let w = values.bf16s(dims.outputs * dims.inputs);
    let run = |threads: usize| {
        let pool = Pool::new(threads);
        assert!(threads == 1 || pool.block(dims.outputs, 600) < dims.outputs);
        let mut out = zeros(dims.rows * dims.outputs);
        Simd::new().linear(&pool, dims, &x, &w, &mut out);
        out
    };
    let alone = run(1);
    for threads in 2..=4 {
        run(threads).assert_same(&alone, "threads");
    }
}
