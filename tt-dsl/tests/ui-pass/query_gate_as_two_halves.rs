//! What `ui/query_gate_as_two_halves.rs` should have been.

use tt_dsl::{Backend, Bf16, By, Dim, FirstOfPair, Tensor, Two, View, dim};

dim! {
    Heads = 8;
    HeadDim = 256;
}

type Queries<'a, B, T> = View<'a, B, (T, By<Heads, HeadDim>), Bf16, FirstOfPair<HeadDim>>;

fn queries<B: Backend, T: Dim>(qg: &Tensor<B, (T, By<Heads, By<Two, HeadDim>>), Bf16>) -> Queries<'_, B, T> {
    qg.first_of_pairs()
}

fn main() {}
