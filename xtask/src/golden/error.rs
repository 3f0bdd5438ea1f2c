//! Why a golden cannot be used.

use qwen35_model::known::UnknownWord;
use std::path::PathBuf;

/// Why a golden cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GoldenError {
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A manifest that is not one.
    #[error("{} is not a golden manifest: {source}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A manifest whose data nobody has recorded yet.
    #[error(
        "golden {} ({model}): not captured: {prompts} prompts wait for somebody with the weights to run \
         goldens/scripts/capture_full.py once",
        dir.display()
    )]
    NotCaptured {
        /// The folder.
        dir: PathBuf,
        /// The model's name in the manifest.
        model: String,
        /// How many prompts it has.
        prompts: usize,
    },
    /// A file that is not the one the manifest was written for.
    #[error("{}: expected SHA-256 {expected}, found {found}", path.display())]
    Checksum {
        /// The file.
        path: PathBuf,
        /// What the manifest says.
        expected: String,
        /// What the file has.
        found: String,
    },
    /// Contents that do not fit together.
    #[error("{}: {what}", path.display())]
    Contents {
        /// The file.
        path: PathBuf,
        /// Expected and found.
        what: String,
    },
    /// Synthetic weights of a configuration that there is not.
    #[error("synthetic weights: {0}")]
    Configuration(#[from] UnknownWord),
    /// Synthetic weights that came out otherwise than where the golden was made.
    #[error("synthetic weights: expected {expected}, found {found}")]
    Weights {
        /// What the manifest says.
        expected: String,
        /// What the formula of this program gives.
        found: String,
    },
}
