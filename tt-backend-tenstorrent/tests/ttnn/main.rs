//! The ttnn driver where there is no tt-metal, and where there is.
#![cfg(test)]

#[cfg(feature = "ttnn")]
mod card;
