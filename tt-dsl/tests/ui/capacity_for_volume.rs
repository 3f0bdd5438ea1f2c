//! Museum 15. A capacity taken for the number of rows: rows of one bucket, steps of another.

use tt_dsl::{Backend, Bf16, One, Step, Tensor, dim};

dim! {
    Prefill = 128;
    Ctx = 4096;
    Hidden = 1024;
}

fn last<B: Backend>(
    b: &B,
    x: &Tensor<B, (Prefill, Hidden), Bf16>,
    step: &Step<B, Ctx>,
) -> Tensor<B, (One, Hidden), Bf16> {
    b.last_row(x, step)
}

fn main() {}
