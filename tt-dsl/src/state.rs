//! What a sequence remembers between forward passes. Each is a type of its own layout, so a
//! buffer cannot be read in another's.

use crate::backend::Backend;
use crate::dim::{Dim, Pred};
use crate::dtype::{Bf16, F32};
use crate::tensor::Tensor;

/// Keys (after norm and RoPE) and values of one attention layer for `Ctx` positions, bf16,
/// head-major: `(Kv, Ctx, D)` each.
pub struct KvCache<B: Backend, Kv: Dim, D: Dim, Ctx: Dim> {
    /// The keys.
    pub k: Tensor<B, (Kv, Ctx, D), Bf16>,
    /// The values.
    pub v: Tensor<B, (Kv, Ctx, D), Bf16>,
}

impl<B: Backend, Kv: Dim, D: Dim, Ctx: Dim> KvCache<B, Kv, D, Ctx> {
    /// An empty cache.
    pub fn new(backend: &B) -> Self {
        Self { k: backend.zeros(), v: backend.zeros() }
    }
}

/// The last `K - 1` inputs of a causal convolution, bf16, oldest first: `(K - 1, Channels)`.
pub struct ConvState<B: Backend, Channels: Dim, K: Dim>(pub Tensor<B, (Pred<K>, Channels), Bf16>);

impl<B: Backend, Channels: Dim, K: Dim> ConvState<B, Channels, K> {
    /// Zeros: nothing before the start.
    pub fn new(backend: &B) -> Self {
        Self(backend.zeros())
    }
}

/// The recurrent state of Gated DeltaNet, f32 in every run of the reference: `(Hv, Dk, Dv)`.
pub struct DeltaState<B: Backend, Hv: Dim, Dk: Dim, Dv: Dim>(pub Tensor<B, (Hv, Dk, Dv), F32>);

impl<B: Backend, Hv: Dim, Dk: Dim, Dv: Dim> DeltaState<B, Hv, Dk, Dv> {
    /// Zeros.
    pub fn new(backend: &B) -> Self {
        Self(backend.zeros())
    }
}
