//! A layer: norm, mixer, residual sum; norm, MLP, residual sum.

use super::{Attention, DeltaNet, DeltaNetState, Load, Mlp, Residual};
use crate::Config;
use crate::checkpoint::{CheckpointError, Weights};
use tt_dsl::{Backend, Dim, KvCache, Rotary, Step, ZeroCentredNorm};

/// What mixes information between positions.
pub enum Mixer<B: Backend, C: Config> {
    /// Every `FULL_ATTENTION_INTERVAL`-th layer.
    Attention(Attention<B, C>),
    /// The others.
    DeltaNet(DeltaNet<B, C>),
}

/// What one layer remembers of one sequence. Made by [`Layer::new_state`], hence always of the
/// layer's own kind.
pub enum LayerState<B: Backend, C: Config> {
    /// Keys and values.
    Attention(KvCache<B, C::KvHeads, C::HeadDim, C::Context>),
    /// Convolution inputs and recurrent state.
    DeltaNet(DeltaNetState<B, C>),
}

/// One layer of the model.
pub struct Layer<B: Backend, C: Config> {
    input_layernorm: ZeroCentredNorm<B, C::Hidden>,
    mixer: Mixer<B, C>,
    post_attention_layernorm: ZeroCentredNorm<B, C::Hidden>,
    mlp: Mlp<B, C>,
}

impl<B: Backend, C: Config> LayerState<B, C> {
    /// Makes it what it was before the first token. A cache stays as it is: of its keys and values
    /// none are read that a sequence has not written.
    pub fn restart(&mut self, b: &B) {
        match self {
            Self::Attention(_) => {}
            Self::DeltaNet(state) => *state = DeltaNetState::new(b),
        }
    }
}

impl<B: Backend, C: Config> Layer<B, C> {
    /// Stages layer `index`, whose weights stand at `at`.
    pub(crate) fn load(index: usize, at: &Weights<'_, B>) -> Result<Self, CheckpointError> {
        let mixer = if C::is_full_attention(index) {
            Mixer::Attention(Attention::load(&at.at("self_attn"))?)
        } else {
            Mixer::DeltaNet(DeltaNet::load(&at.at("linear_attn"))?)
        };
        Ok(Self {
            input_layernorm: ZeroCentredNorm(at.tensor("input_layernorm.weight")?),
            mixer,
            post_attention_layernorm: ZeroCentredNorm(at.tensor("post_attention_layernorm.weight")?),
            mlp: Mlp::load(&at.at("mlp"))?,
        })
    }

    /// This layer's state before the first token.
    pub fn new_state(&self, b: &B) -> LayerState<B, C> {
        match &self.mixer {
            Mixer::Attention(_) => LayerState::Attention(KvCache::new(b)),
            Mixer::DeltaNet(_) => LayerState::DeltaNet(DeltaNetState::new(b)),
        }
    }

    /// The residual stream after this layer.
    pub fn forward<T: Dim>(
        &self,
        b: &B,
        h: &Residual<B, T, C>,
        rotary: &Rotary<B, T, C::RotaryDim>,
        state: &mut LayerState<B, C>,
        step: &Step<B, T>,
    ) -> Residual<B, T, C> {
        let x = b.rms_norm(h, &self.input_layernorm, C::RMS_EPS);
        let mixed = match (&self.mixer, state) {
            (Mixer::Attention(mixer), LayerState::Attention(cache)) => {
                mixer.forward(b, &x, rotary, cache, step)
            }
            (Mixer::DeltaNet(mixer), LayerState::DeltaNet(state)) => mixer.forward(b, &x, state, step),
            _ => unreachable!("a state is made by its own layer and the list of both is fixed"),
        };
        let h = b.add(h, &mixed);
        let x = b.rms_norm(&h, &self.post_attention_layernorm, C::RMS_EPS);
        b.add(&h, &self.mlp.forward(b, &x))
    }
}
