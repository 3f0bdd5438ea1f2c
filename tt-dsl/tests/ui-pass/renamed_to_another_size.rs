//! What `ui/renamed_to_another_size.rs` should have been.

use tt_dsl::{Backend, Bf16, By, Dim, Tensor, dim};

dim! {
    Hidden = 2048;
    Heads = 8;
    HeadDim = 256;
}

fn as_heads<B: Backend, T: Dim>(x: Tensor<B, (T, Hidden), Bf16>) -> Tensor<B, (T, By<Heads, HeadDim>), Bf16> {
    x.columns_as()
}

fn main() {}
