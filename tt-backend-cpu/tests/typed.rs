//! The typed backend: every operation on `Cpu` against `CpuReference`, and both against what the
//! trait promises of steps, padding, views and masters.

use std::sync::Arc;

use half::bf16;
use tt_backend_cpu::{Cpu, CpuBackend, CpuKernels, CpuReference};
use tt_dsl::{
    Backend, Bf16, By, ConvState, DeltaState, Dim, Dtype, F32, HostBytes, KvCache, LogitsF32, Master, One,
    PlainNorm, Qkv, Shape, Span, Step, Tensor, Tokens, Two, U32, ZeroCentredNorm, dim,
};

dim! {
    /// Rows of a prefill.
    Prefill = 80;
    Vocab = 50;
    Hidden = 96;
    Inner = 70;
    Heads = 6;
    KvHeads = 2;
    HeadDim = 32;
    Rotary = 8;
    Context = 100;
    KeyHeads = 2;
    KeyDim = 24;
    ValueHeads = 4;
    ValueDim = 40;
    Taps = 4;
}

/// The channels of Gated DeltaNet.
type Channels = Qkv<KeyHeads, KeyDim, ValueHeads, ValueDim>;

/// Each head's query, followed by its gate.
type QueryGates = By<Heads, By<Two, HeadDim>>;

const EPS: f32 = 1e-6;

/// Numbers between -1 and 1, the same for the same seed.
fn numbers(seed: u32, count: usize) -> impl Iterator<Item = f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    (0..count).map(move |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    })
}

fn bf16_master<S: Shape>(seed: u32) -> Master<S, Bf16> {
    Master::from_vec(numbers(seed, S::NUMEL).map(bf16::from_f32).collect()).expect("as many as the shape")
}

fn f32_master<S: Shape>(seed: u32) -> Master<S, F32> {
    Master::from_vec(numbers(seed, S::NUMEL).collect()).expect("as many as the shape")
}

fn read<B: Backend, S: Shape, E: Dtype>(backend: &B, tensor: &Tensor<B, S, E>) -> Vec<E::Repr> {
    backend.download(tensor).expect("a tensor of its shape").values().into_owned()
}

