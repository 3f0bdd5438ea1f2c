//! Museum 4. Logits turned into activations: there is no cast between dtypes.

use tt_dsl::{Backend, Bf16, LogitsF32, Tensor, dim};

dim! {
    Vocab = 248_320;
}

fn values<B: Backend>(logits: LogitsF32<B, Vocab>) -> Tensor<B, (Vocab,), Bf16> {
    logits.into_tensor().into()
}

fn main() {}
