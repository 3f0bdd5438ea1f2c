//! The cache of one model's heads under the attention of another.
use tt_dsl::{Backend, Bf16, By, Dim, KvCache, Step, Tensor, dim};

dim! {
    Heads = 8;
    KvHeads = 2;
    DraftKvHeads = 2;
    HeadDim = 256;
    Ctx = 4096;
}

fn attend<B: Backend, T: Dim>(
    b: &B,
    q: &Tensor<B, (T, By<Heads, HeadDim>), Bf16>,
    kv: &Tensor<B, (T, By<KvHeads, HeadDim>), Bf16>,
    cache: &mut KvCache<B, DraftKvHeads, HeadDim, Ctx>,
    step: &Step<B, T>,
) -> Tensor<B, (T, By<Heads, HeadDim>), Bf16> {
    b.attention(q, kv, kv, cache, step)
}

fn main() {}
