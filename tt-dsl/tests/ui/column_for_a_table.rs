//! Museum 19. A table of one column where a column for each element is meant.

use tt_dsl::{Backend, Bf16, By, Dim, One, Rotary, Tensor, dim};

dim! {
    Heads = 8;
    HeadDim = 256;
    RotaryDim = 64;
}

fn rotate<B: Backend, T: Dim>(
    b: &B,
    q: &Tensor<B, (T, By<Heads, HeadDim>), Bf16>,
    cos: Tensor<B, (T, One), Bf16>,
    sin: Tensor<B, (T, RotaryDim), Bf16>,
) -> Tensor<B, (T, By<Heads, HeadDim>), Bf16> {
    let rotary = Rotary::<B, T, RotaryDim> { cos, sin };
    b.rope(q, &rotary)
}

fn main() {}
