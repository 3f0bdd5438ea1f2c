//! Gated DeltaNet: linear attention with a recurrent state that forgets and corrects.

use super::{Load, Residual, Weight};
use crate::Config;
use crate::checkpoint::{CheckpointError, Weights};
use tt_dsl::{Backend, Bf16, By, ConvState, DeltaState, Dim, F32, One, PlainNorm, Qkv, Step, Tensor};

/// The convolved channels of configuration `C`.
type Channels<C> =
    Qkv<<C as Config>::KeyHeads, <C as Config>::KeyDim, <C as Config>::ValueHeads, <C as Config>::ValueDim>;

/// The value heads of configuration `C`, side by side.
type Values<C> = By<<C as Config>::ValueHeads, <C as Config>::ValueDim>;

/// A Gated DeltaNet mixer.
pub struct DeltaNet<B: Backend, C: Config> {
    in_proj_qkv: Weight<B, Channels<C>, C::Hidden>,
    in_proj_z: Weight<B, Values<C>, C::Hidden>,
    in_proj_b: Weight<B, C::ValueHeads, C::Hidden>,
    in_proj_a: Weight<B, C::ValueHeads, C::Hidden>,
    conv1d: Tensor<B, (Channels<C>, One, C::ConvKernel), Bf16>,
    a_log: Tensor<B, (C::ValueHeads,), F32>,
    dt_bias: Tensor<B, (C::ValueHeads,), Bf16>,
    norm: PlainNorm<B, C::ValueDim>,
    out_proj: Weight<B, C::Hidden, Values<C>>,
}

/// What a Gated DeltaNet layer remembers of a sequence.
pub struct DeltaNetState<B: Backend, C: Config> {
    /// The convolution's last inputs.
    pub conv: ConvState<B, Channels<C>, C::ConvKernel>,
    /// The recurrent state, f32.
    pub delta: DeltaState<B, C::ValueHeads, C::KeyDim, C::ValueDim>,
}

impl<B: Backend, C: Config> DeltaNetState<B, C> {
    /// The state before the first token.
    pub fn new(b: &B) -> Self {
        Self { conv: ConvState::new(b), delta: DeltaState::new(b) }
    }
}

impl<B: Backend, C: Config> Load<B> for DeltaNet<B, C> {
    fn load(at: &Weights<'_, B>) -> Result<Self, CheckpointError> {
        Ok(Self {
            in_proj_qkv: at.tensor("in_proj_qkv.weight")?,
            in_proj_z: at.tensor("in_proj_z.weight")?,
            in_proj_b: at.tensor("in_proj_b.weight")?,
            in_proj_a: at.tensor("in_proj_a.weight")?,
            conv1d: at.tensor("conv1d.weight")?,
            a_log: at.widened("A_log")?,
            dt_bias: at.tensor("dt_bias")?,
            norm: PlainNorm(at.widened("norm.weight")?),
            out_proj: at.tensor("out_proj.weight")?,
        })
    }
}

impl<B: Backend, C: Config> DeltaNet<B, C> {
    /// `x` is the normed residual stream; the sum with it is the caller's.
    pub fn forward<T: Dim>(
        &self,
        b: &B,
        x: &Residual<B, T, C>,
        state: &mut DeltaNetState<B, C>,
        step: &Step<B, T>,
    ) -> Residual<B, T, C> {
        let mixed = b.linear(x, &self.in_proj_qkv);
        let z = b.linear(x, &self.in_proj_z);
        let beta = b.linear(x, &self.in_proj_b);
        let a = b.linear(x, &self.in_proj_a);

        let qkv = b.causal_conv(&mixed, &self.conv1d, &mut state.conv, step);
        let gates = b.gdn_gates(&a, &beta, &self.a_log, &self.dt_bias);
        let o = b.gated_delta::<T, C::KeyHeads, C::KeyDim, C::ValueHeads, C::ValueDim>(
            &qkv,
            &gates,
            &mut state.delta,
            step,
        );
        let o = b.gated_norm(&o, &z, &self.norm, C::RMS_EPS);
        b.linear(&o, &self.out_proj)
    }
}
