//! A model of one layer of each kind, small enough for tests and with every op in it.

use crate::naive::master;
use tt_dsl::*;

dim! {
    pub(crate) Rows = 4;
    pub(crate) Vocab = 48;
    pub(crate) Hidden = 24;
    pub(crate) Inner = 40;
    pub(crate) Heads = 4;
    pub(crate) KvHeads = 2;
    pub(crate) HeadDim = 32;
    pub(crate) RotaryDim = 8;
    pub(crate) Ctx = 16;
    pub(crate) Kernel = 4;
    pub(crate) KeyHeads = 1;
    pub(crate) ValueHeads = 2;
    pub(crate) KeyDim = 8;
    pub(crate) ValueDim = 4;
}

type Channels = Qkv<KeyHeads, KeyDim, ValueHeads, ValueDim>;
type Rank2<B, M, N> = Tensor<B, (M, N), Bf16>;

/// The weights.
pub(crate) struct Model<B: Backend> {
    embedding: Rank2<B, Vocab, Hidden>,
    norm: ZeroCentredNorm<B, Hidden>,
    query_gate: Rank2<B, By<Heads, By<Two, HeadDim>>, Hidden>,
    key: Rank2<B, By<KvHeads, HeadDim>, Hidden>,
    value: Rank2<B, By<KvHeads, HeadDim>, Hidden>,
    head_norm: ZeroCentredNorm<B, HeadDim>,
    out: Rank2<B, Hidden, By<Heads, HeadDim>>,
    qkv: Rank2<B, Channels, Hidden>,
    z: Rank2<B, By<ValueHeads, ValueDim>, Hidden>,
    a: Rank2<B, ValueHeads, Hidden>,
    b: Rank2<B, ValueHeads, Hidden>,
    conv: Tensor<B, (Channels, One, Kernel), Bf16>,
    a_log: Tensor<B, (ValueHeads,), F32>,
    dt_bias: Tensor<B, (ValueHeads,), Bf16>,
    delta_norm: PlainNorm<B, ValueDim>,
    delta_out: Rank2<B, Hidden, By<ValueHeads, ValueDim>>,
    gate: Rank2<B, Inner, Hidden>,
    up: Rank2<B, Inner, Hidden>,
    down: Rank2<B, Hidden, Inner>,
}

/// What a sequence remembers.
pub(crate) struct State<B: Backend> {
    cache: KvCache<B, KvHeads, HeadDim, Ctx>,
    conv: ConvState<B, Channels, Kernel>,
    delta: DeltaState<B, ValueHeads, KeyDim, ValueDim>,
}

impl<B: Backend> State<B> {
    pub(crate) fn new(backend: &B) -> Self {
        Self { cache: KvCache::new(backend), conv: ConvState::new(backend), delta: DeltaState::new(backend) }
    }
}

/// Fixed numbers in `[-0.5, 0.5)` that look like noise.
fn weight<B: Backend, S: Shape>(b: &B, seed: f32) -> Tensor<B, S, Bf16> {
    b.stage(&master(|i| ((i as f32 + seed) * 12.9898).sin() * 43_758.547 % 0.5))
}

fn constants<B: Backend, D: Dim>(b: &B, value: f32) -> Tensor<B, (D,), F32> {
    b.stage(&Master::from_vec(vec![value; D::SIZE]).expect("as many as the dim has"))
}

impl<B: Backend> Model<B> {
    pub(crate) fn new(b: &B) -> Self {
        Self {
            embedding: weight(b, 1.0),
            norm: ZeroCentredNorm(weight(b, 2.0)),
            query_gate: weight(b, 3.0),
            key: weight(b, 4.0),
            value: weight(b, 5.0),
            head_norm: ZeroCentredNorm(weight(b, 6.0)),
            out: weight(b, 7.0),
            qkv: weight(b, 8.0),
            z: weight(b, 9.0),
            a: weight(b, 10.0),
            b: weight(b, 11.0),
            conv: weight(b, 12.0),
            a_log: constants(b, 0.5),
            dt_bias: weight(b, 13.0),
            delta_norm: PlainNorm(constants(b, 1.25)),
            delta_out: weight(b, 14.0),
            gate: weight(b, 15.0),
            up: weight(b, 16.0),
            down: weight(b, 17.0),
        }
    }

