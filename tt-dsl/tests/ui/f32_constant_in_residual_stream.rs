//! Museum 5. An f32 constant that would promote the residual stream.

use tt_dsl::{Backend, Bf16, Dim, F32, Tensor, dim};

dim! {
    Hidden = 1024;
}

fn scale<B: Backend, T: Dim>(
    b: &B,
    x: &Tensor<B, (T, Hidden), Bf16>,
    constant: &Tensor<B, (T, Hidden), F32>,
) -> Tensor<B, (T, Hidden), Bf16> {
    b.add(x, constant)
}

fn main() {}
