//! Why a checkpoint was refused.

use super::config_json::ConfigDifference;
use super::problem::{Listed, TensorProblem};
use std::io;
use std::path::PathBuf;

/// Why a checkpoint was refused: what was expected, what was found, and where.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The path leads nowhere or not to a directory.
    #[error("{}: expected a checkpoint directory, found {found}", path.display())]
    Directory {
        /// The path.
        path: PathBuf,
        /// What is there instead.
        found: &'static str,
    },
    /// A directory without weights.
    #[error("{}: expected `model.safetensors` or `model.safetensors.index.json`, found neither", path.display())]
    NoWeights {
        /// The directory.
        path: PathBuf,
    },
    /// A file that cannot be opened, read or mapped.
    #[error("{place}: expected a readable file, found: {reason}")]
    Io {
        /// The file.
        place: String,
        /// What the system said.
        reason: io::Error,
    },
    /// A file whose contents contradict its format.
    #[error("{place}: expected {expected}, found {found}")]
    Format {
        /// The file.
        place: String,
        /// What the format asks for.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A `config.json` that describes another model.
    #[error("{0}")]
    Config(Listed<ConfigDifference>),
    /// Tensors that are missing, surplus, or of another shape or dtype.
    #[error("{0}")]
    Tensors(Listed<TensorProblem>),
}

impl CheckpointError {
    /// A file whose contents contradict its format. What comes out of the file is put on one line.
    pub(crate) fn format(place: &str, expected: impl ToString, found: impl ToString) -> Self {
        Self::Format { place: place.to_owned(), expected: one_line(&expected), found: one_line(&found) }
    }

    /// A file that could not be read.
    pub(super) fn io(place: &str, reason: io::Error) -> Self {
        Self::Io { place: place.to_owned(), reason }
    }
}

/// A text with its control characters escaped: a name in a file may hold line breaks, or what a
/// terminal takes for a command.
pub(super) fn one_line(text: &impl ToString) -> String {
    let text = text.to_string();
    if !text.contains(char::is_control) {
        return text;
    }
    text.chars()
        .flat_map(|c| {
            let (escaped, plain) =
                if c.is_control() { (Some(c.escape_default()), None) } else { (None, Some(c)) };
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}
