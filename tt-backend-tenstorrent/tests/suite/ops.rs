//! Every op through the typed interface, against the CPU's reference.

use crate::random::{Random, cases_of};
use crate::tolerance::{self, Tolerance, excess};
use half::bf16;
use proptest::prelude::*;
use tt_backend_cpu::CpuReference;
use tt_backend_tenstorrent::{Destination, Fidelity, Numerics, Session, SessionOptions, Tenstorrent};
use tt_dsl::{
    Backend, Bf16, By, ConvState, DeltaState, Dim, Dtype, F32, GdnGates, KvCache, LogitsF32, Master, One,
    PlainNorm, Qkv, Rotary, Shape, Tensor, Tokens, Two, ZeroCentredNorm, dim,
};

dim! {
    Hidden = 96;
    // Not whole tiles, nor whole faces.
    Ragged = 75;
    Vocab = 130;
    Heads = 4;
    KvHeads = 2;
    HeadDim = 32;
    RotaryDim = 12;
    Context = 70;
    KeyHeads = 2;
    ValueHeads = 4;
    KeyDim = 20;
    ValueDim = 40;
    Taps = 4;
    Five = 5;
    Bucket = 40;
}

type Channels = Qkv<KeyHeads, KeyDim, ValueHeads, ValueDim>;

/// What to run with.
#[derive(Debug, Clone, Copy)]
struct Case {
    seed: u64,
    scale: f64,
    /// Of the capacity.
    rows: usize,
    start: usize,
    /// Whether some values are zeros, denormals, very large or very small.
    extremes: bool,
}

/// Random operands on a backend, the same on each for the same case.
struct Operands<'a, B: Backend> {
    b: &'a B,
    random: Random,
    case: Case,
}

/// Results by name.
type Results = Vec<(&'static str, Vec<f32>)>;

const EXTREMES: [f32; 8] = [0.0, -0.0, 1e-40, -1e-39, 1e-20, 3e4, -3e4, 1.0];

impl<B: Backend> Operands<'_, B> {
    fn value(&mut self, scale: f64) -> f32 {
        if self.case.extremes && self.random.below(16) == 0 {
            return EXTREMES[self.random.below(EXTREMES.len())];
        }
        (self.random.normal() * scale) as f32
    }

    fn bf16<S: Shape>(&mut self, scale: f64) -> Tensor<B, S, Bf16> {
        let values = (0..S::NUMEL).map(|_| bf16::from_f32(self.value(scale))).collect();
        self.b.stage(&Master::from_vec(values).unwrap())
    }

    fn f32<S: Shape>(&mut self, scale: f64) -> Tensor<B, S, F32> {
        let values = (0..S::NUMEL).map(|_| (self.random.normal() * scale) as f32).collect();
        self.b.stage(&Master::from_vec(values).unwrap())
    }

    fn act<T: Dim, D: Dim>(&mut self) -> Tensor<B, (T, D), Bf16> {
        self.bf16(self.case.scale)
    }
}

trait Widen {
    fn widen(self) -> f32;
}

impl Widen for bf16 {
    fn widen(self) -> f32 {
        self.to_f32()
    }
}

impl Widen for f32 {
    fn widen(self) -> f32 {
        self
    }
}

/// The first `rows` rows of a tensor, or all of it.
fn values<B: Backend, S: Shape, E: Dtype<Repr: Widen>>(
    b: &B,
    tensor: &Tensor<B, S, E>,
    rows: Option<usize>,
) -> Vec<f32> {
    let master = b.download(tensor).unwrap();
    let row = S::NUMEL / S::SIZES[0];
    master.values().iter().take(rows.map_or(S::NUMEL, |rows| rows * row)).map(|v| v.widen()).collect()
}

