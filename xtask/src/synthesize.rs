//! `cargo xtask synthesize`: a synthetic checkpoint, written as a published one looks.

use qwen35_model::Config;
use qwen35_model::known::{ForConfig, Known};
use qwen35_model::synthetic::{PublishError, PublishOptions, Published, Synthetic};
use std::fs;
use std::io;
use std::path::PathBuf;

/// What is written, and where to.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The configuration: `tiny`, `0.8b`, ...
    #[arg(long, value_name = "SIZE")]
    config: Known,
    /// The seed of the weights.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The folder to write to; it is made if it is not there, and must hold no weights.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// A `tokenizer.json` to put beside the weights.
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// Cut the weights into this many files with an index; one file without an index when not given.
    #[arg(long, value_name = "N")]
    shards: Option<usize>,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum SynthesizeError {
    /// The tokenizer cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The checkpoint cannot be written.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

/// Writes the checkpoint. What was written, in a sentence for people.
pub fn command(arguments: &Arguments) -> Result<String, SynthesizeError> {
    let read = |path: &PathBuf| {
        fs::read(path).map_err(|source| SynthesizeError::Tokenizer { path: path.clone(), source })
    };
    let options = PublishOptions {
        tokenizer: arguments.tokenizer.as_ref().map(read).transpose()?,
        shards: arguments.shards,
    };
    let (name, published) = arguments.config.with(Write { arguments, options: &options })?;
    Ok(format!(
        "{}: synthetic {name} of seed {}: {} tensors, {} bytes, in {}\n",
        arguments.out.display(),
        arguments.seed,
        published.tensors,
        published.bytes,
        published.files.join(", ")
    ))
}

struct Write<'a> {
    arguments: &'a Arguments,
    options: &'a PublishOptions,
}

impl ForConfig for Write<'_> {
    type Output = Result<(&'static str, Published), PublishError>;

    fn run<C: Config>(self) -> Self::Output {
        let Self { arguments, options } = self;
        Ok((C::NAME, Synthetic::<C>::new(arguments.seed).write(&arguments.out, options)?))
    }
}
