//! Museum 9. A strided view given to an op that derives strides from the shape.

use tt_dsl::{Backend, Bf16, By, Dim, FirstOfPair, Tensor, View, dim};

dim! {
    Heads = 8;
    HeadDim = 256;
    Hidden = 1024;
}

fn project<B: Backend, T: Dim>(
    b: &B,
    x: &View<'_, B, (T, By<Heads, HeadDim>), Bf16, FirstOfPair<HeadDim>>,
    w: &Tensor<B, (Hidden, By<Heads, HeadDim>), Bf16>,
) -> Tensor<B, (T, Hidden), Bf16> {
    b.linear(x, w)
}

fn main() {}
