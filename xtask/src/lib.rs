//! What the project's own commands are made of.

pub mod backends;
pub mod bench;
pub mod golden;
pub mod parity;
pub mod profile;
pub mod sanitize;
pub mod sizes;
pub mod synthesize;
pub mod tokenizer;
pub mod ttnn_mock;
pub mod weights;
