//! A whole model of small dims with random weights, generic over the backend: the shapes of the
//! project's trained small model.

use crate::random::Random;
use half::bf16;
use tt_dsl::{
    Backend, Bf16, By, ConvState, DeltaState, Dim, F32, GdnGates, KvCache, Master, One, PlainNorm, Qkv,
    Shape, Tensor, Tokens, TokensError, Two, ZeroCentredNorm, dim,
};

dim! {
    pub(crate) Hidden = 192;
    pub(crate) Inner = 384;
    pub(crate) Vocab = 1024;
    pub(crate) Heads = 4;
    pub(crate) KvHeads = 2;
    pub(crate) HeadDim = 128;
    pub(crate) RotaryDim = 32;
    pub(crate) Context = 512;
    pub(crate) KeyHeads = 2;
    pub(crate) ValueHeads = 4;
    pub(crate) DeltaDim = 64;
    pub(crate) Taps = 4;
    pub(crate) Bucket = 32;
}

pub(crate) const LAYERS: usize = 8;
/// Every fourth layer is full attention.
pub(crate) const FULL_LAYERS: usize = LAYERS / 4;
const EPS: f32 = 1e-6;
const THETA: f64 = 1e7;

type Channels = Qkv<KeyHeads, DeltaDim, ValueHeads, DeltaDim>;
type Values = By<ValueHeads, DeltaDim>;
type Queries = By<Heads, HeadDim>;
type Keys = By<KvHeads, HeadDim>;
type Act<B, T, D> = Tensor<B, (T, D), Bf16>;
type Weight<B, N, K> = Tensor<B, (N, K), Bf16>;

/// Masters for one model, counted as they are staged.
pub(crate) struct Loader<'a, B: Backend> {
    backend: &'a B,
    random: Random,
    pub(crate) tensors: u64,
    pub(crate) bytes: u64,
}

impl<'a, B: Backend> Loader<'a, B> {
    pub(crate) fn new(backend: &'a B, seed: u64) -> Self {
        Self { backend, random: Random::new(seed), tensors: 0, bytes: 0 }
    }

    fn bf16<S: Shape>(&mut self, scale: f64) -> Tensor<B, S, Bf16> {
        let master = Master::from_vec(self.random.normals(S::NUMEL, scale)).unwrap();
        self.tensors += 1;
        self.bytes += 2 * S::NUMEL as u64;
        self.backend.stage(&master)
    }

    fn f32<S: Shape>(&mut self, scale: f64, around: f32) -> Tensor<B, S, F32> {
        let values = self.random.normals(S::NUMEL, scale).into_iter().map(|v| around + v.to_f32()).collect();
        self.tensors += 1;
        self.bytes += 4 * S::NUMEL as u64;
        self.backend.stage(&Master::from_vec(values).unwrap())
    }

    fn linear<N: Dim, K: Dim>(&mut self) -> Weight<B, N, K> {
        self.bf16(1.0 / (K::SIZE as f64).sqrt())
    }

    fn norm<D: Dim>(&mut self) -> ZeroCentredNorm<B, D> {
        ZeroCentredNorm(self.bf16(0.1))
    }
}

struct Full<B: Backend> {
    query_gate: Weight<B, By<Heads, By<Two, HeadDim>>, Hidden>,
    key: Weight<B, Keys, Hidden>,
    value: Weight<B, Keys, Hidden>,
    query_norm: ZeroCentredNorm<B, HeadDim>,
    key_norm: ZeroCentredNorm<B, HeadDim>,
    out: Weight<B, Hidden, Queries>,
}

struct Delta<B: Backend> {
    qkv: Weight<B, Channels, Hidden>,
    z: Weight<B, Values, Hidden>,
    a: Weight<B, ValueHeads, Hidden>,
    b: Weight<B, ValueHeads, Hidden>,
    conv: Tensor<B, (Channels, One, Taps), Bf16>,
    a_log: Tensor<B, (ValueHeads,), F32>,
    dt_bias: Tensor<B, (ValueHeads,), Bf16>,
    norm: PlainNorm<B, DeltaDim>,
    out: Weight<B, Hidden, Values>,
}

enum Mixer<B: Backend> {
    Full(Box<Full<B>>),
    Delta(Box<Delta<B>>),
}

