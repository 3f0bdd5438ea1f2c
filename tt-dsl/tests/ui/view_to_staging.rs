//! A view of a device tensor handed to staging, which takes host masters.

use tt_dsl::{Backend, Bf16, Contiguous, Tensor, View, dim};

dim! {
    Rows = 32;
    Hidden = 1024;
}

fn stage<B: Backend>(
    b: &B,
    x: &View<'_, B, (Rows, Hidden), Bf16, Contiguous>,
) -> Tensor<B, (Rows, Hidden), Bf16> {
    b.stage(x)
}

fn main() {}
