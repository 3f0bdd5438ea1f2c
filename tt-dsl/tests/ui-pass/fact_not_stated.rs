//! What `ui/fact_not_stated.rs` should have been.

use tt_dsl::{Backend, Dim, MultipleOf, Rotary, Step, Two};

trait Config: 'static {
    type RotaryDim: Dim + MultipleOf<Two>;
}

fn tables<B: Backend, C: Config, T: Dim>(b: &B, step: &Step<B, T>) -> Rotary<B, T, C::RotaryDim> {
    b.rotary(step, 1e7)
}

fn main() {}
