//! What `ui/capacity_for_volume.rs` should have been.

use tt_dsl::{Backend, Bf16, One, Step, Tensor, dim};

dim! {
    Prefill = 128;
    Ctx = 4096;
    Hidden = 1024;
}

fn last<B: Backend>(
    b: &B,
    x: &Tensor<B, (Prefill, Hidden), Bf16>,
    step: &Step<B, Prefill>,
) -> Tensor<B, (One, Hidden), Bf16> {
    b.last_row(x, step)
}

fn main() {}
