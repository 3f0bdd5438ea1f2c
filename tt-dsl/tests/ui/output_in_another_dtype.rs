//! Museum 1. An output typed by another dtype than the op writes.

use tt_dsl::{Backend, Bf16, Dim, F32, Tensor, dim};

dim! {
    Hidden = 1024;
    Inner = 3584;
}

fn up<B: Backend, T: Dim>(
    b: &B,
    x: &Tensor<B, (T, Hidden), Bf16>,
    w: &Tensor<B, (Inner, Hidden), Bf16>,
) -> Tensor<B, (T, Inner), F32> {
    b.linear(x, w)
}

fn main() {}