struct Layer<B: Backend> {
    input_norm: ZeroCentredNorm<B, Hidden>,
    mixer: Mixer<B>,
    post_norm: ZeroCentredNorm<B, Hidden>,
    gate: Weight<B, Inner, Hidden>,
    up: Weight<B, Inner, Hidden>,
    down: Weight<B, Hidden, Inner>,
}

/// A mixer's state.
pub(crate) enum State<B: Backend> {
    Full(KvCache<B, KvHeads, HeadDim, Context>),
    Delta(ConvState<B, Channels, Taps>, DeltaState<B, ValueHeads, DeltaDim, DeltaDim>),
}

/// The model.
pub(crate) struct Tiny<B: Backend> {
    embedding: Weight<B, Vocab, Hidden>,
    layers: Vec<Layer<B>>,
    norm: ZeroCentredNorm<B, Hidden>,
}

impl<B: Backend> Full<B> {
    fn load(l: &mut Loader<'_, B>) -> Self {
        Self {
            query_gate: l.linear(),
            key: l.linear(),
            value: l.linear(),
            query_norm: l.norm(),
            key_norm: l.norm(),
            out: l.linear(),
        }
    }

    fn forward<T: Dim>(
        &self,
        b: &B,
        x: &Act<B, T, Hidden>,
        cache: &mut KvCache<B, KvHeads, HeadDim, Context>,
        tokens: &Tokens<B, T, Vocab>,
    ) -> Act<B, T, Hidden> {
        let step = tokens.step();
        let rotary = b.rotary::<T, RotaryDim>(step, THETA);
        let query_gate = b.linear(x, &self.query_gate);
        let q = b.rope(&b.rms_norm_heads(query_gate.first_of_pairs(), &self.query_norm, EPS), &rotary);
        let k: Act<B, T, Keys> = b.linear(x, &self.key);
        let k = b.rope(&b.rms_norm_heads::<T, KvHeads, HeadDim, _>(k.view(), &self.key_norm, EPS), &rotary);
        let v = b.linear(x, &self.value);
        let mixed = b.attention::<T, Heads, KvHeads, HeadDim, Context>(&q, &k, &v, cache, step);
        let gated = b.sigmoid_gate::<T, Heads, HeadDim, _>(&mixed, query_gate.second_of_pairs());
        b.linear(&gated, &self.out)
    }
}

impl<B: Backend> Delta<B> {
    fn load(l: &mut Loader<'_, B>) -> Self {
        Self {
            qkv: l.linear(),
            z: l.linear(),
            a: l.linear(),
            b: l.linear(),
            conv: l.bf16(0.4),
            a_log: l.f32(0.3, 0.5),
            dt_bias: l.bf16(0.3),
            norm: PlainNorm(l.f32(0.1, 1.0)),
            out: l.linear(),
        }
    }

    fn forward<T: Dim>(
        &self,
        b: &B,
        x: &Act<B, T, Hidden>,
        conv: &mut ConvState<B, Channels, Taps>,
        delta: &mut DeltaState<B, ValueHeads, DeltaDim, DeltaDim>,
        tokens: &Tokens<B, T, Vocab>,
    ) -> Act<B, T, Hidden> {
        let step = tokens.step();
        let qkv = b.causal_conv(&b.linear(x, &self.qkv), &self.conv, conv, step);
        let z = b.linear(x, &self.z);
        let gates: GdnGates<B, T, ValueHeads> =
            b.gdn_gates(&b.linear(x, &self.a), &b.linear(x, &self.b), &self.a_log, &self.dt_bias);
        let o = b.gated_delta::<T, KeyHeads, DeltaDim, ValueHeads, DeltaDim>(&qkv, &gates, delta, step);
        let o = b.gated_norm::<T, ValueHeads, DeltaDim>(&o, &z, &self.norm, EPS);
        b.linear(&o, &self.out)
    }
}

impl<B: Backend> Layer<B> {
    fn load(l: &mut Loader<'_, B>, full: bool) -> Self {
        let mixer =
            if full { Mixer::Full(Box::new(Full::load(l))) } else { Mixer::Delta(Box::new(Delta::load(l))) };
        Self {
            input_norm: l.norm(),
            mixer,
            post_norm: l.norm(),
            gate: l.linear(),
            up: l.linear(),
            down: l.linear(),
        }
    }

