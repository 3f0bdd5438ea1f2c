//! Museum 4. A bf16 result emitted as the f32 logits.

use tt_dsl::{Backend, Bf16, LogitsF32, One, Tensor, dim};

dim! {
    Hidden = 1024;
    Vocab = 248_320;
}

fn head<B: Backend>(
    b: &B,
    x: &Tensor<B, (One, Hidden), Bf16>,
    w: &Tensor<B, (Vocab, Hidden), Bf16>,
) -> LogitsF32<B, Vocab> {
    b.linear(x, w)
}

fn main() {}
