//! Value heads of the delta rule that the key heads do not divide.

use tt_dsl::{Backend, Bf16, By, DeltaState, Dim, GdnGates, Qkv, Step, Tensor, dim};

dim! {
    KeyHeads = 16;
    ValueHeads = 24;
    KeyDim = 128;
    ValueDim = 128;
}

type Channels = Qkv<KeyHeads, KeyDim, ValueHeads, ValueDim>;

fn recur<B: Backend, T: Dim>(
    b: &B,
    qkv: &Tensor<B, (T, Channels), Bf16>,
    gates: &GdnGates<B, T, ValueHeads>,
    state: &mut DeltaState<B, ValueHeads, KeyDim, ValueDim>,
    step: &Step<B, T>,
) -> Tensor<B, (T, By<ValueHeads, ValueDim>), Bf16> {
    b.gated_delta::<T, KeyHeads, KeyDim, ValueHeads, ValueDim>(qkv, gates, state, step)
}

fn main() {}
