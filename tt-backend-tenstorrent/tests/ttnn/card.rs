//! Each operation on the library, against the CPU's plain kernels: on a card with `TT_HARDWARE=1`, and on
//! the stand-in always. Every lowering is run: whole blocks, command by command, and with outputs that the
//! calls allocate.

use half::bf16;
use libtest_mimic::{Failed, Trial};
use std::sync::Arc;
use tt_backend_cpu::CpuReference;
use tt_backend_tenstorrent::Tenstorrent;
use tt_backend_tenstorrent::ttnn::{self, Levers, TtnnOptions};
use tt_backend_tenstorrent::{Error, Session};
use tt_dsl::*;

dim! {
    Hidden = 64; Inner = 96; Heads = 4; KvHeads = 2; HeadDim = 64; Rotary_ = 32; Ctx = 128;
    Vocab = 160; KeyHeads = 2; ValueHeads = 4; Dk = 32; Taps = 4; Eight = 8; Many = 64;
}

/// The ways of lowering.
const WAYS: [Levers; 3] =
    [Levers::ALL, Levers::STRAIGHTFORWARD, Levers { preallocation: false, plans: false, ..Levers::ALL }];

/// Every test of this file. Without a card they are ignored, and counted so.
pub(crate) fn trials() -> Vec<Trial> {
    let runs = cfg!(feature = "ttnn-stand-in") || std::env::var_os("TT_HARDWARE").is_some();
    let tests: [(&str, fn()); 11] = [
        ("linear", linear),
        ("linear_rows", linear_rows),
        ("embed", embed),
        ("residual_sum", residual_sum),
        ("gated_mlp", gated_mlp),
        ("rms_norm", rms_norm),
        ("attention_in_two_prefills_and_steps", attention_in_two_prefills_and_steps),
        ("attention_in_a_tile_and_steps", attention_in_a_tile_and_steps),
        ("delta_net_in_a_prefill_and_steps", delta_net_in_a_prefill_and_steps),
        (
            "a_position_past_the_context_is_refused_and_the_session_stays_usable",
            a_position_past_the_context_is_refused_and_the_session_stays_usable,
        ),
        (
            "a_decode_step_writes_the_token_and_reads_nothing_else",
            a_decode_step_writes_the_token_and_reads_nothing_else,
        ),
    ];
    let trial = |(name, test): (&str, fn())| Trial::test(format!("card::{name}"), move || passed(test));
    tests.into_iter().map(|test| trial(test).with_ignored_flag(!runs)).collect()
}

fn passed(test: fn()) -> Result<(), Failed> {
    test();
    Ok(())
}

fn open(levers: Levers) -> Arc<Session> {
    match ttnn::open(&TtnnOptions { levers, ..TtnnOptions::default() }) {
        Ok(session) => session,
        Err(error) => panic!("{error}"),
    }
}

