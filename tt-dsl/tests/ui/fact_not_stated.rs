//! A generic layer that needs a fact which its configuration does not state.

use tt_dsl::{Backend, Dim, Rotary, Step};

trait Config: 'static {
    type RotaryDim: Dim;
}

fn tables<B: Backend, C: Config, T: Dim>(b: &B, step: &Step<B, T>) -> Rotary<B, T, C::RotaryDim> {
    b.rotary(step, 1e7)
}

fn main() {}
