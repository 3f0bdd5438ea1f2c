//! The two halves of a gated MLP in two widths.
use tt_dsl::{Backend, Bf16, Dim, Tensor, dim};

dim! {
    Hidden = 1024;
    Inner = 3584;
    SharedInner = 3584;
}

fn inner<B: Backend, T: Dim>(
    b: &B,
    x: &Tensor<B, (T, Hidden), Bf16>,
    gate: &Tensor<B, (Inner, Hidden), Bf16>,
    up: &Tensor<B, (SharedInner, Hidden), Bf16>,
) -> Tensor<B, (T, Inner), Bf16> {
    b.gated_linear(x, gate, up)
}

fn main() {}
