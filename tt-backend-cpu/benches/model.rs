//! A whole decode step and a whole prefill of 512 tokens at the sizes of Qwen3.5-0.8B, on weights
//! that are numbers, beside what the machine can do.
//!
//! A decode step reads every weight once: its limit is the memory's bandwidth. A prefill multiplies
//! every weight with 512 rows: its limit is the peak of multiplications. Limits and passes are
//! measured in turn, round by round, and the best of each is compared: on a machine that others use
//! too, the best is what the others disturbed least. Then, at longer contexts, what attention adds
//! to a decode step, against the bytes of keys and values it reads.
//!
//! `cargo bench -p tt-backend-cpu --bench model [-- ROUNDS]`; with `--trace` also the time of each
//! op; with `--prefill` or `--decode` nothing but so many passes of that kind, for a profiler.

mod support;

use half::bf16;
use tt_backend_cpu::Cpu;
use tt_backend_cpu::limits::{multiply_add_rate, read_rate};
use tt_backend_cpu::pool::Pool;
use tt_dsl::{
    Backend, Bf16, By, ConvState, DeltaState, Dim, F32, KvCache, LogitsF32, Master, One, PlainNorm, Qkv,
    Shape, Step, Tensor, Tokens, Traced, Two, ZeroCentredNorm, dim,
};

use support::{numbers, time};

dim! {
    pub Vocab = 248_320;
    pub Hidden = 1024;
    pub Inner = 3584;
    pub Heads = 8;
    pub KvHeads = 2;
    pub HeadDim = 256;
    pub RotaryDim = 64;
    pub LinearHeads = 16;
    pub LinearDim = 128;
    pub Taps = 4;
    pub Context = 33_280;
    pub Rows512 = 512;
}

const LAYERS: usize = 24;
const EPS: f32 = 1e-6;
const CONTEXTS: [usize; 5] = [128, 1024, 4096, 16_384, 32_768];

type Channels = Qkv<LinearHeads, LinearDim, LinearHeads, LinearDim>;
type Values = By<LinearHeads, LinearDim>;
type Weight<B, Out, In> = Tensor<B, (Out, In), Bf16>;
type Stream<B, T> = Tensor<B, (T, Hidden), Bf16>;

/// Weights, and the bytes and elements they have.
struct Weights<'b, B: Backend> {
    b: &'b B,
    elements: usize,
    bytes: usize,
}

impl<B: Backend> Weights<'_, B> {
    fn tensor<S: Shape>(&mut self) -> Tensor<B, S, Bf16> {
        self.elements += S::NUMEL;
        self.bytes += 2 * S::NUMEL;
        self.b.stage(&Master::from_vec(numbers(S::NUMEL)).expect("as many numbers as elements"))
    }

    fn floats<S: Shape>(&mut self) -> Tensor<B, S, F32> {
        self.elements += S::NUMEL;
        self.bytes += 4 * S::NUMEL;
        let values = numbers(S::NUMEL).iter().map(|x| 1.0 + x.to_f32()).collect();
        self.b.stage(&Master::from_vec(values).expect("as many numbers as elements"))
    }

    fn constant<S: Shape>(&mut self, value: f32) -> Tensor<B, S, Bf16> {
        self.elements += S::NUMEL;
        self.bytes += 2 * S::NUMEL;
        let values = vec![bf16::from_f32(value); S::NUMEL];
        self.b.stage(&Master::from_vec(values).expect("as many numbers as elements"))
    }
}

struct Attention<B: Backend> {
    q: Weight<B, By<Heads, By<Two, HeadDim>>, Hidden>,
    k: Weight<B, By<KvHeads, HeadDim>, Hidden>,
    v: Weight<B, By<KvHeads, HeadDim>, Hidden>,
    o: Weight<B, Hidden, By<Heads, HeadDim>>,
    q_norm: ZeroCentredNorm<B, HeadDim>,
    k_norm: ZeroCentredNorm<B, HeadDim>,
    cache: KvCache<B, KvHeads, HeadDim, Context>,
}

struct DeltaNet<B: Backend> {
    qkv: Weight<B, Channels, Hidden>,
    z: Weight<B, Values, Hidden>,
    b: Weight<B, LinearHeads, Hidden>,
    a: Weight<B, LinearHeads, Hidden>,
    conv: Tensor<B, (Channels, One, Taps), Bf16>,
    a_log: Tensor<B, (LinearHeads,), F32>,
    dt_bias: Tensor<B, (LinearHeads,), Bf16>,
    norm: PlainNorm<B, LinearDim>,
    out: Weight<B, Hidden, Values>,
    conv_state: ConvState<B, Channels, Taps>,
    state: DeltaState<B, LinearHeads, LinearDim, LinearDim>,
}

