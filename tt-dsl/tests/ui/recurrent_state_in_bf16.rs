//! Museum 6. The recurrent state in 16 bits.

use tt_dsl::{Backend, Bf16, DeltaState, Tensor, dim};

dim! {
    ValueHeads = 16;
    KeyDim = 128;
    ValueDim = 128;
}

fn state<B: Backend>(
    zeros: Tensor<B, (ValueHeads, KeyDim, ValueDim), Bf16>,
) -> DeltaState<B, ValueHeads, KeyDim, ValueDim> {
    DeltaState(zeros)
}

fn main() {}
