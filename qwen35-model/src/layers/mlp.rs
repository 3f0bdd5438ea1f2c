//! The gated MLP: `W_down (silu(W_gate x) * W_up x)`.

use super::{Load, Residual, Weight};
use crate::Config;
use crate::checkpoint::{CheckpointError, Weights};
use tt_dsl::{Backend, Dim};

/// A SwiGLU MLP.
pub struct Mlp<B: Backend, C: Config> {
    gate_proj: Weight<B, C::Intermediate, C::Hidden>,
    up_proj: Weight<B, C::Intermediate, C::Hidden>,
    down_proj: Weight<B, C::Hidden, C::Intermediate>,
}

impl<B: Backend, C: Config> Load<B> for Mlp<B, C> {
    fn load(at: &Weights<'_, B>) -> Result<Self, CheckpointError> {
        Ok(Self {
            gate_proj: at.tensor("gate_proj.weight")?,
            up_proj: at.tensor("up_proj.weight")?,
            down_proj: at.tensor("down_proj.weight")?,
        })
    }
}

impl<B: Backend, C: Config> Mlp<B, C> {
    /// `x` is the normed residual stream; the sum with it is the caller's.
    pub fn forward<T: Dim>(&self, b: &B, x: &Residual<B, T, C>) -> Residual<B, T, C> {
        let inner = b.gated_linear(x, &self.gate_proj, &self.up_proj);
        b.linear(&inner, &self.down_proj)
    }
}