/// A number of 0 to 256 that depends on both without a pattern.
fn scrambled(seed: usize, i: usize) -> usize {
    let mut x = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (seed as u64) << 32;
    x = (x ^ x >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((x ^ x >> 29) % 257) as usize
}

/// Values of -0.5 to 0.5, exact in bf16.
fn pattern<S: Shape>(seed: usize) -> Master<S, Bf16> {
    let value = |i: usize| bf16::from_f32(scrambled(seed, i) as f32 / 256.0 - 0.5);
    Master::from_vec((0..S::NUMEL).map(value).collect()).expect("as many values as the shape has")
}

fn pattern_f32<S: Shape>(seed: usize) -> Master<S, F32> {
    let value = |i: usize| scrambled(seed, i) as f32 / 256.0 - 0.5;
    Master::from_vec((0..S::NUMEL).map(value).collect()).expect("as many values as the shape has")
}

/// The relative L2 distance.
fn distance(found: &[bf16], expected: &[bf16]) -> f64 {
    let (mut error, mut size) = (0.0, 0.0);
    for (found, expected) in found.iter().zip(expected) {
        error += (found.to_f64() - expected.to_f64()).powi(2);
        size += expected.to_f64().powi(2);
    }
    (error / size).sqrt()
}

/// Runs `task` on the CPU and on the library in every way, and compares what comes back.
macro_rules! compare {
    ($name:ident, |$b:ident| $task:expr) => {
        fn $name() {
            let cpu = CpuReference::new();
            let expected: Vec<bf16> = {
                let $b = &cpu;
                $task
            };
            for levers in WAYS {
                let card = Tenstorrent::new(open(levers));
                let found: Vec<bf16> = {
                    let $b = &card;
                    $task
                };
                let off = distance(&found, &expected);
                println!("{}: relative L2 {off:.2e} with {levers:?}", stringify!($name));
                assert!(
                    found.len() == expected.len() && off < 1e-2,
                    "{}: {off:.2e}, {levers:?}",
                    stringify!($name)
                );
            }
        }
    };
}

fn tokens<B: Backend, T: Dim>(b: &B, start: usize, rows: usize) -> Tokens<B, T, Vocab> {
    let ids: Vec<u32> = (0..rows).map(|i| (i * 7 % Vocab::SIZE) as u32).collect();
    match Tokens::upload(b, &ids, start) {
        Ok(tokens) => tokens,
        Err(error) => panic!("tokens: {error}"),
    }
}

fn values<B: Backend, S: Shape>(b: &B, tensor: &Tensor<B, S, Bf16>) -> Vec<bf16> {
    match b.download(tensor) {
        Ok(master) => master.values().to_vec(),
        Err(error) => panic!("download: {error}"),
    }
}

compare!(linear, |b| {
    let x = b.stage(&pattern::<(One, Hidden)>(1));
    let w = b.stage(&pattern::<(Inner, Hidden)>(2));
    values(b, &b.linear::<One, Hidden, Inner>(&x, &w))
});

compare!(linear_rows, |b| {
    let x = b.stage(&pattern::<(Many, Hidden)>(1));
    let w = b.stage(&pattern::<(Inner, Hidden)>(2));
    values(b, &b.linear::<Many, Hidden, Inner>(&x, &w))
});

compare!(embed, |b| {
    let tokens = tokens::<_, Eight>(b, 3, 5);
    let table = b.stage(&pattern::<(Vocab, Hidden)>(3));
    values(b, &b.embed::<Eight, Vocab, Hidden>(&tokens, &table))[..5 * Hidden::SIZE].to_vec()
});

compare!(residual_sum, |b| {
    let x = b.stage(&pattern::<(One, Hidden)>(1));
    let h = b.stage(&pattern::<(One, Inner)>(5));
    let w = b.stage(&pattern::<(Inner, Hidden)>(2));
    // Nobody else reads the projection, so that it is lowered together with the sum.
    let sum = {
        let y = b.linear::<One, Hidden, Inner>(&x, &w);
        b.add::<One, Inner>(&h, &y)
    };
    values(b, &sum)
});

compare!(gated_mlp, |b| {
    let x = b.stage(&pattern::<(One, Hidden)>(1));
    let gate = b.stage(&pattern::<(Inner, Hidden)>(2));
    let up = b.stage(&pattern::<(Inner, Hidden)>(9));
    values(b, &b.gated_linear::<One, Hidden, Inner>(&x, &gate, &up))
});

compare!(rms_norm, |b| {
    let x = b.stage(&pattern::<(Eight, Hidden)>(1));
    let w = ZeroCentredNorm(b.stage(&pattern::<(Hidden,)>(2)));
    values(b, &b.rms_norm::<Eight, Hidden>(&x, &w, 1e-6))
});

/// An attention mixer over a prefill of `first` tokens, another of `second`, and decode steps; the values
/// of every pass one after the other.
fn attention<B: Backend>(b: &B, first: usize, second: usize, steps: usize) -> Vec<bf16> {
    let wq = b.stage(&pattern::<(By<Heads, By<Two, HeadDim>>, Hidden)>(1));
    let wk = b.stage(&pattern::<(By<KvHeads, HeadDim>, Hidden)>(2));
    let wv = b.stage(&pattern::<(By<KvHeads, HeadDim>, Hidden)>(3));
    let table = b.stage(&pattern::<(Vocab, Hidden)>(4));
    let nq = ZeroCentredNorm(b.stage(&pattern::<(HeadDim,)>(5)));
    let nk = ZeroCentredNorm(b.stage(&pattern::<(HeadDim,)>(6)));
    let mut cache = KvCache::<B, KvHeads, HeadDim, Ctx>::new(b);
    let mut all = Vec::new();
    let mut position = 0;
    let mut pass = |rows: usize, decode: bool| {
        all.extend(if decode {
            attention_pass::<B, One>(b, position, rows, (&wq, &wk, &wv, &table, &nq, &nk), &mut cache)
        } else {
            attention_pass::<B, Eight>(b, position, rows, (&wq, &wk, &wv, &table, &nq, &nk), &mut cache)
        });
        position += rows;
    };
    pass(first, false);
    pass(second, false);
    for _ in 0..steps {
        pass(1, true);
    }
    all
}

type AttentionWeights<'a, B> = (
    &'a Tensor<B, (By<Heads, By<Two, HeadDim>>, Hidden), Bf16>,
    &'a Tensor<B, (By<KvHeads, HeadDim>, Hidden), Bf16>,
    &'a Tensor<B, (By<KvHeads, HeadDim>, Hidden), Bf16>,
    &'a Tensor<B, (Vocab, Hidden), Bf16>,
    &'a ZeroCentredNorm<B, HeadDim>,
    &'a ZeroCentredNorm<B, HeadDim>,
);

