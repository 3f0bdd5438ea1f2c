//! Operands that always come together.

use half::bf16;

/// What attention reads of the rows it is given.
#[derive(Clone, Copy, Debug)]
pub struct AttentionInputs<'a> {
    /// `T × heads × head_dim`, after norm and rotary embedding.
    pub q: &'a [bf16],
    /// `T × kv_heads × head_dim`, after norm and rotary embedding.
    pub k: &'a [bf16],
    /// `T × kv_heads × head_dim`.
    pub v: &'a [bf16],
}

/// The keys and values of all positions so far.
///
/// Both are `kv_heads × context × head_dim`: what a query head reads lies in one piece.
#[derive(Debug)]
pub struct AttentionCache<'a> {
    /// Keys, after norm and rotary embedding.
    pub k: &'a mut [bf16],
    /// Values.
    pub v: &'a mut [bf16],
}

/// What the gated delta rule reads.
#[derive(Clone, Copy, Debug)]
pub struct DeltaInputs<'a> {
    /// `T × [q: key_heads × key_dim | k: key_heads × key_dim | v: value_heads × value_dim]`:
    /// the output of the convolution, as it lies.
    pub qkv: &'a [bf16],
    /// `T × value_heads`.
    pub beta: &'a [bf16],
    /// `T × value_heads`, the logarithms of the decays.
    pub g: &'a [f32],
}
