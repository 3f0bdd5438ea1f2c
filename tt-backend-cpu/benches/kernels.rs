//! The kernels where the time of a model goes, at the sizes of Qwen3.5-0.8B.
//!
//! Before the usual measurements this prints ratios, each of two figures taken in turn in the same
//! run: the speed of products of one row to the machine's read bandwidth, and that of products of
//! many rows to its peak of multiplications. The whole model is in `benches/model.rs`.

mod support;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use half::bf16;
use tt_backend_cpu::kernels::{
    AttentionCache, AttentionDims, AttentionInputs, ConvDims, DeltaDims, DeltaInputs, Kernels, LinearDims,
    Rows, Simd, Span,
};
use tt_backend_cpu::limits::{multiply_add_rate, read_rate};
use tt_backend_cpu::pool::Pool;

use support::{fastest, numbers};

/// `[outputs, inputs]` of the weights of a layer, and of the head.
const WEIGHTS: [(&str, usize, usize); 9] = [
    ("in_proj_a", 16, 1024),
    ("k_proj", 512, 1024),
    ("out_proj", 1024, 2048),
    ("in_proj_z", 2048, 1024),
    ("gate_proj", 3584, 1024),
    ("down_proj", 1024, 3584),
    ("q_proj", 4096, 1024),
    ("in_proj_qkv", 6144, 1024),
    ("lm_head", 248_320, 1024),
];

/// Rows of the largest prefill.
const PREFILL: usize = 512;

const DELTA: DeltaDims = DeltaDims { key_heads: 16, value_heads: 16, key_dim: 128, value_dim: 128 };

fn ratios() {
    let kernels = Simd::new();
    let pool = Pool::with_all_cores();
    let largest = WEIGHTS.iter().map(|(_, outputs, inputs)| outputs * inputs).max().unwrap_or(0);
    let w = numbers(largest);
    println!("{} on {} threads", kernels.isa(), pool.threads());

    for (name, outputs, inputs) in WEIGHTS {
        let x = numbers(PREFILL * inputs);
        let mut out = numbers(PREFILL * outputs.min(8192));
        let flops = |rows: usize| (2 * rows * inputs * outputs) as f64;
        for rows in [8, 32, 128, PREFILL] {
            if outputs > 8192 {
                continue;
            }
            let dims = LinearDims { rows, inputs, outputs };
            let (x, out) = (&x[..rows * inputs], &mut out[..rows * outputs]);
            let (mut peak, mut speed) = (0.0f64, 0.0f64);
            for _ in 0..5 {
                peak = peak.max(multiply_add_rate(&pool, 1));
                let time =
                    fastest(3, || kernels.linear(&pool, dims, black_box(x), &w[..outputs * inputs], out));
                speed = speed.max(flops(rows) / time.as_secs_f64());
            }
            println!(
                "{name} {outputs}x{inputs}, {rows} rows: {:.1} of {:.1} GFLOP/s: {:.2}",
                speed / 1e9,
                peak / 1e9,
                speed / peak
            );
        }
    }

    // Of small weights one after the other, as many as do not fit into the caches.
    for (name, outputs, inputs) in WEIGHTS {
        let x = numbers(inputs);
        let mut out = vec![0.0; outputs];
        let dims = LinearDims { rows: 1, inputs, outputs };
        let weights = w.chunks_exact(outputs * inputs);
        let bytes = (2 * weights.len() * outputs * inputs) as f64;
        let (mut reading, mut speed) = (0.0f64, 0.0f64);
        for _ in 0..5 {
            reading = reading.max(read_rate(&pool, &[bytemuck::cast_slice(&w)], 1));
            let time = fastest(1, || {
                weights.clone().for_each(|w| kernels.linear_f32(&pool, dims, black_box(&x), w, &mut out));
            });
            speed = speed.max(bytes / time.as_secs_f64());
        }
        println!(
            "{name} {outputs}x{inputs}, 1 row: {:.1} of {:.1} GB/s: {:.2}",
            speed / 1e9,
            reading / 1e9,
            speed / reading
        );
    }
}

fn linear(c: &mut Criterion) {
    let kernels = Simd::new();
    let pool = Pool::with_all_cores();
    let mut group = c.benchmark_group("linear");
    for (name, outputs, inputs) in WEIGHTS {
        let w = numbers(outputs * inputs);
        for rows in [1, 8, 32, PREFILL] {
            if rows > 1 && outputs > 8192 {
                continue;
            }
            let x = numbers(rows * inputs);
            let mut out = vec![bf16::ZERO; rows * outputs];
            let dims = LinearDims { rows, inputs, outputs };
            if rows == 1 {
                group.throughput(Throughput::Bytes((w.len() * 2) as u64));
            } else {
                group.throughput(Throughput::Elements((rows * w.len()) as u64));
            }
            group.bench_function(BenchmarkId::new(name, rows), |b| {
                b.iter(|| kernels.linear(&pool, dims, &x, &w, &mut out));
            });
        }
    }
    group.finish();
}

