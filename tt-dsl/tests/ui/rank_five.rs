//! A shape of more dimensions than a tensor has.

use tt_dsl::{Backend, Bf16, Tensor, dim};

dim! {
    Batch = 1;
    Rows = 32;
    Heads = 8;
    HeadDim = 64;
    Ctx = 128;
}

struct Scores<B: Backend> {
    all: Tensor<B, (Batch, Rows, Heads, Ctx, HeadDim), Bf16>,
}

fn main() {}