    /// One forward pass; the next token stays on the backend.
    pub(crate) fn forward<T: Dim>(
        &self,
        b: &B,
        tokens: &Tokens<B, T, Vocab>,
        state: &mut State<B>,
    ) -> Tensor<B, (One,), U32> {
        let step = tokens.step();
        let x = b.embed(tokens, &self.embedding);
        let x = b.add(&x, &self.attention(b, &b.rms_norm(&x, &self.norm, 1e-6), step, &mut state.cache));
        let x = b.add(&x, &self.delta(b, &b.rms_norm(&x, &self.norm, 1e-6), step, state));
        let inner = b.gated_linear(&b.rms_norm(&x, &self.norm, 1e-6), &self.gate, &self.up);
        let x = b.add(&x, &b.linear(&inner, &self.down));
        b.argmax(&b.lm_head(&b.last_row(&x, step), &self.embedding))
    }

    fn attention<T: Dim>(
        &self,
        b: &B,
        x: &Rank2<B, T, Hidden>,
        step: &Step<B, T>,
        cache: &mut KvCache<B, KvHeads, HeadDim, Ctx>,
    ) -> Rank2<B, T, Hidden> {
        let query_gate = b.linear(x, &self.query_gate);
        let rotary = b.rotary::<T, RotaryDim>(step, 1e4);
        let q = b.rope(&b.rms_norm_heads(query_gate.first_of_pairs(), &self.head_norm, 1e-6), &rotary);
        let k = b.linear(x, &self.key);
        let k = b.rope(&b.rms_norm_heads(k.view(), &self.head_norm, 1e-6), &rotary);
        let o = b.attention(&q, &k, &b.linear(x, &self.value), cache, step);
        b.linear(&b.sigmoid_gate(&o, query_gate.second_of_pairs()), &self.out)
    }

    fn delta<T: Dim>(
        &self,
        b: &B,
        x: &Rank2<B, T, Hidden>,
        step: &Step<B, T>,
        state: &mut State<B>,
    ) -> Rank2<B, T, Hidden> {
        let qkv = b.causal_conv(&b.linear(x, &self.qkv), &self.conv, &mut state.conv, step);
        let gates = b.gdn_gates(&b.linear(x, &self.a), &b.linear(x, &self.b), &self.a_log, &self.dt_bias);
        let o =
            b.gated_delta::<T, KeyHeads, KeyDim, ValueHeads, ValueDim>(&qkv, &gates, &mut state.delta, step);
        b.linear(&b.gated_norm(&o, &b.linear(x, &self.z), &self.delta_norm, 1e-6), &self.delta_out)
    }
}

/// A prompt of three in a bucket of four, then `steps` tokens one by one.
pub(crate) fn generate<B: Backend>(b: &B, steps: usize) -> Result<Vec<u32>, Box<dyn std::error::Error>> {
    let (model, mut state) = (Model::new(b), State::new(b));
    b.submit()?;
    let mut next = model.forward(b, &Tokens::<B, Rows, _>::upload(b, &[7, 3, 11], 0)?, &mut state);
    b.submit()?;
    let mut generated = vec![b.download(&next)?.values()[0]];
    for position in 3..3 + steps {
        let tokens = Tokens::<B, One, _>::upload(b, &generated[generated.len() - 1..], position)?;
        next = model.forward(b, &tokens, &mut state);
        b.submit()?;
        generated.push(b.download(&next)?.values()[0]);
    }
    Ok(generated)
}
