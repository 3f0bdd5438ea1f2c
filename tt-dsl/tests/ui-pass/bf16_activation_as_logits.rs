//! What `ui/bf16_activation_as_logits.rs` should have been.

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
    b.lm_head(x, w)
}

fn main() {}
