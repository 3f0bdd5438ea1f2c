//! Museum 11. A tensor used after its buffer went to another one.

use tt_dsl::{Backend, Bf16, By, Dim, Tensor, dim};

dim! {
    QueryDim = 2048;
    Heads = 8;
    HeadDim = 256;
}

fn both<B: Backend, T: Dim>(b: &B, x: Tensor<B, (T, QueryDim), Bf16>) {
    let heads = x.columns_as::<By<Heads, HeadDim>>();
    b.add(&x, &x);
    b.add(&heads, &heads);
}

fn main() {}
