//! What `ui/dim_for_a_shape.rs` should have been.

use tt_dsl::{Backend, Bf16, Tensor, dim};

dim! {
    Hidden = 1024;
}

struct Bias<B: Backend> {
    values: Tensor<B, (Hidden,), Bf16>,
}

fn main() {}
