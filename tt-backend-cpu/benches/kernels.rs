//! The kernels where the time of a model goes, at the sizes of Qwen3.5-0.8B.
//!
//! Before the usual measurements this prints two ratios, each of two figures taken in the same
//! run: the bandwidth of the largest matrix-vector product to the machine's read bandwidth, and
//! the speed of a matrix-matrix product to the machine's peak of multiplications.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use half::bf16;
use tt_backend_cpu::kernels::{
    AttentionCache, AttentionDims, AttentionInputs, ConvDims, DeltaDims, DeltaInputs, Kernels, LinearDims,
    Simd, Span,
};
use tt_backend_cpu::pool::Pool;

/// `[outputs, inputs]` of the weights of a decode step.
const WEIGHTS: [(&str, usize, usize); 4] =
    [("in_proj_a", 16, 1024), ("o_proj", 1024, 2048), ("gate_proj", 3584, 1024), ("lm_head", 248_320, 1024)];

const DELTA: DeltaDims = DeltaDims { key_heads: 16, value_heads: 16, key_dim: 128, value_dim: 128 };

/// Small numbers that are not all the same.
fn numbers(count: usize) -> Vec<bf16> {
    (0..count).map(|i| bf16::from_f32((i * 37 % 101) as f32 / 101.0 - 0.5)).collect()
}

fn fastest(times: usize, mut body: impl FnMut()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        body();
        start.elapsed()
    };
    (0..times).map(time).min().unwrap_or_default()
}

/// Reads all of `data` as fast as the threads of the pool can.
fn read(pool: &Pool, data: &[bf16]) {
    pool.for_each(data.chunks(1 << 20), |_, chunk| {
        let words: &[u64] = bytemuck::cast_slice(chunk);
        let mut sums = [0u64; 16];
        for words in words.as_chunks::<16>().0 {
            for (sum, word) in sums.iter_mut().zip(words) {
                *sum ^= word;
            }
        }
        black_box(sums);
    });
}

/// Multiplies and adds in registers, and returns how often.
fn multiply(pool: &Pool) -> f64 {
    const ROUNDS: usize = 200_000;
    const LANES: usize = 96;
    pool.run(pool.threads(), |_| {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the CPU has these instructions.
            return unsafe { multiply_avx2(ROUNDS) };
        }
        let mut sums = [0.0f32; LANES];
        for _ in 0..ROUNDS {
            for sum in &mut sums {
                *sum = *sum * black_box(0.5) + 1.0;
            }
        }
        black_box(sums);
    });
    (ROUNDS * LANES * pool.threads()) as f64
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn multiply_avx2(rounds: usize) {
    use std::arch::x86_64::{_mm256_fmadd_ps, _mm256_set1_ps};
    let (half, one) = (_mm256_set1_ps(black_box(0.5)), _mm256_set1_ps(1.0));
    let mut sums = [one; 12];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm256_fmadd_ps(*sum, half, one);
        }
    }
    black_box(sums);
}

fn ratios() {
    let kernels = Simd::new();
    let pool = Pool::with_all_cores();
    let (_, outputs, inputs) = WEIGHTS[3];
    let w = numbers(outputs * inputs);
    let bytes = (w.len() * 2) as f64;
    println!("{} on {} threads", kernels.isa(), pool.threads());

    let x = numbers(inputs);
    let mut logits = vec![0.0; outputs];
    let dims = LinearDims { rows: 1, inputs, outputs };
    let reading = fastest(10, || read(&pool, black_box(&w)));
    let product = fastest(10, || kernels.linear_f32(&pool, dims, black_box(&x), &w, &mut logits));
    let rate = |time: Duration| bytes / time.as_secs_f64() / 1e9;
    println!(
        "matrix-vector {outputs}x{inputs}: {:.1} GB/s of {:.1} GB/s read: {:.2}",
        rate(product),
        rate(reading),
        rate(product) / rate(reading)
    );

    let rows = 128;
    let (_, outputs, inputs) = WEIGHTS[2];
    let x = numbers(rows * inputs);
    let mut out = vec![bf16::ZERO; rows * outputs];
    let dims = LinearDims { rows, inputs, outputs };
    let mut count = 0.0;
    let peak_time = fastest(10, || count = multiply(&pool));
    let peak = count / peak_time.as_secs_f64() / 1e9;
    let product =
        fastest(10, || kernels.linear(&pool, dims, black_box(&x), &w[..outputs * inputs], &mut out));
    let speed = (rows * inputs * outputs) as f64 / product.as_secs_f64() / 1e9;
    println!(
        "matrix-matrix {rows}x{inputs}x{outputs}: {speed:.1} of {peak:.1} G multiplications/s: {:.2}",
        speed / peak
    );
}

fn linear(c: &mut Criterion) {
    let kernels = Simd::new();
    let pool = Pool::with_all_cores();
    let mut group = c.benchmark_group("linear");
    for (name, outputs, inputs) in WEIGHTS {
        let w = numbers(outputs * inputs);
        group.throughput(Throughput::Bytes((w.len() * 2) as u64));
        for rows in [1, 8, 64] {
            if rows * w.len() > 300_000_000 {
                continue;
            }
            let x = numbers(rows * inputs);
            let mut out = vec![bf16::ZERO; rows * outputs];
            let dims = LinearDims { rows, inputs, outputs };
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
    let rows = 128;
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
    let dims = AttentionDims { heads: 8, kv_heads: 2, head_dim: 256, context: 4096 };
    let mut k_cache = numbers(dims.kv_heads * dims.context * dims.head_dim);
    let mut v_cache = k_cache.clone();
    let mut group = c.benchmark_group("attention");
    for (start, rows) in [(100, 1), (2000, 1), (0, 128)] {
        let q = numbers(rows * dims.heads * dims.head_dim);
        let k = numbers(rows * dims.kv_heads * dims.head_dim);
        let mut out = q.clone();
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

    let (gate, up) = (numbers(3584), numbers(3584));
    let mut out = gate.clone();
    group.bench_function("swiglu", |b| b.iter(|| kernels.swiglu(&pool, &gate, &up, &mut out)));

    let dims = ConvDims { rows: 1, channels: DELTA.channels(), kernel: 4 };
    let (x, w) = (numbers(dims.channels), numbers(dims.channels * 4));
    let (mut state, mut out) = (numbers(dims.channels * 3), x.clone());
    group.bench_function("causal_conv", |b| {
        b.iter(|| kernels.causal_conv(&pool, dims, &x, &w, &mut state, &mut out));
    });

    let (x, z, w) = (numbers(2048), numbers(2048), vec![1.0; 128]);
    let mut out = x.clone();
    group.bench_function("gated_norm", |b| b.iter(|| kernels.gated_norm(&pool, &x, &z, &w, 1e-6, &mut out)));

    let x = numbers(1024);
    let mut out = x.clone();
    group.bench_function("rms_norm", |b| {
        let rows = tt_backend_cpu::kernels::Rows::contiguous(&x, 1, 1024);
        b.iter(|| kernels.rms_norm(&pool, rows, &x, 1e-6, &mut out));
    });

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
