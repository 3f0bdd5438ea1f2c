//! A norm weight of another width than the rows.
use tt_dsl::{Backend, Bf16, Dim, Tensor, ZeroCentredNorm, dim};

dim! {
    Hidden = 1024;
    HeadDim = 256;
}

fn norm<B: Backend, T: Dim>(
    b: &B,
    x: &Tensor<B, (T, Hidden), Bf16>,
    w: &ZeroCentredNorm<B, HeadDim>,
) -> Tensor<B, (T, Hidden), Bf16> {
    b.rms_norm(x, w, 1e-6)
}

fn main() {}
