//! What `ui/rank_five.rs` should have been.

use tt_dsl::{Backend, Bf16, Tensor, dim};

dim! {
    Batch = 1;
    Rows = 32;
    Heads = 8;
    HeadDim = 64;
    Ctx = 128;
}

struct Scores<B: Backend> {
    all: Tensor<B, (Rows, Heads, Ctx, HeadDim), Bf16>,
}

fn main() {}
