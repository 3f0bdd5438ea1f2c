//! Qwen3.5 (dense, text) over any [`tt_dsl::Backend`].
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | sizes as types and the facts between them; the configurations `Tiny` and `Qwen35_0_8B` |
//! | [`known`] | from a `config.json` to the configuration that has its sizes |
//! | [`layers`], [`model`] | the mathematics, generic over backend and configuration |
//! | [`checkpoint`] | safetensors, `config.json`, and the checks that they are this model |
//! | [`tokenizer`], [`sampling`], [`sequence`], [`generate`] | from text to text |

pub mod checkpoint;
pub mod config;
pub mod generate;
pub mod known;
pub mod layers;
pub mod model;
pub mod sampling;
pub mod sequence;
pub mod tokenizer;

pub use config::{Config, Qwen35_0_8B, Tiny};
pub use model::{LoadError, Model, State};
pub use sequence::{Prefill, Sequence, SequenceError};