/// Everything that a backend computed, by the name of the operation.
#[derive(Default)]
struct Outputs(Vec<(&'static str, Vec<f32>)>);

impl Outputs {
    fn add<B: Backend, S: Shape>(&mut self, name: &'static str, backend: &B, tensor: &Tensor<B, S, Bf16>) {
        let values = read(backend, tensor).iter().map(|x| x.to_f32()).collect();
        self.0.push((name, values));
    }

    fn add_f32<B: Backend, S: Shape>(&mut self, name: &'static str, backend: &B, tensor: &Tensor<B, S, F32>) {
        self.0.push((name, read(backend, tensor)));
    }
}

/// Calls every operation with the same inputs, those of a layer one after the other, the states
/// in two steps.
fn every_operation<T: Dim, B: Backend>(backend: &B, rows: usize) -> Outputs {
    let b = backend;
    let mut outputs = Outputs::default();
    let ids: Vec<u32> = (0..rows as u32).map(|i| (i * 7 + 5) % Vocab::SIZE as u32).collect();
    let tokens = Tokens::<B, T, Vocab>::upload(b, &ids, 3).expect("ids of the vocabulary");
    let step = tokens.step();

    let table = b.stage(&bf16_master::<(Vocab, Hidden)>(1));
    let h: Tensor<B, (T, Hidden), Bf16> = b.embed(&tokens, &table);
    outputs.add("embed", b, &h);
    let norm = ZeroCentredNorm::<B, Hidden>(b.stage(&bf16_master(2)));
    let x = b.rms_norm(&h, &norm, EPS);
    outputs.add("rms_norm", b, &x);
    outputs.add("add", b, &b.add(&h, &x));
    let gate: Tensor<B, (Inner, Hidden), Bf16> = b.stage(&bf16_master(3));
    let up = b.stage(&bf16_master::<(Inner, Hidden)>(4));
    outputs.add("linear", b, &b.linear(&x, &gate));
    outputs.add("gated_linear", b, &b.gated_linear(&x, &gate, &up));

    // Full attention, from position 3 on, and once more from behind the first step on.
    let pairs: Tensor<B, (T, QueryGates), Bf16> = b.stage(&bf16_master(5));
    let head_norm = ZeroCentredNorm::<B, HeadDim>(b.stage(&bf16_master(6)));
    let q = b.rms_norm_heads(pairs.first_of_pairs(), &head_norm, EPS);
    outputs.add("rms_norm_heads", b, &q);
    let rotary = b.rotary::<T, Rotary>(step, 1e7);
    outputs.add("cos", b, &rotary.cos);
    outputs.add("sin", b, &rotary.sin);
    let q = b.rope(&q, &rotary);
    outputs.add("rope", b, &q);
    let k: Tensor<B, (T, By<KvHeads, HeadDim>), Bf16> = b.stage(&bf16_master(7));
    let k = b.rms_norm_heads(k.view(), &head_norm, EPS);
    outputs.add("rms_norm_heads of a tensor", b, &k);
    let v = b.stage(&bf16_master::<(T, By<KvHeads, HeadDim>)>(8));
    let mut cache = KvCache::<B, KvHeads, HeadDim, Context>::new(b);
    let o = b.attention(&q, &k, &v, &mut cache, step);
    outputs.add("attention", b, &o);
    let next = Span::<T>::new(step.span().end(), 1).expect("one row");
    let next = Step::from_parts(b.upload_tokens(&vec![0; T::SIZE], next).expect("padded ids"), next);
    outputs.add("attention, next step", b, &b.attention(&q, &k, &v, &mut cache, &next));
    outputs.add("keys", b, &cache.k);
    outputs.add("values", b, &cache.v);
    outputs.add("sigmoid_gate", b, &b.sigmoid_gate(&o, pairs.second_of_pairs()));

    // Gated DeltaNet.
    let m: Tensor<B, (T, Channels), Bf16> = b.stage(&bf16_master(9));
    let taps = b.stage(&bf16_master::<(Channels, One, Taps)>(10));
    let mut conv = ConvState::<B, Channels, Taps>::new(b);
    b.causal_conv(&m, &taps, &mut conv, step);
    let qkv = b.causal_conv(&m, &taps, &mut conv, step);
    outputs.add("causal_conv", b, &qkv);
    outputs.add("conv state", b, &conv.0);
    let a = b.stage(&bf16_master::<(T, ValueHeads)>(11));
    let beta = b.stage(&bf16_master::<(T, ValueHeads)>(12));
    let a_log = b.stage(&f32_master::<(ValueHeads,)>(13));
    let dt_bias = b.stage(&bf16_master::<(ValueHeads,)>(14));
    let gates = b.gdn_gates(&a, &beta, &a_log, &dt_bias);
    outputs.add("beta", b, &gates.beta);
    outputs.add_f32("log_decay", b, &gates.log_decay);
    let mut delta = DeltaState::<B, ValueHeads, KeyDim, ValueDim>::new(b);
    b.gated_delta::<T, KeyHeads, KeyDim, ValueHeads, ValueDim>(&qkv, &gates, &mut delta, step);
    let o = b.gated_delta::<T, KeyHeads, KeyDim, ValueHeads, ValueDim>(&qkv, &gates, &mut delta, step);
    outputs.add("gated_delta", b, &o);
    outputs.add_f32("delta state", b, &delta.0);
    let z = b.stage(&bf16_master::<(T, By<ValueHeads, ValueDim>)>(15));
    let norm = PlainNorm::<B, ValueDim>(b.stage(&f32_master(16)));
    outputs.add("gated_norm", b, &b.gated_norm(&o, &z, &norm, EPS));

    let last = b.last_row(&h, step);
    outputs.add("last_row", b, &last);
    let logits = b.lm_head(&last, &table);
    outputs.add_f32("logits", b, logits.tensor());
    let token = read(b, &b.argmax(&logits))[0];
    outputs.0.push(("argmax", vec![token as f32]));
    b.submit().expect("nothing to fail");
    outputs
}

/// All valid rows lie in front, so that padding needs no comparison of its own.
fn compare<T: Dim>(rows: usize) {
    let expected = every_operation::<T, _>(&CpuReference::new(), rows);
    let found = every_operation::<T, _>(&Cpu::new(), rows);
    for ((name, found), (_, expected)) in found.0.iter().zip(&expected.0) {
        assert_eq!(found.len(), expected.len(), "{name}");
        let largest = expected.iter().fold(0.0f32, |m, x| m.max(x.abs()));
        assert!(largest > 0.0, "{name}: all zeros");
        for (i, (a, b)) in found.iter().zip(expected).enumerate() {
            // An ulp of bf16 where a rounding fell the other way, and what that does to the
            // values computed of it.
            assert!((a - b).abs() <= largest / 100.0, "{name}: {a} and {b} at {i}");
        }
        // Most values are the same to the bit, but where sums are long and not rounded to bf16.
        let different = found.iter().zip(expected).filter(|(a, b)| a != b).count();
        let exact = !["logits", "delta state", "log_decay"].contains(name);
        assert!(!exact || different * 8 <= found.len(), "{name}: {different} of {} differ", found.len());
    }
}

#[test]
fn a_step_of_one_row() {
    compare::<One>(1);
}

#[test]
fn a_step_of_many_rows() {
    compare::<Prefill>(80);
}

#[test]
fn a_step_with_padding() {
    compare::<Prefill>(71);
}

#[test]
fn threads_make_no_difference() {
    let alone = every_operation::<Prefill, _>(&Cpu::with_threads(1), 71);
    for threads in 2..=3 {
        let shared = every_operation::<Prefill, _>(&Cpu::with_threads(threads), 71);
        for ((name, a), (_, b)) in alone.0.iter().zip(&shared.0) {
            assert!(a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits())), "{name}");
        }
    }
}

