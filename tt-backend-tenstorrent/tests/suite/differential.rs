//! The two-closure form over ops and layers: the CPU's reference, then the device model.

use crate::tolerance;
use tt_backend_cpu::CpuReference;
use tt_backend_tenstorrent::{Fidelity, Session, SessionOptions, Tenstorrent};
use tt_dsl::differential::Trial;
use tt_dsl::{
    Backend, Bf16, By, ConvState, DeltaState, F32, GdnGates, One, PlainNorm, Qkv, Tensor, Tokens,
    ZeroCentredNorm, differential, dim,
};

dim! {
    Rows = 5;
    Hidden = 96;
    Inner = 160;
    Vocab = 130;
    KeyHeads = 2;
    ValueHeads = 4;
    HeadDim = 32;
    Taps = 4;
}

type Channels = Qkv<KeyHeads, HeadDim, ValueHeads, HeadDim>;
type Values = By<ValueHeads, HeadDim>;

fn cpu() -> CpuReference {
    CpuReference::with_threads(1)
}

fn device(options: SessionOptions) -> Tenstorrent {
    Tenstorrent::new(Session::open(options).expect("a device model"))
}

/// A norm of values with extremes among them.
fn norm<B: Backend>(mut t: Trial<B>) -> Trial<B> {
    let (x, w) = (t.extreme::<(Rows, Hidden), Bf16>(1.0), t.extreme(0.2));
    let b = t.backend();
    let out = b.rms_norm(&b.stage(&x), &ZeroCentredNorm(b.stage::<(Hidden,), Bf16>(&w)), 1e-6);
    t.output("out", &out)
}

/// A gated MLP with its residual.
fn mlp<B: Backend>(mut t: Trial<B>) -> Trial<B> {
    let x = t.normal::<(Rows, Hidden), Bf16>(1.0);
    let (gate, up) = (t.normal::<(Inner, Hidden), Bf16>(0.1), t.normal::<(Inner, Hidden), Bf16>(0.1));
    let down = t.normal::<(Hidden, Inner), Bf16>(0.1);
    let b = t.backend();
    let x = b.stage(&x);
    let inner = b.gated_linear(&x, &b.stage(&gate), &b.stage(&up));
    let out = b.add(&x, &b.linear(&inner, &b.stage(&down)));
    t.output("inner", &inner).output("out", &out)
}

/// Gated DeltaNet's inside: convolution, gates, delta rule and norm over one token, and both states.
fn delta<B: Backend>(mut t: Trial<B>) -> Trial<B> {
    let x = t.normal::<(One, Channels), Bf16>(1.0);
    let (taps, before) = (t.normal(0.5), t.normal(1.0));
    let (a, beta) = (t.normal::<(One, ValueHeads), Bf16>(1.0), t.normal::<(One, ValueHeads), Bf16>(1.0));
    let (a_log, bias) = (t.normal::<(ValueHeads,), F32>(0.5), t.normal::<(ValueHeads,), Bf16>(0.5));
    let (z, w, memory) = (t.normal::<(One, Values), Bf16>(1.0), t.normal(0.5), t.normal(0.3));
    let b = t.backend();
    let tokens = Tokens::<B, One, Vocab>::upload(b, &[7], 3).expect("one id of the vocabulary");
    let step = tokens.step();
    let mut conv = ConvState::<B, Channels, Taps>(b.stage(&before));
    let mut state: DeltaState<B, ValueHeads, HeadDim, HeadDim> = DeltaState(b.stage(&memory));
    let taps: Tensor<B, (Channels, One, Taps), Bf16> = b.stage(&taps);
    let qkv = b.causal_conv(&b.stage(&x), &taps, &mut conv, step);
    let gates: GdnGates<B, One, ValueHeads> =
        b.gdn_gates(&b.stage(&a), &b.stage(&beta), &b.stage(&a_log), &b.stage(&bias));
    let o = b.gated_delta::<One, KeyHeads, HeadDim, ValueHeads, HeadDim>(&qkv, &gates, &mut state, step);
    let w = PlainNorm(b.stage::<(HeadDim,), F32>(&w));
    let out = b.gated_norm::<One, ValueHeads, HeadDim>(&o, &b.stage(&z), &w, 1e-6);
    t.output("conv", &conv.0).output("state", &state.0).output("out", &out)
}

differential!(
    norm_in_fast_is_the_reference,
    |t| norm(t.on(cpu())),
    |t| norm(t.on(device(SessionOptions::fast()))),
    tolerance::bits(),
);
differential!(
    norm_in_tensix_is_near,
    |t| norm(t.on(cpu())),
    |t| norm(t.on(device(SessionOptions::default()))),
    tolerance::layer(),
);
differential!(
    mlp_in_fast_is_the_reference,
    |t| mlp(t.on(cpu())),
    |t| mlp(t.on(device(SessionOptions::fast()))),
    tolerance::bits(),
);
differential!(
    mlp_in_tensix_is_near,
    |t| mlp(t.on(cpu())),
    |t| mlp(t.on(device(SessionOptions::default()))),
    tolerance::layer(),
);
differential!(
    delta_net_in_fast_is_the_reference,
    |t| delta(t.on(cpu())),
    |t| delta(t.on(device(SessionOptions::fast()))),
    tolerance::bits(),
);
differential!(
    delta_net_in_tensix_is_near,
    |t| delta(t.on(cpu())),
    |t| delta(t.on(device(SessionOptions::default()))),
    tolerance::layer(),
);

// What a test of this form must not let pass.
differential!(
    #[should_panic(expected = "output `inner` at seed 0: rel-l2")]
    one_phase_is_not_near,
    |t| mlp(t.on(cpu())),
    |t| mlp(t.on(device(SessionOptions { fidelity: Fidelity::LoFi, ..SessionOptions::default() }))),
    tolerance::layer(),
);
