//! Museum 1. The buffer of one dtype wrapped as a tensor of another.

use tt_dsl::{Backend, Bf16, F32, Tensor, dim};

dim! {
    Hidden = 1024;
}

fn reinterpret<B: Backend>(x: Tensor<B, (Hidden,), Bf16>) -> Tensor<B, (Hidden,), F32> {
    Tensor::from_buffer(x.into_buffer())
}

fn main() {}
