//! Weights that a golden names instead of a file.

use super::error::GoldenError;
use super::files::hex;
use super::manifest::SyntheticWeights;
use qwen35_model::Config;
use qwen35_model::checkpoint::{Checkpoint, inventory};
use qwen35_model::known::{ForConfig, Known};
use qwen35_model::synthetic::{FORMULA, Synthetic};
use sha2::{Digest, Sha256};

impl SyntheticWeights {
    /// Makes the weights in memory, with `tokenizer` as their `tokenizer.json`, and compares them with
    /// the checksum of those that the reference had.
    pub fn make(&self, tokenizer: Option<Vec<u8>>) -> Result<Checkpoint, GoldenError> {
        if self.formula != FORMULA {
            return Err(GoldenError::Weights {
                expected: format!("formula {}", self.formula),
                found: format!("formula {FORMULA}"),
            });
        }
        let (checkpoint, found) = self.config.parse::<Known>()?.with(Make { seed: self.seed, tokenizer });
        if found != self.sha256 {
            return Err(GoldenError::Weights { expected: format!("SHA-256 {}", self.sha256), found });
        }
        Ok(checkpoint)
    }
}

struct Make {
    seed: u64,
    tokenizer: Option<Vec<u8>>,
}

impl ForConfig for Make {
    type Output = (Checkpoint, String);

    fn run<C: Config>(self) -> Self::Output {
        let checkpoint = Synthetic::<C>::new(self.seed).checkpoint(self.tokenizer);
        let mut digest = Sha256::new();
        for expected in inventory::<C>() {
            if let Some(tensor) = checkpoint.tensors().get(&Synthetic::<C>::full_name(&expected.name)) {
                digest.update(tensor.bytes.as_slice());
            }
        }
        (checkpoint, hex(&digest.finalize()))
    }
}
