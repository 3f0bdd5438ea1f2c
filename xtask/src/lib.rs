//! What the project's own commands are made of.

pub mod backends;
pub mod golden;
pub mod parity;
pub mod profile;
pub mod sanitize;
