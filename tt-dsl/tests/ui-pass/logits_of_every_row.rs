//! What `ui/logits_of_every_row.rs` should have been.
use tt_dsl::{Backend, Bf16, Dim, LogitsF32, Step, Tensor, dim};

dim! {
    Hidden = 1024;
    Vocab = 248_320;
}

fn head<B: Backend, T: Dim>(
    b: &B,
    x: &Tensor<B, (T, Hidden), Bf16>,
    w: &Tensor<B, (Vocab, Hidden), Bf16>,
    step: &Step<B, T>,
) -> LogitsF32<B, Vocab> {
    b.lm_head(&b.last_row(x, step), w)
}

fn main() {}
