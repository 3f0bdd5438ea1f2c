//! Museum 18. A head width that the attention kernel does not hold for.

use tt_dsl::{Backend, Bf16, By, KvCache, Step, Tensor, dim};

dim! {
    Rows = 32;
    Heads = 8;
    HeadDim = 80;
    Ctx = 128;
}

fn attend<B: Backend>(
    b: &B,
    qkv: &Tensor<B, (Rows, By<Heads, HeadDim>), Bf16>,
    cache: &mut KvCache<B, Heads, HeadDim, Ctx>,
    step: &Step<B, Rows>,
) -> Tensor<B, (Rows, By<Heads, HeadDim>), Bf16> {
    b.attention(qkv, qkv, qkv, cache, step)
}

fn main() {}
