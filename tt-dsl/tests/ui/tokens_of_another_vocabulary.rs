//! Token ids checked against one vocabulary, looked up in the table of another.

use tt_dsl::{Backend, Bf16, Dim, Tensor, Tokens, dim};

dim! {
    Vocab = 248_320;
    DraftVocab = 32_000;
    Hidden = 1024;
}

fn embed<B: Backend, T: Dim>(
    b: &B,
    tokens: &Tokens<B, T, DraftVocab>,
    table: &Tensor<B, (Vocab, Hidden), Bf16>,
) -> Tensor<B, (T, Hidden), Bf16> {
    b.embed(tokens, table)
}

fn main() {}
