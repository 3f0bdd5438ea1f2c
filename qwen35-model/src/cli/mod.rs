//! The command line. Results go to standard output; notes, statistics and errors to standard
//! error. Exit codes: 0 done, 1 an error, 2 a wrong argument.

mod arguments;
mod backends;
mod chat;
mod generate;
mod info;
mod needs;
mod output;
mod progress;
mod prompt;
mod sampling;
mod writing;

pub(crate) use arguments::Arguments;

use arguments::{Command, ModelArguments};
use qwen35_model::checkpoint::{Checkpoint, CheckpointError, Embedded};
use std::error::Error;
use std::process::ExitCode;

/// How a command ends.
type Outcome = Result<ExitCode, Box<dyn Error>>;

/// The checkpoint that is used when none is named.
const TINY: Embedded = Embedded {
    config: include_bytes!("../../../goldens/tiny/config.json"),
    weights: include_bytes!("../../../goldens/tiny/model.safetensors"),
    tokenizer: include_bytes!("../../../goldens/tiny/tokenizer.json"),
};

/// Runs the command that was asked for.
pub(crate) fn run(arguments: Arguments) -> Outcome {
    match arguments.command {
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Chat(arguments) => chat::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
    }
}

fn open(arguments: &ModelArguments) -> Result<Checkpoint, CheckpointError> {
    match &arguments.model {
        Some(dir) => Checkpoint::open(dir),
        None => Checkpoint::embedded(TINY),
    }
}
