//! Full attention: grouped query heads, normed queries and keys, partial rotary, an output gate.

use super::{Load, Residual, Weight};
use crate::Config;
use crate::checkpoint::{CheckpointError, Weights};
use tt_dsl::{Backend, By, Dim, KvCache, Rotary, Step, Two, ZeroCentredNorm};

/// Gated attention with a key/value cache.
pub struct Attention<B: Backend, C: Config> {
    /// Query and gate of each head side by side; not two global halves.
    q_proj: Weight<B, By<C::Heads, By<Two, C::HeadDim>>, C::Hidden>,
    k_proj: Weight<B, By<C::KvHeads, C::HeadDim>, C::Hidden>,
    v_proj: Weight<B, By<C::KvHeads, C::HeadDim>, C::Hidden>,
    o_proj: Weight<B, C::Hidden, C::QDim>,
    q_norm: ZeroCentredNorm<B, C::HeadDim>,
    k_norm: ZeroCentredNorm<B, C::HeadDim>,
}

impl<B: Backend, C: Config> Load<B> for Attention<B, C> {
    fn load(at: &Weights<'_, B>) -> Result<Self, CheckpointError> {
        Ok(Self {
            q_proj: at.tensor("q_proj.weight")?,
            k_proj: at.tensor("k_proj.weight")?,
            v_proj: at.tensor("v_proj.weight")?,
            o_proj: at.tensor("o_proj.weight")?,
            q_norm: ZeroCentredNorm(at.tensor("q_norm.weight")?),
            k_norm: ZeroCentredNorm(at.tensor("k_norm.weight")?),
        })
    }
}

impl<B: Backend, C: Config> Attention<B, C> {
    /// `x` is the normed residual stream; the sum with it is the caller's.
    pub fn forward<T: Dim>(
        &self,
        b: &B,
        x: &Residual<B, T, C>,
        rotary: &Rotary<B, T, C::RotaryDim>,
        cache: &mut KvCache<B, C::KvHeads, C::HeadDim, C::Context>,
        step: &Step<B, T>,
    ) -> Residual<B, T, C> {
        let query_gate = b.linear(x, &self.q_proj);
        let (query, gate) = (query_gate.first_of_pairs(), query_gate.second_of_pairs());
        let k = b.linear(x, &self.k_proj);
        let v = b.linear(x, &self.v_proj);

        let q = b.rope(&b.rms_norm_heads(query, &self.q_norm, C::RMS_EPS), rotary);
        let k = b.rope(&b.rms_norm_heads(k.view(), &self.k_norm, C::RMS_EPS), rotary);

        let o = b.attention(&q, &k, &v, cache, step);
        let o = b.sigmoid_gate(&o, gate);
        b.linear(&o.columns_as::<C::QDim>(), &self.o_proj)
    }
}