    fn forward<T: Dim>(
        &self,
        b: &B,
        h: &Act<B, T, Hidden>,
        state: &mut State<B>,
        tokens: &Tokens<B, T, Vocab>,
    ) -> Act<B, T, Hidden> {
        let x = b.rms_norm(h, &self.input_norm, EPS);
        let mixed = match (&self.mixer, state) {
            (Mixer::Full(full), State::Full(cache)) => full.forward(b, &x, cache, tokens),
            (Mixer::Delta(delta), State::Delta(conv, state)) => delta.forward(b, &x, conv, state, tokens),
            _ => panic!("a layer was given another layer's state"),
        };
        let h = b.add(h, &mixed);
        let x = b.rms_norm(&h, &self.post_norm, EPS);
        b.add(&h, &b.linear(&b.gated_linear(&x, &self.gate, &self.up), &self.down))
    }
}

impl<B: Backend> Tiny<B> {
    /// Stages the weights, a layer at a time.
    pub(crate) fn load(l: &mut Loader<'_, B>) -> Result<Self, B::Error> {
        let embedding = l.bf16(1.0);
        let norm = l.norm();
        l.backend.submit()?;
        let mut layers = Vec::new();
        for i in 0..LAYERS {
            layers.push(Layer::load(l, (i + 1) % 4 == 0));
            l.backend.submit()?;
        }
        Ok(Self { embedding, layers, norm })
    }

    /// Empty states.
    pub(crate) fn states(&self, b: &B) -> Vec<State<B>> {
        let state = |layer: &Layer<B>| match layer.mixer {
            Mixer::Full(_) => State::Full(KvCache::new(b)),
            Mixer::Delta(_) => State::Delta(ConvState::new(b), DeltaState::new(b)),
        };
        self.layers.iter().map(state).collect()
    }

    /// One pass; returns the next token and, when asked, the logits instead of it.
    fn pass<T: Dim>(
        &self,
        b: &B,
        states: &mut [State<B>],
        ids: &[u32],
        start: usize,
    ) -> Result<tt_dsl::LogitsF32<B, Vocab>, TokensError<B::Error>> {
        let tokens = Tokens::<B, T, Vocab>::upload(b, ids, start)?;
        let mut h = b.embed(&tokens, &self.embedding);
        for (layer, state) in self.layers.iter().zip(states) {
            h = layer.forward(b, &h, state, &tokens);
            b.submit().map_err(TokensError::Backend)?;
        }
        let last = b.last_row(&h, tokens.step());
        Ok(b.lm_head(&b.rms_norm(&last, &self.norm, EPS), &self.embedding))
    }

    /// The logits after `ids`.
    pub(crate) fn logits<T: Dim>(
        &self,
        b: &B,
        states: &mut [State<B>],
        ids: &[u32],
        start: usize,
    ) -> Result<Vec<f32>, TokensError<B::Error>> {
        let logits = self.pass::<T>(b, states, ids, start)?;
        let master = b.download(logits.tensor()).map_err(TokensError::Backend)?;
        Ok(master.values().into_owned())
    }

    /// The greedy token after `ids`.
    pub(crate) fn next<T: Dim>(
        &self,
        b: &B,
        states: &mut [State<B>],
        ids: &[u32],
        start: usize,
    ) -> Result<u32, TokensError<B::Error>> {
        let logits = self.pass::<T>(b, states, ids, start)?;
        let master = b.download(&b.argmax(&logits)).map_err(TokensError::Backend)?;
        Ok(master.values()[0])
    }

    /// A prompt and so many greedy tokens after it.
    pub(crate) fn generate(
        &self,
        b: &B,
        prompt: &[u32],
        count: usize,
    ) -> Result<Vec<u32>, TokensError<B::Error>> {
        let mut states = self.states(b);
        let mut found = vec![self.next::<Bucket>(b, &mut states, prompt, 0)?];
        while found.len() < count {
            let start = prompt.len() + found.len() - 1;
            let last = found[found.len() - 1];
            found.push(self.next::<One>(b, &mut states, &[last], start)?);
        }
        Ok(found)
    }
}

/// A prompt of random ids.
pub(crate) fn prompt(length: usize) -> Vec<u32> {
    Random::new(99).normals(length, 300.0).iter().map(|v: &bf16| v.to_f32().abs() as u32 % 1024).collect()
}
