//! Museum 3. An f32 master rounded to bf16 on its way to the device, unasked.

use tt_dsl::{Backend, Bf16, F32, Master, Tensor, dim};

dim! {
    Hidden = 1024;
    Inner = 3584;
}

fn stage<B: Backend>(b: &B, master: &Master<(Inner, Hidden), F32>) -> Tensor<B, (Inner, Hidden), Bf16> {
    b.stage(master)
}

fn main() {}
