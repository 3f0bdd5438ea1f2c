//! What `ui/state_borrowed_twice.rs` should have been.

use tt_dsl::{Backend, ConvState, dim};

dim! {
    Channels = 6144;
    Kernel = 4;
}

type State<B> = ConvState<B, Channels, Kernel>;

fn decode<B: Backend>(_first: &mut State<B>, _second: &mut State<B>) {}

fn run<B: Backend>(first: &mut State<B>, second: &mut State<B>) {
    decode(second, first);
    decode(first, second);
}

fn main() {}
