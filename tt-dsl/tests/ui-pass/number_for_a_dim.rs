//! What `ui/number_for_a_dim.rs` should have been.

use tt_dsl::{Backend, Bf16, Tensor, dim};

dim! {
    Rows = 32;
    Hidden = 1024;
}

struct Activations<B: Backend> {
    rows: Tensor<B, (Rows, Hidden), Bf16>,
}

fn main() {}
