//! The residual stream of a prefill added to that of a decode step.

use tt_dsl::{Backend, Bf16, One, Tensor, dim};

dim! {
    Prefill = 128;
    Hidden = 1024;
}

fn residual<B: Backend>(
    b: &B,
    x: &Tensor<B, (One, Hidden), Bf16>,
    y: &Tensor<B, (Prefill, Hidden), Bf16>,
) -> Tensor<B, (One, Hidden), Bf16> {
    b.add(x, y)
}

fn main() {}
