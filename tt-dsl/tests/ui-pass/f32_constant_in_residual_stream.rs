//! What `ui/f32_constant_in_residual_stream.rs` should have been.

use tt_dsl::{Backend, Bf16, Dim, Tensor, dim};

dim! {
    Hidden = 1024;
}

fn scale<B: Backend, T: Dim>(
    b: &B,
    x: &Tensor<B, (T, Hidden), Bf16>,
    constant: &Tensor<B, (T, Hidden), Bf16>,
) -> Tensor<B, (T, Hidden), Bf16> {
    b.add(x, constant)
}

fn main() {}
