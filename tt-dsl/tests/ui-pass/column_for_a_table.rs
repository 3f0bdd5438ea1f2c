//! What `ui/column_for_a_table.rs` should have been.

use tt_dsl::{Backend, Bf16, By, Dim, Rotary, Tensor, dim};

dim! {
    Heads = 8;
    HeadDim = 256;
    RotaryDim = 64;
}

fn rotate<B: Backend, T: Dim>(
    b: &B,
    q: &Tensor<B, (T, By<Heads, HeadDim>), Bf16>,
    cos: Tensor<B, (T, RotaryDim), Bf16>,
    sin: Tensor<B, (T, RotaryDim), Bf16>,
) -> Tensor<B, (T, By<Heads, HeadDim>), Bf16> {
    let rotary = Rotary::<B, T, RotaryDim> { cos, sin };
    b.rope(q, &rotary)
}

fn main() {}
