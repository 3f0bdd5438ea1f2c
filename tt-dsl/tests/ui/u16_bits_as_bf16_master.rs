//! Museum 2. The bits of bf16 handed over as integers.

use tt_dsl::{Bf16, LengthError, Master, dim};

dim! {
    Hidden = 1024;
}

fn master(bits: Vec<u16>) -> Result<Master<(Hidden,), Bf16>, LengthError> {
    Master::from_vec(bits)
}

fn main() {}
