//! What the project's own commands are made of.

pub mod golden;
pub mod parity;