enum Mixer<B: Backend> {
    Attention(Attention<B>),
    DeltaNet(DeltaNet<B>),
}

struct Layer<B: Backend> {
    before: ZeroCentredNorm<B, Hidden>,
    mixer: Mixer<B>,
    after: ZeroCentredNorm<B, Hidden>,
    gate: Weight<B, Inner, Hidden>,
    up: Weight<B, Inner, Hidden>,
    down: Weight<B, Hidden, Inner>,
}

struct Model<B: Backend> {
    embedding: Weight<B, Vocab, Hidden>,
    layers: Vec<Layer<B>>,
    norm: ZeroCentredNorm<B, Hidden>,
    elements: usize,
    bytes: usize,
}

impl<B: Backend> Model<B> {
    fn new(b: &B) -> Self {
        let mut w = Weights { b, elements: 0, bytes: 0 };
        let layers = (0..LAYERS).map(|i| Layer::new(&mut w, i % 4 == 3)).collect();
        let (norm, embedding) = (ZeroCentredNorm(w.tensor()), w.tensor());
        Self { embedding, layers, norm, elements: w.elements, bytes: w.bytes }
    }

    /// One pass over `T` tokens from position `start` on.
    fn pass<T: Dim>(&mut self, b: &B, start: usize) -> LogitsF32<B, Vocab> {
        let ids: Vec<u32> = (0..T::SIZE as u32).map(|i| i * 7919 % 248_000).collect();
        let tokens = Tokens::<B, T, Vocab>::upload(b, &ids, start).unwrap_or_else(|e| panic!("{e}"));
        let step = tokens.step();
        let rotary = b.rotary::<T, RotaryDim>(step, 1e7);
        let mut h = b.embed(&tokens, &self.embedding);
        for layer in &mut self.layers {
            h = layer.forward(b, h, &rotary, step);
        }
        let last = b.rms_norm(&b.last_row(&h, step), &self.norm, EPS);
        b.lm_head(&last, &self.embedding)
    }
}

impl<B: Backend> Layer<B> {
    fn new(w: &mut Weights<'_, B>, attention: bool) -> Self {
        let mixer = if attention {
            Mixer::Attention(Attention {
                q: w.tensor(),
                k: w.tensor(),
                v: w.tensor(),
                o: w.tensor(),
                q_norm: ZeroCentredNorm(w.tensor()),
                k_norm: ZeroCentredNorm(w.tensor()),
                cache: KvCache::new(w.b),
            })
        } else {
            Mixer::DeltaNet(DeltaNet {
                qkv: w.tensor(),
                z: w.tensor(),
                b: w.tensor(),
                a: w.tensor(),
                conv: w.tensor(),
                a_log: w.floats(),
                dt_bias: w.constant(-3.0),
                norm: PlainNorm(w.floats()),
                out: w.tensor(),
                conv_state: ConvState::new(w.b),
                state: DeltaState::new(w.b),
            })
        };
        Self {
            before: ZeroCentredNorm(w.tensor()),
            mixer,
            after: ZeroCentredNorm(w.tensor()),
            gate: w.tensor(),
            up: w.tensor(),
            down: w.tensor(),
        }
    }

    fn forward<T: Dim>(
        &mut self,
        b: &B,
        h: Stream<B, T>,
        rotary: &tt_dsl::Rotary<B, T, RotaryDim>,
        step: &Step<B, T>,
    ) -> Stream<B, T> {
        let x = b.rms_norm(&h, &self.before, EPS);
        let mixed = match &mut self.mixer {
            Mixer::Attention(mixer) => {
                let pairs = b.linear(&x, &mixer.q);
                let (query, gate) = (pairs.first_of_pairs(), pairs.second_of_pairs());
                let (k, v) = (b.linear(&x, &mixer.k), b.linear(&x, &mixer.v));
                let q = b.rope(&b.rms_norm_heads(query, &mixer.q_norm, EPS), rotary);
                let k = b.rope(&b.rms_norm_heads(k.view(), &mixer.k_norm, EPS), rotary);
                let o = b.attention(&q, &k, &v, &mut mixer.cache, step);
                b.linear(&b.sigmoid_gate(&o, gate), &mixer.o)
            }
            Mixer::DeltaNet(mixer) => {
                let (qkv, z) = (b.linear(&x, &mixer.qkv), b.linear(&x, &mixer.z));
                let (beta, a) = (b.linear(&x, &mixer.b), b.linear(&x, &mixer.a));
                let qkv = b.causal_conv(&qkv, &mixer.conv, &mut mixer.conv_state, step);
                let gates = b.gdn_gates(&a, &beta, &mixer.a_log, &mixer.dt_bias);
                let o = b.gated_delta::<T, LinearHeads, LinearDim, LinearHeads, LinearDim>(
                    &qkv,
                    &gates,
                    &mut mixer.state,
                    step,
                );
                b.linear(&b.gated_norm(&o, &z, &mixer.norm, EPS), &mixer.out)
            }
        };
        let h = b.add(&h, &mixed);
        let x = b.rms_norm(&h, &self.after, EPS);
        b.add(&h, &b.linear(&b.gated_linear(&x, &self.gate, &self.up), &self.down))
    }
}

