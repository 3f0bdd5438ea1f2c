//! Museum 10. A view of a buffer that is handed to another tensor.

use tt_dsl::{Backend, Bf16, By, Dim, Tensor, ZeroCentredNorm, dim};

dim! {
    Heads = 8;
    HeadDim = 256;
}

fn queries<B: Backend, T: Dim>(
    b: &B,
    x: Tensor<B, (T, By<Heads, HeadDim>), Bf16>,
    w: &ZeroCentredNorm<B, HeadDim>,
) -> Tensor<B, (T, By<Heads, HeadDim>), Bf16> {
    let view = x.view();
    drop(x);
    b.rms_norm_heads(view, w, 1e-6)
}

fn main() {}
