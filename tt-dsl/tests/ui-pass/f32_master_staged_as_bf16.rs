//! What `ui/f32_master_staged_as_bf16.rs` should have been.

use tt_dsl::{Backend, Bf16, Master, Tensor, dim};

dim! {
    Hidden = 1024;
    Inner = 3584;
}

fn stage<B: Backend>(b: &B, master: &Master<(Inner, Hidden), Bf16>) -> Tensor<B, (Inner, Hidden), Bf16> {
    b.stage(master)
}

fn main() {}