/// Runs every op on the case's operands.
fn all_ops<B: Backend, T: Dim>(b: &B, case: Case) -> Results {
    let rows = Some(case.rows);
    let mut o = Operands { b, random: Random::new(case.seed), case };
    let mut results = Results::new();
    let ids: Vec<u32> = (0..case.rows as u32).map(|i| (i * 37 + case.seed as u32) % 130).collect();
    let tokens = Tokens::<B, T, Vocab>::upload(b, &ids, case.start).unwrap();
    let step = tokens.step();

    let table: Tensor<B, (Vocab, Ragged), Bf16> = o.bf16(case.scale);
    results.push(("embed", values(b, &b.embed(&tokens, &table), rows)));

    let x: Tensor<B, (T, Hidden), Bf16> = o.act();
    let w: Tensor<B, (Ragged, Hidden), Bf16> = o.bf16(0.1);
    results.push(("linear", values(b, &b.linear(&x, &w), rows)));
    let y: Tensor<B, (T, Hidden), Bf16> = o.act();
    results.push(("add", values(b, &b.add(&x, &y), rows)));
    results.push(("swiglu", values(b, &b.swiglu(&x, &y), rows)));
    let norm = ZeroCentredNorm(o.bf16::<(Hidden,)>(0.2));
    results.push(("rms_norm", values(b, &b.rms_norm(&x, &norm, 1e-6), rows)));
    let last = b.last_row(&x, step);
    results.push(("last_row", values(b, &last, None)));

    let pairs: Tensor<B, (T, By<Heads, By<Two, HeadDim>>), Bf16> = o.act();
    let head_norm = ZeroCentredNorm(o.bf16::<(HeadDim,)>(0.2));
    let q = b.rms_norm_heads(pairs.first_of_pairs(), &head_norm, 1e-6);
    results.push(("rms_norm_heads", values(b, &q, rows)));
    let whole: Tensor<B, (T, By<Heads, HeadDim>), Bf16> = o.act();
    results.push(("sigmoid_gate", values(b, &b.sigmoid_gate(&whole, pairs.second_of_pairs()), rows)));
    let contiguous = b.sigmoid_gate::<T, Heads, HeadDim, _>(&whole, whole.view());
    results.push(("sigmoid_gate", values(b, &contiguous, rows)));

    let rotary: Rotary<B, T, RotaryDim> = b.rotary(step, 1e7);
    results.push(("cos", values(b, &rotary.cos, rows)));
    results.push(("sin", values(b, &rotary.sin, rows)));
    // Tables of its own, so that a difference of the rotary op is not counted twice.
    let tables = Rotary { cos: o.bf16::<(T, RotaryDim)>(0.7), sin: o.bf16(0.7) };
    results.push(("rope", values(b, &b.rope(&whole, &tables), rows)));

    let mut cache: KvCache<B, KvHeads, HeadDim, Context> =
        KvCache { k: o.bf16(case.scale), v: o.bf16(case.scale) };
    let k: Tensor<B, (T, By<KvHeads, HeadDim>), Bf16> = o.act();
    let v: Tensor<B, (T, By<KvHeads, HeadDim>), Bf16> = o.act();
    let mixed = b.attention::<T, Heads, KvHeads, HeadDim, Context>(&whole, &k, &v, &mut cache, step);
    results.push(("attention", values(b, &mixed, rows)));
    results.push(("attention, keys", values(b, &cache.k, None)));

    let columns: Tensor<B, (T, Channels), Bf16> = o.act();
    let taps: Tensor<B, (Channels, One, Taps), Bf16> = o.bf16(0.5);
    let mut conv = ConvState::<B, Channels, Taps>(o.bf16(case.scale));
    let convolved = b.causal_conv(&columns, &taps, &mut conv, step);
    results.push(("conv", values(b, &convolved, rows)));
    results.push(("conv, state", values(b, &conv.0, None)));

    let (alpha, beta): (Tensor<B, (T, ValueHeads), Bf16>, _) = (o.act(), o.act());
    let (a_log, bias) = (o.f32::<(ValueHeads,)>(0.5), o.bf16::<(ValueHeads,)>(0.5));
    let gates: GdnGates<B, T, ValueHeads> = b.gdn_gates(&alpha, &beta, &a_log, &bias);
    results.push(("gates, beta", values(b, &gates.beta, rows)));
    results.push(("gates, log_decay", values(b, &gates.log_decay, rows)));

    // Gates of its own, from operands that are the same bits on every backend.
    let gates = GdnGates { beta: o.bf16::<(T, ValueHeads)>(0.3), log_decay: negative(&mut o) };
    let mut delta: DeltaState<B, ValueHeads, KeyDim, ValueDim> = DeltaState(o.f32(0.3));
    let out = b.gated_delta::<T, KeyHeads, KeyDim, ValueHeads, ValueDim>(&columns, &gates, &mut delta, step);
    let (name, state) = if T::SIZE == 1 {
        ("gated_delta, step", "gated_delta, step's state")
    } else {
        ("gated_delta, rows", "gated_delta, state")
    };
    results.push((name, values(b, &out, rows)));
    results.push((state, values(b, &delta.0, None)));

    let mixed: Tensor<B, (T, By<ValueHeads, ValueDim>), Bf16> = o.act();
    let z: Tensor<B, (T, By<ValueHeads, ValueDim>), Bf16> = o.act();
    let plain = PlainNorm(o.f32::<(ValueDim,)>(0.5));
    results.push((
        "gated_norm",
        values(b, &b.gated_norm::<T, ValueHeads, ValueDim>(&mixed, &z, &plain, 1e-6), rows),
    ));

    let head: Tensor<B, (Vocab, Hidden), Bf16> = o.bf16(0.1);
    results.push(("lm_head", values(b, b.lm_head(&last, &head).tensor(), None)));
    results
}

