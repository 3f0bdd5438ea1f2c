//! What `ui/conv_state_in_another_layout.rs` should have been.

use tt_dsl::{Backend, Bf16, ConvState, Pred, Tensor, dim};

dim! {
    Channels = 6144;
    Kernel = 4;
}

fn state<B: Backend>(columns: Tensor<B, (Pred<Kernel>, Channels), Bf16>) -> ConvState<B, Channels, Kernel> {
    ConvState(columns)
}

fn main() {}
