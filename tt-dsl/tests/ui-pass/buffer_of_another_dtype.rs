//! What `ui/buffer_of_another_dtype.rs` should have been.

use tt_dsl::{Backend, Bf16, Tensor, dim};

dim! {
    Hidden = 1024;
}

fn reinterpret<B: Backend>(x: Tensor<B, (Hidden,), Bf16>) -> Tensor<B, (Hidden,), Bf16> {
    Tensor::from_buffer(x.into_buffer())
}

fn main() {}
