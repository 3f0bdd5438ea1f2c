//! Query heads that the key/value heads do not divide.

use tt_dsl::{Backend, Bf16, By, KvCache, Step, Tensor, dim};

dim! {
    Rows = 32;
    Heads = 8;
    KvHeads = 3;
    HeadDim = 64;
    Ctx = 128;
}

fn attend<B: Backend>(
    b: &B,
    q: &Tensor<B, (Rows, By<Heads, HeadDim>), Bf16>,
    kv: &Tensor<B, (Rows, By<KvHeads, HeadDim>), Bf16>,
    cache: &mut KvCache<B, KvHeads, HeadDim, Ctx>,
    step: &Step<B, Rows>,
) -> Tensor<B, (Rows, By<Heads, HeadDim>), Bf16> {
    b.attention(q, kv, kv, cache, step)
}

fn main() {}
