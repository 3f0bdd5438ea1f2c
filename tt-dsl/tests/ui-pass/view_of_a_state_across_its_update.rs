//! What `ui/view_of_a_state_across_its_update.rs` should have been.

use tt_dsl::{Backend, Bf16, Contiguous, ConvState, Dim, One, Pred, Step, Tensor, View, dim};

dim! {
    Channels = 6144;
    Kernel = 4;
}

type Columns<'a, B> = View<'a, B, (Pred<Kernel>, Channels), Bf16, Contiguous>;

fn look<B: Backend>(_: Columns<'_, B>) {}

fn convolve<B: Backend, T: Dim>(
    b: &B,
    x: &Tensor<B, (T, Channels), Bf16>,
    w: &Tensor<B, (Channels, One, Kernel), Bf16>,
    state: &mut ConvState<B, Channels, Kernel>,
    step: &Step<B, T>,
) {
    let before = state.0.view();
    look(before);
    b.causal_conv(x, w, state, step);
}

fn main() {}
