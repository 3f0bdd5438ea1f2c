//! What `ui/view_to_linear.rs` should have been.

use tt_dsl::{Backend, Bf16, By, Dim, Tensor, dim};

dim! {
    Heads = 8;
    HeadDim = 256;
    Hidden = 1024;
}

fn project<B: Backend, T: Dim>(
    b: &B,
    x: &Tensor<B, (T, By<Heads, HeadDim>), Bf16>,
    w: &Tensor<B, (Hidden, By<Heads, HeadDim>), Bf16>,
) -> Tensor<B, (T, Hidden), Bf16> {
    b.linear(x, w)
}

fn main() {}