fn attention_pass<B: Backend, T: Dim>(
    b: &B,
    position: usize,
    rows: usize,
    (wq, wk, wv, table, nq, nk): AttentionWeights<'_, B>,
    cache: &mut KvCache<B, KvHeads, HeadDim, Ctx>,
) -> Vec<bf16> {
    let tokens = tokens::<B, T>(b, position, rows);
    let step = tokens.step();
    // What outlives the list is not lowered as part of a block, so all but the result ends here.
    let o = {
        let rotary = b.rotary::<T, Rotary_>(step, 1e4);
        let x = b.embed::<T, Vocab, Hidden>(&tokens, table);
        let pairs = b.linear::<T, Hidden, By<Heads, By<Two, HeadDim>>>(&x, wq);
        let k = b.linear::<T, Hidden, By<KvHeads, HeadDim>>(&x, wk);
        let v = b.linear::<T, Hidden, By<KvHeads, HeadDim>>(&x, wv);
        let q = b.rope(&b.rms_norm_heads::<T, Heads, HeadDim, _>(pairs.first_of_pairs(), nq, 1e-6), &rotary);
        let k = b.rope(&b.rms_norm_heads::<T, KvHeads, HeadDim, _>(k.view(), nk, 1e-6), &rotary);
        let mixed = b.attention::<T, Heads, KvHeads, HeadDim, Ctx>(&q, &k, &v, cache, step);
        b.sigmoid_gate::<T, Heads, HeadDim, _>(&mixed, pairs.second_of_pairs())
    };
    values(b, &o)[..rows * By::<Heads, HeadDim>::SIZE].to_vec()
}

compare!(attention_in_two_prefills_and_steps, |b| attention(b, 5, 8, 3));
compare!(attention_in_a_tile_and_steps, |b| attention(b, 8, 8, 2));

