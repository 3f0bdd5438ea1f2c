//! Museum 16. A convolution state with its channels outermost.

use tt_dsl::{Backend, Bf16, ConvState, Pred, Tensor, dim};

dim! {
    Channels = 6144;
    Kernel = 4;
}

fn state<B: Backend>(columns: Tensor<B, (Channels, Pred<Kernel>), Bf16>) -> ConvState<B, Channels, Kernel> {
    ConvState(columns)
}

fn main() {}
