//! Qwen3.5 (dense, text) over any [`tt_dsl::Backend`].
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | sizes as types and the facts between them; the configurations, and what each needs of a machine |
//! | [`known`] | from a `config.json` to the configuration that has its sizes |
//! | [`layers`], [`model`] | the mathematics, generic over backend and configuration |
//! | [`checkpoint`] | safetensors, `config.json`, and the checks that they are this model |
//! | [`tokenizer`], [`sampling`], [`sequence`], [`generate`] | from text to text |
//! | [`chat`] | chat templates and conversations |
//! | [`synthetic`] | weights of any configuration from a seed |

pub mod chat;
pub mod checkpoint;
pub mod config;
pub mod generate;
pub mod known;
pub mod layers;
pub mod model;
pub mod sampling;
pub mod sequence;
pub mod synthetic;
pub mod tokenizer;

pub use config::{Config, Cost, Qwen35_0_8B, Qwen35_2B, Qwen35_4B, Qwen35_9B, Qwen35_27B, Tiny};
pub use model::{LoadError, Model, State};
pub use sequence::{Prefill, Sequence, SequenceError};
