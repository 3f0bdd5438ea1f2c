//! What `ui/zero_centred_norm_where_plain_is_due.rs` should have been.

use tt_dsl::{Backend, Bf16, By, Dim, PlainNorm, Tensor, dim};

dim! {
    Heads = 16;
    HeadDim = 128;
}

fn norm<B: Backend, T: Dim>(
    b: &B,
    o: &Tensor<B, (T, By<Heads, HeadDim>), Bf16>,
    w: &PlainNorm<B, HeadDim>,
) -> Tensor<B, (T, By<Heads, HeadDim>), Bf16> {
    b.gated_norm(o, o, w, 1e-6)
}

fn main() {}
