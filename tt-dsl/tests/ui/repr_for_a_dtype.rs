//! Museum 2. The bits of bf16 under the name of an integer.

use tt_dsl::{Backend, Tensor, dim};

dim! {
    Hidden = 1024;
}

struct Bias<B: Backend> {
    values: Tensor<B, (Hidden,), u16>,
}

fn main() {}
