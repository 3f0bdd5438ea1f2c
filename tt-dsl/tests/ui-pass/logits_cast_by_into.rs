//! What `ui/logits_cast_by_into.rs` should have been.

use tt_dsl::{Backend, F32, LogitsF32, Tensor, dim};

dim! {
    Vocab = 248_320;
}

fn values<B: Backend>(logits: LogitsF32<B, Vocab>) -> Tensor<B, (Vocab,), F32> {
    logits.into_tensor().into()
}

fn main() {}
