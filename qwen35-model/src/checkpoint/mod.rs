//! Checkpoints: files as they are published, checked in full before a byte of them is used.
//!
//! ```text
//! Checkpoint::open(dir)        files mapped, headers parsed           files, header, shards
//!     .verify::<C>()           config.json and every tensor checked   config_json, names, inventory
//!         .weights(&backend)   names walked like directories          loader
//! ```
//!
//! Nothing is defaulted, cast or passed over silently: a key that is missing, a tensor of another
//! dtype or a name that nobody asked for is an error that says what was expected, what was found
//! and where. A [`Verified`] is the proof that all of it held for one [`Config`](crate::Config).

mod config_json;
mod error;
mod files;
mod generation_config;
mod header;
mod inventory;
mod loader;
mod names;
mod problem;
mod shards;
mod tokenizer_config;
mod verify;

pub use config_json::{ConfigDifference, ConfigJson};
pub use error::CheckpointError;
pub use files::{Checkpoint, Embedded, StoredTensor};
pub use generation_config::{GenerationConfig, Ignored};
pub use inventory::{DtypeRule, Expected, inventory};
pub use loader::{Staged, Weights};
pub use names::TextTensors;
pub use problem::{Listed, TensorProblem};
pub use tokenizer_config::TokenizerConfig;
pub use verify::Verified;
