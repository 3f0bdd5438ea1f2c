//! Two widths of equal size that mean different things.

use tt_dsl::{Backend, Bf16, Dim, Tensor, dim};

dim! {
    Hidden = 1024;
    KvDim = 1024;
}

fn residual<B: Backend, T: Dim>(
    b: &B,
    x: &Tensor<B, (T, Hidden), Bf16>,
    keys: &Tensor<B, (T, KvDim), Bf16>,
) -> Tensor<B, (T, Hidden), Bf16> {
    b.add(x, keys)
}

fn main() {}
