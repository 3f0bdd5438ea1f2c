//! Rotary tables of odd width: the last element has no partner.

use tt_dsl::{Backend, Dim, Rotary, Step, dim};

dim! {
    RotaryDim = 63;
}

fn tables<B: Backend, T: Dim>(b: &B, step: &Step<B, T>) -> Rotary<B, T, RotaryDim> {
    b.rotary(step, 1e7)
}

fn main() {}
