//! What `ui/rotary_odd.rs` should have been.

use tt_dsl::{Backend, Dim, Rotary, Step, dim};

dim! {
    RotaryDim = 64;
}

fn tables<B: Backend, T: Dim>(b: &B, step: &Step<B, T>) -> Rotary<B, T, RotaryDim> {
    b.rotary(step, 1e7)
}

fn main() {}
