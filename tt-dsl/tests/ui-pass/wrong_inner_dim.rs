//! What `ui/wrong_inner_dim.rs` should have been.

use tt_dsl::{Backend, Bf16, Dim, Tensor, dim};

dim! {
    Hidden = 1024;
    Inner = 3584;
    HeadDim = 256;
}

fn up<B: Backend, T: Dim>(
    b: &B,
    x: &Tensor<B, (T, Hidden), Bf16>,
    w: &Tensor<B, (Inner, Hidden), Bf16>,
) -> Tensor<B, (T, Inner), Bf16> {
    b.linear(x, w)
}

fn main() {}
