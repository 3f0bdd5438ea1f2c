//! What `ui/view_to_staging.rs` should have been.

use tt_dsl::{Backend, Bf16, Master, Tensor, dim};

dim! {
    Rows = 32;
    Hidden = 1024;
}

fn stage<B: Backend>(b: &B, x: &Master<(Rows, Hidden), Bf16>) -> Tensor<B, (Rows, Hidden), Bf16> {
    b.stage(x)
}

fn main() {}
