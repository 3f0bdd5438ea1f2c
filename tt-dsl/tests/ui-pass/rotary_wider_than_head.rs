//! What `ui/rotary_wider_than_head.rs` should have been.

use tt_dsl::{Backend, Bf16, By, Dim, Rotary, Tensor, dim};

dim! {
    Heads = 8;
    HeadDim = 64;
    RotaryDim = 32;
}

fn rotate<B: Backend, T: Dim>(
    b: &B,
    q: &Tensor<B, (T, By<Heads, HeadDim>), Bf16>,
    rotary: &Rotary<B, T, RotaryDim>,
) -> Tensor<B, (T, By<Heads, HeadDim>), Bf16> {
    b.rope(q, rotary)
}

fn main() {}