/// The valid rows of a tensor.
fn rows_of<B: Backend, T: Dim, D: Dim>(b: &B, tensor: &Tensor<B, (T, D), Bf16>, rows: usize) -> Vec<bf16> {
    let mut values = read(b, tensor);
    values.truncate(rows * D::SIZE);
    values
}

/// Row `t` of a master, as a step of one row.
fn row<D: Dim, B: Backend>(
    b: &B,
    master: &Master<(Prefill, D), Bf16>,
    t: usize,
) -> Tensor<B, (One, D), Bf16> {
    let row = master.values()[t * D::SIZE..(t + 1) * D::SIZE].to_vec();
    b.stage(&Master::from_vec(row).expect("a row"))
}

fn step<T: Dim, B: Backend>(b: &B, start: usize, rows: usize) -> Step<B, T> {
    let span = Span::new(start, rows).expect("rows within the capacity");
    Step::from_parts(b.upload_tokens(&vec![0; T::SIZE], span).expect("padded ids"), span)
}

/// Prefill and decode of the three operations with a state: all rows in one step, with padding,
/// against a step for each row.
fn steps_and_sequences<K: CpuKernels>() {
    let b = &CpuBackend::<K>::with_threads(2);
    let rows = 71;
    let all = step::<Prefill, _>(b, 0, rows);
    let one = |t| step::<One, _>(b, t, 1);

    let q = bf16_master::<(Prefill, By<Heads, HeadDim>)>(21);
    let k = bf16_master::<(Prefill, By<KvHeads, HeadDim>)>(22);
    let v = bf16_master::<(Prefill, By<KvHeads, HeadDim>)>(23);
    let mut cache = KvCache::<_, KvHeads, HeadDim, Context>::new(b);
    let at_once = b.attention(&b.stage(&q), &b.stage(&k), &b.stage(&v), &mut cache, &all);
    let mut stepped = KvCache::<_, KvHeads, HeadDim, Context>::new(b);
    let mut steps = Vec::new();
    for t in 0..rows {
        let (q, k, v) = (row(b, &q, t), row(b, &k, t), row(b, &v, t));
        steps.extend(read(
            b,
            &b.attention::<One, Heads, KvHeads, HeadDim, Context>(&q, &k, &v, &mut stepped, &one(t)),
        ));
    }
    assert_eq!(rows_of(b, &at_once, rows), steps, "attention");
    assert_eq!(read(b, &cache.k), read(b, &stepped.k), "keys");
    assert_eq!(read(b, &cache.v), read(b, &stepped.v), "values");

    let m = bf16_master::<(Prefill, Channels)>(24);
    let taps = b.stage(&bf16_master::<(Channels, One, Taps)>(25));
    let mut state = ConvState::<_, Channels, Taps>::new(b);
    let at_once = b.causal_conv(&b.stage(&m), &taps, &mut state, &all);
    let mut stepped = ConvState::<_, Channels, Taps>::new(b);
    let mut steps = Vec::new();
    for t in 0..rows {
        steps.extend(read(b, &b.causal_conv(&row(b, &m, t), &taps, &mut stepped, &one(t))));
    }
    assert_eq!(rows_of(b, &at_once, rows), steps, "causal_conv");
    assert_eq!(read(b, &state.0), read(b, &stepped.0), "conv states");

    let (a, beta) = (bf16_master::<(Prefill, ValueHeads)>(26), bf16_master::<(Prefill, ValueHeads)>(27));
    let a_log = b.stage(&f32_master::<(ValueHeads,)>(28));
    let dt_bias = b.stage(&bf16_master::<(ValueHeads,)>(29));
    let mut state = DeltaState::<_, ValueHeads, KeyDim, ValueDim>::new(b);
    let gates = b.gdn_gates(&b.stage(&a), &b.stage(&beta), &a_log, &dt_bias);
    let at_once = b.gated_delta::<Prefill, KeyHeads, _, _, _>(&b.stage(&m), &gates, &mut state, &all);
    let mut stepped = DeltaState::<_, ValueHeads, KeyDim, ValueDim>::new(b);
    let mut steps = Vec::new();
    for t in 0..rows {
        let gates = b.gdn_gates(&row(b, &a, t), &row(b, &beta, t), &a_log, &dt_bias);
        let m = row(b, &m, t);
        steps.extend(read(b, &b.gated_delta::<One, KeyHeads, _, _, _>(&m, &gates, &mut stepped, &one(t))));
    }
    for (x, y) in read(b, &state.0).iter().zip(read(b, &stepped.0)) {
        assert!((x - y).abs() < 3e-6, "delta states: {x} and {y}");
    }
    for (x, y) in rows_of(b, &at_once, rows).iter().zip(steps) {
        let (x, y) = (x.to_f32(), y.to_f32());
        assert!((x - y).abs() <= 3e-6 + y.abs() / 128.0, "gated_delta: {x} and {y}");
    }
}

