//! A Rust type where a dim is meant: sizes that are known at run time only.

use tt_dsl::{Backend, Bf16, Tensor, dim};

dim! {
    Rows = 32;
    Hidden = 1024;
}

struct Activations<B: Backend> {
    rows: Tensor<B, (usize, Hidden), Bf16>,
}

fn main() {}