/// Resident memory of this process in MiB, or zero where the system does not say.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0.0) / 1024.0
}

fn trace() {
    let b = Traced::new(Cpu::new());
    let mut model = Model::new(&b);
    for context in [128, 32_768] {
        model.pass::<One>(&b, context);
        b.reset();
        model.pass::<One>(&b, context);
        println!("a decode step at {context}:\n{}", b.report());
    }
    b.reset();
    model.pass::<Rows512>(&b, 0);
    println!("a prefill of 512:\n{}", b.report());
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // Only `cargo bench` says so; a test run of the benches measures nothing.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    if arguments.iter().any(|argument| argument == "--trace") {
        trace();
    }
    let rounds = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(5);
    let pool = Pool::with_all_cores();
    let b = Cpu::new();
    let mut model = Model::new(&b);
    let loaded = resident();
    let asked = |what: &str| arguments.iter().any(|argument| argument == what);
    if asked("--prefill") || asked("--decode") {
        for _ in 0..rounds {
            if asked("--prefill") {
                model.pass::<Rows512>(&b, 0);
            } else {
                model.pass::<One>(&b, CONTEXTS[0]);
            }
        }
        return;
    }
    let buffer: Vec<bf16> = numbers(1 << 28);

    let prefill = 512;
    // Every query of the prefill sees itself and those before it; keys and values are two products.
    let pairs = prefill * (prefill + 1) / 2;
    let attention = 2 * 2 * Heads::SIZE * HeadDim::SIZE * pairs * LAYERS / 4;
    let multiplied = model.elements - Vocab::SIZE * Hidden::SIZE;
    let flops = (2 * multiplied * prefill + attention) as f64;
    let (mut read, mut multiply) = (0.0f64, 0.0f64);
    let mut best = [f64::MAX; 1 + CONTEXTS.len()];
    let better = |best: &mut f64, body: &mut dyn FnMut()| *best = best.min(time(body).as_secs_f64());
    for _ in 0..rounds {
        multiply = multiply.max(multiply_add_rate(&pool, 2));
        better(&mut best[0], &mut || drop(model.pass::<Rows512>(&b, 0)));
        multiply = multiply.max(multiply_add_rate(&pool, 2));
        for (i, context) in CONTEXTS.into_iter().enumerate() {
            read = read.max(read_rate(&pool, &[bytemuck::cast_slice(&buffer)], 1));
            (0..3).for_each(|_| better(&mut best[1 + i], &mut || drop(model.pass::<One>(&b, context))));
        }
    }

    println!(
        "{} threads, weights of {:.3} GB, {multiplied} multiplied",
        pool.threads(),
        model.bytes as f64 / 1e9
    );
    println!("read {:.1} GB/s, peak {:.1} GFLOP/s", read / 1e9, multiply / 1e9);
    println!(
        "prefill of {prefill}: {:.0} ms, {:.1} tok/s, {:.1} GFLOP/s: {:.3} of the peak",
        best[0] * 1e3,
        prefill as f64 / best[0],
        flops / best[0] / 1e9,
        flops / best[0] / multiply
    );
    let weights = model.bytes as f64;
    for (context, best_time) in CONTEXTS.into_iter().zip(&best[1..]) {
        let cache = (context * 2 * 2 * KvHeads::SIZE * HeadDim::SIZE * LAYERS / 4) as f64;
        println!(
            "decode at {context:5}: {:.2} ms, {:.2} tok/s, {:.1} GB/s: {:.3} of the bandwidth; {:+.2} ms, \
             keys and values at the bandwidth {:.2} ms",
            best_time * 1e3,
            1.0 / best_time,
            (weights + cache) / best_time / 1e9,
            (weights + cache) / best_time / read,
            (best_time - best[1]) * 1e3,
            cache / read * 1e3
        );
    }
    println!("resident {loaded:.0} MiB with the weights, {:.0} MiB now", resident() - 512.0);
}