/// A Gated DeltaNet mixer over a prefill and decode steps.
fn delta_net<B: Backend>(b: &B, first: usize, steps: usize) -> Vec<bf16> {
    type Mixed = Qkv<KeyHeads, Dk, ValueHeads, Dk>;
    let wm = b.stage(&pattern::<(Mixed, Hidden)>(1));
    let wz = b.stage(&pattern::<(By<ValueHeads, Dk>, Hidden)>(2));
    let wa = b.stage(&pattern::<(ValueHeads, Hidden)>(3));
    let wb = b.stage(&pattern::<(ValueHeads, Hidden)>(4));
    let taps = b.stage(&pattern::<(Mixed, One, Taps)>(5));
    let a_log = b.stage(&pattern_f32::<(ValueHeads,)>(6));
    let dt = b.stage(&pattern::<(ValueHeads,)>(7));
    let norm = PlainNorm(b.stage(&pattern_f32::<(Dk,)>(8)));
    let table = b.stage(&pattern::<(Vocab, Hidden)>(9));
    let mut conv = ConvState::<B, Mixed, Taps>::new(b);
    let mut state = DeltaState::<B, ValueHeads, Dk, Dk>::new(b);
    let mut all = Vec::new();
    let mut position = 0;
    macro_rules! pass {
        ($t:ty, $rows:expr) => {{
            let tokens = tokens::<B, $t>(b, position, $rows);
            let step = tokens.step();
            let x = b.embed::<$t, Vocab, Hidden>(&tokens, &table);
            let m = b.linear::<$t, Hidden, Mixed>(&x, &wm);
            let z = b.linear::<$t, Hidden, By<ValueHeads, Dk>>(&x, &wz);
            let beta = b.linear::<$t, Hidden, ValueHeads>(&x, &wb);
            let a = b.linear::<$t, Hidden, ValueHeads>(&x, &wa);
            let qkv = b.causal_conv::<$t, Mixed, Taps>(&m, &taps, &mut conv, step);
            let gates = b.gdn_gates::<$t, ValueHeads>(&a, &beta, &a_log, &dt);
            let o = b.gated_delta::<$t, KeyHeads, Dk, ValueHeads, Dk>(&qkv, &gates, &mut state, step);
            let y = b.gated_norm::<$t, ValueHeads, Dk>(&o, &z, &norm, 1e-6);
            drop((m, z, beta, a, qkv, gates, o, x));
            all.extend_from_slice(&values(b, &y)[..$rows * By::<ValueHeads, Dk>::SIZE]);
            position += $rows;
        }};
    }
    pass!(Eight, first);
    for _ in 0..steps {
        pass!(One, 1);
    }
    pass!(Eight, first);
    pass!(One, 1);
    assert_eq!(position, 2 * first + steps + 1);
    all.extend(values(b, &conv.0));
    let recurrent = match b.download(&state.0) {
        Ok(master) => master.values().iter().map(|&value| bf16::from_f32(value)).collect::<Vec<_>>(),
        Err(error) => panic!("download: {error}"),
    };
    all.extend(recurrent);
    all
}

compare!(delta_net_in_a_prefill_and_steps, |b| delta_net(b, 5, 5));

fn a_position_past_the_context_is_refused_and_the_session_stays_usable() {
    let session = open(Levers::ALL);
    let b = Tenstorrent::new(Arc::clone(&session));
    let mut cache = KvCache::<_, KvHeads, HeadDim, Ctx>::new(&b);
    let tokens = tokens::<_, One>(&b, Ctx::SIZE, 1);
    let q = b.stage(&pattern::<(One, By<Heads, HeadDim>)>(1));
    let k = b.stage(&pattern::<(One, By<KvHeads, HeadDim>)>(2));
    let v = b.stage(&pattern::<(One, By<KvHeads, HeadDim>)>(3));
    let o = b.attention::<One, Heads, KvHeads, HeadDim, Ctx>(&q, &k, &v, &mut cache, tokens.step());
    match b.download(&o) {
        Err(Error::Invalid { reason }) => assert!(reason.contains("within the context"), "{reason}"),
        other => panic!("expected a refusal, found {:?}", other.map(|_| ())),
    }
    assert!(session.is_usable());
    let x = b.stage(&pattern::<(One, Hidden)>(1));
    let w = b.stage(&pattern::<(Inner, Hidden)>(2));
    assert!(b.download(&b.linear::<One, Hidden, Inner>(&x, &w)).is_ok());
}

fn a_decode_step_writes_the_token_and_reads_nothing_else() {
    let session = open(Levers::ALL);
    let b = Tenstorrent::new(Arc::clone(&session));
    let table = b.stage(&pattern::<(Vocab, Hidden)>(3));
    let step = |position| {
        let tokens = tokens::<_, One>(&b, position, 1);
        let before = session.stats();
        let h = values(&b, &b.embed::<One, Vocab, Hidden>(&tokens, &table));
        (h, session.stats() - before)
    };
    step(4);
    let before = session.stats();
    step(5);
    let cost = session.stats() - before;
    assert_eq!((cost.h2d_writes, cost.h2d_bytes, cost.d2h_reads), (1, 4, 1));
}
