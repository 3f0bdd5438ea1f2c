//! What `ui/u16_bits_as_bf16_master.rs` should have been.

use tt_dsl::{Bf16, LengthError, Master, dim};

dim! {
    Hidden = 1024;
}

fn master(bits: Vec<half::bf16>) -> Result<Master<(Hidden,), Bf16>, LengthError> {
    Master::from_vec(bits)
}

fn main() {}
