//! What the types cost: a layer written with tensors beside the same kernels called by hand.
//!
//! The layer is an MLP with its norm and residual sum, one row, at a small and at a real size. Both
//! forms allocate their outputs, as any caller must. Before the usual measurements this prints the
//! ratio of the two times, measured in turn in the same run; it should be 1 within noise.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group};
use half::bf16;
use tt_backend_cpu::Cpu;
use tt_backend_cpu::kernels::{Kernels, LinearDims, Rows, Simd};
use tt_backend_cpu::pool::Pool;
use tt_dsl::{Backend, Bf16, Dim, Master, One, Shape, Tensor, ZeroCentredNorm, dim};

const EPS: f32 = 1e-6;

mod small {
    super::dim! { pub Hidden = 192; pub Inner = 384; }
}

mod real {
    super::dim! { pub Hidden = 1024; pub Inner = 3584; }
}

/// Small numbers that are not all the same.
fn numbers(count: usize) -> Vec<bf16> {
    (0..count).map(|i| bf16::from_f32((i * 37 % 101) as f32 / 1010.0 - 0.05)).collect()
}

fn tensor<S: Shape>(b: &Cpu) -> Tensor<Cpu, S, Bf16> {
    b.stage(&Master::from_vec(numbers(S::NUMEL)).expect("as many numbers as elements"))
}

/// The layer with types.
struct Mlp<Hidden: Dim, Inner: Dim> {
    norm: ZeroCentredNorm<Cpu, Hidden>,
    gate: Tensor<Cpu, (Inner, Hidden), Bf16>,
    up: Tensor<Cpu, (Inner, Hidden), Bf16>,
    down: Tensor<Cpu, (Hidden, Inner), Bf16>,
}

impl<Hidden: Dim, Inner: Dim> Mlp<Hidden, Inner> {
    fn new(b: &Cpu) -> Self {
        Self { norm: ZeroCentredNorm(tensor(b)), gate: tensor(b), up: tensor(b), down: tensor(b) }
    }

    fn forward(&self, b: &Cpu, h: &Tensor<Cpu, (One, Hidden), Bf16>) -> Tensor<Cpu, (One, Hidden), Bf16> {
        let x = b.rms_norm(h, &self.norm, EPS);
        let inner = b.gated_linear(&x, &self.gate, &self.up);
        b.add(h, &b.linear(&inner, &self.down))
    }
}

/// The same layer by hand.
struct ByHand {
    kernels: Simd,
    pool: Pool,
    hidden: usize,
    inner: usize,
    norm: Vec<bf16>,
    gate: Vec<bf16>,
    up: Vec<bf16>,
    down: Vec<bf16>,
}

impl ByHand {
    fn new(threads: usize, hidden: usize, inner: usize) -> Self {
        let matrix = || numbers(hidden * inner);
        Self {
            kernels: Simd::new(),
            pool: Pool::new(threads),
            hidden,
            inner,
            norm: numbers(hidden),
            gate: matrix(),
            up: matrix(),
            down: matrix(),
        }
    }

    fn forward(&self, h: &[bf16]) -> Vec<bf16> {
        let Self { kernels, pool, .. } = self;
        let wide = LinearDims { rows: 1, inputs: self.hidden, outputs: self.inner };
        let narrow = LinearDims { rows: 1, inputs: self.inner, outputs: self.hidden };
        let mut x = vec![bf16::ZERO; self.hidden];
        kernels.rms_norm(pool, Rows::contiguous(h, 1, self.hidden), &self.norm, EPS, &mut x);
        let mut gate = vec![bf16::ZERO; self.inner];
        kernels.linear(pool, wide, &x, &self.gate, &mut gate);
        let mut up = vec![bf16::ZERO; self.inner];
        kernels.linear(pool, wide, &x, &self.up, &mut up);
        let mut inner = vec![bf16::ZERO; self.inner];
        kernels.swiglu(pool, &gate, &up, &mut inner);
        let mut mixed = vec![bf16::ZERO; self.hidden];
        kernels.linear(pool, narrow, &inner, &self.down, &mut mixed);
        let mut out = vec![bf16::ZERO; self.hidden];
        kernels.add(pool, h, &mixed, &mut out);
        out
    }
}

fn time(mut body: impl FnMut()) -> Duration {
    let start = Instant::now();
    body();
    start.elapsed()
}

fn ratio<Hidden: Dim, Inner: Dim>() {
    const ROUNDS: usize = 2001;
    // One thread: what is asked for is the cost of the call, not of waking a second thread.
    let b = Cpu::with_threads(1);
    let typed = Mlp::<Hidden, Inner>::new(&b);
    let h = tensor(&b);
    let by_hand = ByHand::new(1, Hidden::SIZE, Inner::SIZE);
    let plain = numbers(Hidden::SIZE);
    assert_eq!(typed.forward(&b, &h).buffer().as_slice(), by_hand.forward(&plain));

    let mut times: [Vec<Duration>; 2] = Default::default();
    for _ in 0..ROUNDS {
        times[0].push(time(|| drop(black_box(typed.forward(&b, black_box(&h))))));
        times[1].push(time(|| drop(black_box(by_hand.forward(black_box(&plain))))));
    }
    let [typed, by_hand] = times.map(|mut times| {
        times.sort_unstable();
        times[ROUNDS / 2].as_secs_f64() * 1e6
    });
    println!(
        "MLP {}x{}: typed {typed:.2} us, by hand {by_hand:.2} us, ratio of medians {:.3}",
        Hidden::SIZE,
        Inner::SIZE,
        typed / by_hand
    );
}

fn mlp(c: &mut Criterion) {
    let b = Cpu::with_threads(1);
    let typed = Mlp::<small::Hidden, small::Inner>::new(&b);
    let h = tensor(&b);
    let by_hand = ByHand::new(1, small::Hidden::SIZE, small::Inner::SIZE);
    let plain = numbers(small::Hidden::SIZE);
    let mut group = c.benchmark_group("MLP 192x384");
    group.bench_function("typed", |bench| bench.iter(|| typed.forward(&b, black_box(&h))));
    group.bench_function("by hand", |bench| bench.iter(|| by_hand.forward(black_box(&plain))));
    group.finish();
}

criterion_group!(benches, mlp);

fn main() {
    if std::env::args().any(|arg| arg == "--bench") {
        ratio::<small::Hidden, small::Inner>();
        ratio::<real::Hidden, real::Inner>();
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
