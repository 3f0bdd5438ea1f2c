//! What `ui/equal_size_other_name.rs` should have been.

use tt_dsl::{Backend, Bf16, Dim, Tensor, dim};

dim! {
    Hidden = 1024;
    KvDim = 1024;
}

fn residual<B: Backend, T: Dim>(
    b: &B,
    x: &Tensor<B, (T, Hidden), Bf16>,
    keys: &Tensor<B, (T, Hidden), Bf16>,
) -> Tensor<B, (T, Hidden), Bf16> {
    b.add(x, keys)
}

fn main() {}
