//! The tests of the backend, one program so that they link once.

#![expect(clippy::unwrap_used, reason = "tests say with a panic what is wrong")]

mod accuracy;
mod card;
mod counters;
mod differential;
mod faults;
mod lifetimes;
mod numerics;
mod ops;
mod random;
mod tiny;
mod tolerance;
mod whole_model;
