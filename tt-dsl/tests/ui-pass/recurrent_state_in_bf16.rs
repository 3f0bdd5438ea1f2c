//! What `ui/recurrent_state_in_bf16.rs` should have been.

use tt_dsl::{Backend, DeltaState, F32, Tensor, dim};

dim! {
    ValueHeads = 16;
    KeyDim = 128;
    ValueDim = 128;
}

fn state<B: Backend>(
    zeros: Tensor<B, (ValueHeads, KeyDim, ValueDim), F32>,
) -> DeltaState<B, ValueHeads, KeyDim, ValueDim> {
    DeltaState(zeros)
}

fn main() {}
