//! Museum 6. The decay parameter in 16 bits.

use tt_dsl::{Backend, Bf16, Dim, GdnGates, Tensor, dim};

dim! {
    ValueHeads = 16;
}

fn gates<B: Backend, T: Dim>(
    b: &B,
    x: &Tensor<B, (T, ValueHeads), Bf16>,
    a_log: &Tensor<B, (ValueHeads,), Bf16>,
    dt_bias: &Tensor<B, (ValueHeads,), Bf16>,
) -> GdnGates<B, T, ValueHeads> {
    b.gdn_gates(x, x, a_log, dt_bias)
}

fn main() {}
