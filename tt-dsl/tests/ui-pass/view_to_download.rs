//! What `ui/view_to_download.rs` should have been.

use tt_dsl::{Backend, Bf16, By, Dim, Master, Tensor, Two, dim};

dim! {
    Heads = 8;
    HeadDim = 256;
}

type Pairs<B, T> = Tensor<B, (T, By<Heads, By<Two, HeadDim>>), Bf16>;
type Pair = By<Heads, By<Two, HeadDim>>;

fn queries<B: Backend, T: Dim>(b: &B, qg: &Pairs<B, T>) -> Result<Master<(T, Pair), Bf16>, B::Error> {
    b.download(qg)
}

fn main() {}