fn delta(c: &mut Criterion) {
    let kernels = Simd::new();
    let pool = Pool::with_all_cores();
    let rows = PREFILL;
    let qkv = numbers(rows * DELTA.channels());
    let beta = vec![bf16::from_f32(0.5); rows * DELTA.value_heads];
    let g = vec![-0.1; rows * DELTA.value_heads];
    let mut state = vec![0.0; DELTA.value_heads * DELTA.head_state()];
    let width = DELTA.value_heads * DELTA.value_dim;
    let mut out = vec![bf16::ZERO; rows * width];
    let mut group = c.benchmark_group("delta");
    group.bench_function("step", |b| {
        let inputs = DeltaInputs {
            qkv: &qkv[..DELTA.channels()],
            beta: &beta[..DELTA.value_heads],
            g: &g[..DELTA.value_heads],
        };
        b.iter(|| kernels.delta_step(&pool, DELTA, inputs, &mut state, &mut out[..width]));
    });
    group.bench_function(BenchmarkId::new("chunk", rows), |b| {
        let inputs = DeltaInputs { qkv: &qkv, beta: &beta, g: &g };
        b.iter(|| kernels.delta_chunk(&pool, DELTA, rows, inputs, &mut state, &mut out));
    });
    group.finish();
}

fn attention(c: &mut Criterion) {
    let kernels = Simd::new();
    let pool = Pool::with_all_cores();
    let dims = AttentionDims { heads: 8, kv_heads: 2, head_dim: 256, context: 33_280 };
    let mut k_cache = numbers(dims.kv_heads * dims.context * dims.head_dim);
    let mut v_cache = k_cache.clone();
    let mut group = c.benchmark_group("attention");
    for (start, rows) in
        [(128, 1), (1024, 1), (4096, 1), (16_384, 1), (32_768, 1), (0, PREFILL), (4096, PREFILL)]
    {
        let q = numbers(rows * dims.heads * dims.head_dim);
        let k = numbers(rows * dims.kv_heads * dims.head_dim);
        let mut out = q.clone();
        let bytes = (start + rows) * 2 * 2 * dims.kv_heads * dims.head_dim;
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(BenchmarkId::new(format!("from {start}"), rows), |b| {
            b.iter(|| {
                let cache = AttentionCache { k: &mut k_cache, v: &mut v_cache };
                let inputs = AttentionInputs { q: &q, k: &k, v: &k };
                kernels.attention(&pool, dims, Span { start, rows }, inputs, cache, &mut out);
            });
        });
    }
    group.finish();
}

fn small(c: &mut Criterion) {
    let kernels = Simd::new();
    let pool = Pool::with_all_cores();
    let mut group = c.benchmark_group("small");
    for rows in [1, PREFILL] {
        let (gate, up) = (numbers(rows * 3584), numbers(rows * 3584));
        let mut out = gate.clone();
        group.bench_function(BenchmarkId::new("swiglu", rows), |b| {
            b.iter(|| kernels.swiglu(&pool, &gate, &up, &mut out));
        });

        let dims = ConvDims { rows, channels: DELTA.channels(), kernel: 4 };
        let (x, w) = (numbers(rows * dims.channels), numbers(dims.channels * 4));
        let (mut state, mut out) = (numbers(dims.channels * 3), x.clone());
        group.bench_function(BenchmarkId::new("causal_conv", rows), |b| {
            b.iter(|| kernels.causal_conv(&pool, dims, &x, &w, &mut state, &mut out));
        });

        let (x, z, w) = (numbers(rows * 2048), numbers(rows * 2048), vec![1.0; 128]);
        let mut out = x.clone();
        group.bench_function(BenchmarkId::new("gated_norm", rows), |b| {
            b.iter(|| kernels.gated_norm(&pool, &x, &z, &w, 1e-6, &mut out));
        });

        let (x, w) = (numbers(rows * 1024), numbers(1024));
        let mut out = x.clone();
        group.bench_function(BenchmarkId::new("rms_norm", rows), |b| {
            b.iter(|| kernels.rms_norm(&pool, Rows::contiguous(&x, rows, 1024), &w, 1e-6, &mut out));
        });
        group.bench_function(BenchmarkId::new("add", rows), |b| {
            b.iter(|| kernels.add(&pool, &x, &x, &mut out))
        });
    }

    let logits: Vec<f32> = numbers(248_320).iter().map(|x| x.to_f32()).collect();
    group.bench_function("argmax", |b| b.iter(|| kernels.argmax(black_box(&logits))));
    group.finish();
}

criterion_group!(benches, linear, delta, attention, small);

fn main() {
    // Only `cargo bench` says so; a test run of the benches measures nothing.
    if std::env::args().any(|arg| arg == "--bench") {
        ratios();
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
