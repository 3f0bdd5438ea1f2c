//! `cargo xtask parity`: the gate of 16 prompts x 16 tokens against an independent reference.
//!
//! | file | what it checks |
//! |---|---|
//! | [`tokens`] | free-running and teacher-forced tokens, and the quality of the logits |
//! | [`self_check`] | that all ways to read a prompt agree, in outputs and states |
//! | [`layers`] | each layer against the reference's, which gives a failure its place |
//! | [`report`] | the verdict, as a table or as JSON |

pub mod layers;
pub mod report;
pub mod self_check;
pub mod tokens;

use crate::golden::{Golden, GoldenError};
use layers::Rounding;
use qwen35_model::checkpoint::{Checkpoint, CheckpointError};
use qwen35_model::known::UnknownSizes;
use qwen35_model::tokenizer::{Tokenizer, TokenizerError};
use qwen35_model::{Config, Model};
use report::BackendReport;
use tt_dsl::Backend;
use tt_dsl::parity::CompareError;

/// Why the gate could not be run. (That a check fails is a report, not an error.)
#[derive(Debug, thiserror::Error)]
pub enum ParityError {
    /// The golden is unusable.
    #[error(transparent)]
    Golden(#[from] GoldenError),
    /// The checkpoint is unusable.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The tokenizer is unusable.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// Golden and model are of different sizes.
    #[error("the golden does not fit the model: {0}")]
    Compare(#[from] CompareError),
    /// The model could not be loaded or run.
    #[error("{0}")]
    Run(String),
    /// The checkpoint is none of the configurations.
    #[error(transparent)]
    Configuration(#[from] UnknownSizes),
}

impl ParityError {
    /// A failure of a backend, whose error type is its own.
    fn run(error: impl std::error::Error) -> Self {
        Self::Run(error.to_string())
    }
}

/// Prompts whose text our tokenizer does not turn into the golden's ids. A golden's own tokenizer may
/// be the part of a vocabulary that its prompts can come to; a checkpoint's must be the model's.
pub fn token_mismatches<C: Config>(
    checkpoint: &Checkpoint,
    golden: &Golden,
) -> Result<Vec<usize>, ParityError> {
    let own = if golden.weights.is_some() { golden.tokenizer()? } else { None };
    let tokenizer = match own {
        Some(bytes) => Tokenizer::of_any_model("the golden's tokenizer.json", &bytes)?,
        None => Tokenizer::of::<C>(checkpoint)?,
    };
    let mut mismatches = Vec::new();
    for (index, prompt) in golden.prompts.iter().enumerate() {
        if tokenizer.encode(&prompt.text)? != prompt.ids {
            mismatches.push(index);
        }
    }
    Ok(mismatches)
}

/// Runs every check on one backend, which is called `label` in the report and rounds as `rounding` says.
pub fn run<B: Backend, C: Config>(
    label: &str,
    rounding: Rounding,
    b: &B,
    checkpoint: &Checkpoint,
    golden: &Golden,
) -> Result<BackendReport, ParityError> {
    let verified = checkpoint.verify::<C>()?;
    let model = Model::<B, C>::load(b, &verified.weights(b)).map_err(ParityError::run)?;
    Ok(BackendReport {
        name: label.to_owned(),
        prompts: golden.prompts.len(),
        cells: golden.prompts.len() * golden.cells_per_prompt(),
        token_mismatches: token_mismatches::<C>(checkpoint, golden)?,
        free_running: tokens::free_running(b, &model, golden)?,
        teacher_forced: tokens::teacher_forced(b, &model, golden)?,
        self_check: self_check::self_check(b, &model, golden)?,
        layers: layers::layers(b, &model, golden, rounding)?,
    })
}
