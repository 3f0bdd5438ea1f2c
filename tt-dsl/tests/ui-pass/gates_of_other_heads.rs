//! What `ui/gates_of_other_heads.rs` should have been.
use tt_dsl::{Backend, Bf16, Dim, F32, GdnGates, Tensor, dim};

dim! {
    KeyHeads = 16;
    ValueHeads = 16;
}

fn gates<B: Backend, T: Dim>(
    b: &B,
    x: &Tensor<B, (T, ValueHeads), Bf16>,
    a_log: &Tensor<B, (ValueHeads,), F32>,
    dt_bias: &Tensor<B, (ValueHeads,), Bf16>,
) -> GdnGates<B, T, ValueHeads> {
    b.gdn_gates(x, x, a_log, dt_bias)
}

fn main() {}