#[test]
fn steps_are_sequences() {
    steps_and_sequences::<tt_backend_cpu::kernels::Simd>();
}

#[test]
fn steps_are_sequences_in_the_reference() {
    steps_and_sequences::<tt_backend_cpu::kernels::Plain>();
}

/// A checkpoint's tensor may begin anywhere; an aligned one is not copied, neither in nor out.
#[test]
fn masters_at_any_offset() {
    let b = CpuReference::with_threads(1);
    let values: Vec<bf16> = numbers(31, Hidden::SIZE).map(bf16::from_f32).collect();
    let mut aligned = 0;
    for offset in 0..4 {
        let mut file = vec![0xff; offset];
        file.extend_from_slice(bytemuck::cast_slice(&values));
        let end = file.len();
        let bytes = HostBytes::new(Arc::new(file), offset..end).expect("within the file");
        let master = Master::<(Hidden,), Bf16>::from_bytes(bytes).expect("as long as the shape");
        let tensor = b.stage(&master);
        assert_eq!(read(&b, &tensor), values, "offset {offset}");
        let back = b.download(&tensor).expect("a tensor of its shape");
        aligned += usize::from(std::ptr::eq(back.bytes().as_slice(), master.bytes().as_slice()));
    }
    assert_eq!(aligned, 2, "every other offset is aligned, wherever the file begins");
}

#[test]
fn argmax_takes_the_first_of_equals() {
    let b = Cpu::with_threads(1);
    let mut values = vec![0.0; Vocab::SIZE];
    (values[17], values[31], values[40]) = (2.0, 2.0, f32::NAN);
    let tensor = b.stage(&Master::from_vec(values).expect("as many as the shape"));
    let token = b.argmax(&LogitsF32::<_, Vocab>::from_accumulators(tensor));
    assert_eq!(read(&b, &token), [17]);
}

#[test]
fn buffers_of_the_wrong_length_are_errors() {
    let b = Cpu::with_threads(1);
    let span = Span::<Prefill>::new(0, 3).expect("three rows");
    let error = b.upload_tokens(&[1, 2, 3], span).err().expect("not padded");
    assert_eq!(error.to_string(), "expected 80 token ids, padding included, found 3");
    let tensor = Tensor::<Cpu, (Hidden,), U32>::from_buffer(vec![0; 3].into());
    let error = b.download(&tensor).expect_err("too short");
    assert!(error.to_string().starts_with("expected 96 elements"), "{error}");
}
