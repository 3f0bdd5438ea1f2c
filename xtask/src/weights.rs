//! Which weights a command runs on: a folder's, or synthetic ones made in memory.

use qwen35_model::Config;
use qwen35_model::checkpoint::{Checkpoint, CheckpointError, ConfigJson};
use qwen35_model::known::{ForConfig, Known, UnknownSizes};
use qwen35_model::synthetic::Synthetic;
use std::path::PathBuf;

/// The weights' place on the command line.
#[derive(Debug, Clone, clap::Args)]
pub struct WeightArguments {
    /// The checkpoint folder; synthetic weights are made in memory when not given.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["config", "seed"])]
    checkpoint: Option<PathBuf>,
    /// The configuration of the synthetic weights: `tiny`, `0.8b`, ...
    #[arg(long, value_name = "SIZE", default_value = "0.8b")]
    config: Known,
    /// The seed of the synthetic weights.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// Why there are no weights.
#[derive(Debug, thiserror::Error)]
pub enum WeightError {
    /// The checkpoint is unusable.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The checkpoint is none of the configurations.
    #[error(transparent)]
    Configuration(#[from] UnknownSizes),
}

/// Weights, and the configuration that has their sizes.
pub struct OpenWeights {
    checkpoint: Checkpoint,
    known: Known,
}

impl WeightArguments {
    /// Opens or makes them.
    pub fn open(&self) -> Result<OpenWeights, WeightError> {
        let Some(dir) = &self.checkpoint else {
            let checkpoint = self.config.with(Make { seed: self.seed });
            return Ok(OpenWeights { checkpoint, known: self.config });
        };
        let checkpoint = Checkpoint::open(dir)?;
        let known = Known::of(&ConfigJson::of(&checkpoint)?)?;
        Ok(OpenWeights { checkpoint, known })
    }
}

impl OpenWeights {
    /// The weights.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The configuration.
    pub fn known(&self) -> Known {
        self.known
    }
}

/// Synthetic weights, without a tokenizer.
struct Make {
    seed: u64,
}

impl ForConfig for Make {
    type Output = Checkpoint;

    fn run<C: Config>(self) -> Checkpoint {
        Synthetic::<C>::new(self.seed).checkpoint(None)
    }
}
