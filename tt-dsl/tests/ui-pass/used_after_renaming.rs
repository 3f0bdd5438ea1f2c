//! What `ui/used_after_renaming.rs` should have been.

use tt_dsl::{Backend, Bf16, By, Dim, Tensor, dim};

dim! {
    QueryDim = 2048;
    Heads = 8;
    HeadDim = 256;
}

fn both<B: Backend, T: Dim>(b: &B, x: Tensor<B, (T, QueryDim), Bf16>) {
    b.add(&x, &x);
    let heads = x.columns_as::<By<Heads, HeadDim>>();
    b.add(&heads, &heads);
}

fn main() {}