fn negative<B: Backend, T: Dim>(o: &mut Operands<'_, B>) -> Tensor<B, (T, ValueHeads), F32> {
    let values = (0..T::SIZE * 4).map(|_| -(o.random.normal().abs() as f32) * 0.3).collect();
    o.b.stage(&Master::from_vec(values).unwrap())
}

fn compare(numerics: Numerics, budget: impl Fn(&str) -> Tolerance, case: Case) -> Result<(), TestCaseError> {
    let options =
        SessionOptions { numerics, fidelity: Fidelity::HiFi4, dest: Destination::F32, ..Default::default() };
    let device = Tenstorrent::new(Session::open(options).unwrap());
    let reference = CpuReference::with_threads(1);
    let (found, expected) = match case.rows {
        1 if case.seed.is_multiple_of(2) => {
            (all_ops::<_, One>(&device, case), all_ops::<_, One>(&reference, case))
        }
        1..=5 => (all_ops::<_, Five>(&device, case), all_ops::<_, Five>(&reference, case)),
        _ => (all_ops::<_, Bucket>(&device, case), all_ops::<_, Bucket>(&reference, case)),
    };
    for ((name, found), (_, expected)) in found.iter().zip(&expected) {
        if let Some(excess) = excess(budget(name), found, expected) {
            return Err(TestCaseError::fail(format!("{numerics:?} {name} {excess}")));
        }
    }
    Ok(())
}

fn cases() -> impl Strategy<Value = Case> {
    let rows = prop_oneof![3 => Just(1usize), 2 => 1usize..=5, 2 => 6usize..=40];
    let scale = prop::sample::select(vec![0.01, 0.3, 1.0, 4.0]);
    (any::<u64>(), scale, rows, 0usize..=30, any::<bool>())
        .prop_map(|(seed, scale, rows, start, extremes)| Case { seed, scale, rows, start, extremes })
}

proptest! {
    #![proptest_config(cases_of(60))]

    #[test]
    fn fast_is_the_reference(case in cases()) {
        compare(Numerics::Fast, tolerance::fast, case)?;
    }

    #[test]
    fn tensix_is_near_the_reference(case in cases()) {
        compare(Numerics::Tensix, tolerance::tensix, Case { extremes: false, ..case })?;
    }

    /// The lowest of equals wins, and a NaN never does unless all are.
    #[test]
    fn argmax_is_the_reference(
        values in prop::collection::vec(prop::sample::select(vec![0.0f32, 1.0, 2.0, -3.0, f32::NAN, f32::NEG_INFINITY]), 130),
    ) {
        fn argmax<B: Backend>(b: &B, values: &[f32]) -> u32 {
            let logits = LogitsF32::<B, Vocab>::from_accumulators(b.stage(&Master::from_vec(values.to_vec()).unwrap()));
            b.download(&b.argmax(&logits)).unwrap().values()[0]
        }
        let device = Tenstorrent::new(Session::open(SessionOptions::default()).unwrap());
        let reference = CpuReference::with_threads(1);
        prop_assert_eq!(argmax(&device, &values), argmax(&reference, &values));
    }
}

#[test]
fn argmax_of_nothing_but_nan_is_zero() {
    let device = Tenstorrent::new(Session::open(SessionOptions::default()).unwrap());
    let logits = LogitsF32::<_, Vocab>::from_accumulators(
        device.stage(&Master::from_vec(vec![f32::NAN; 130]).unwrap()),
    );
    assert_eq!(device.download(&device.argmax(&logits)).unwrap().values()[0], 0);
}

/// A row's result does not depend on the rows beside it, nor on the number of threads.
#[test]
fn rows_and_threads_make_no_difference() {
    let case = Case { seed: 5, scale: 1.0, rows: 40, start: 3, extremes: false };
    for numerics in [Numerics::Tensix, Numerics::Fast] {
        let run = |threads| {
            let options = SessionOptions { numerics, threads, ..SessionOptions::default() };
            all_ops::<_, Bucket>(&Tenstorrent::new(Session::open(options).unwrap()), case)
        };
        assert_eq!(run(1), run(3));
    }
}
