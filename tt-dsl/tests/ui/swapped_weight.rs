//! A weight stored [in, out] where [out, in] is meant.

use tt_dsl::{Backend, Bf16, Dim, Tensor, dim};

dim! {
    Hidden = 1024;
    Inner = 3584;
}

fn down<B: Backend, T: Dim>(
    b: &B,
    x: &Tensor<B, (T, Inner), Bf16>,
    w: &Tensor<B, (Inner, Hidden), Bf16>,
) -> Tensor<B, (T, Hidden), Bf16> {
    b.linear(x, w)
}

fn main() {}
