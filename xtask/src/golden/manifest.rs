//! `manifest.json`: what a golden's data is and where it came from.

use super::error::GoldenError;
use super::files::read;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A prompt and the reference's greedy continuation.
#[derive(Debug, Clone, Deserialize)]
pub struct Prompt {
    /// The prompt as text.
    pub text: String,
    /// The prompt as ids.
    pub ids: Vec<u32>,
    /// The reference's tokens; empty before the capture.
    #[serde(default)]
    pub tokens: Vec<u32>,
}

/// Weights that a formula defines, so that no file is needed: see [`qwen35_model::synthetic`].
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub struct SyntheticWeights {
    /// The formula's number.
    pub formula: u32,
    /// The configuration's word: `0.8b`.
    pub config: String,
    /// The seed.
    pub seed: u64,
    /// SHA-256 of the bytes of every tensor, in the order in which a pass reads them.
    pub sha256: String,
    /// SHA-256 of some tensors, by their names without prefix.
    pub tensors: BTreeMap<String, String>,
}

/// Which logits of a cell were recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LogitsForm {
    /// All: `f32.logits` and `bf16.logits`.
    #[default]
    Whole,
    /// So many of the largest of the f32 run, and the logarithm of the summed exponentials of the rest:
    /// `largest.ids`, and in both runs `*.largest` and `*.rest`.
    Largest(usize),
}

/// A file's facts.
#[derive(Debug, Deserialize)]
pub(super) struct FileFacts {
    pub(super) sha256: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Manifest {
    format: u32,
    pub(super) model: String,
    /// Format 1 has nothing of what follows but the prompts and the files.
    #[serde(default = "yes")]
    captured: bool,
    #[serde(default)]
    pub(super) weights: Option<SyntheticWeights>,
    #[serde(default)]
    pub(super) logits: LogitsForm,
    #[serde(default)]
    pub(super) files: BTreeMap<String, FileFacts>,
    pub(super) prompts: Vec<Prompt>,
    #[serde(default)]
    pub(super) layer_prompts: Vec<usize>,
}

fn yes() -> bool {
    true
}

impl Manifest {
    /// Reads and checks the manifest of `dir`. One without data is an error of its own.
    pub(super) fn read(dir: &Path) -> Result<Self, GoldenError> {
        let path = dir.join("manifest.json");
        let manifest: Self = serde_json::from_slice(&read(&path)?)
            .map_err(|source| GoldenError::Manifest { path: path.clone(), source })?;
        let contents = |what: String| Err(GoldenError::Contents { path: path.clone(), what });
        if !(1..=2).contains(&manifest.format) {
            return contents(format!("expected format 1 or 2, found {}", manifest.format));
        }
        if manifest.prompts.is_empty() {
            return contents("expected prompts, found none".into());
        }
        if let Some(index) = manifest.prompts.iter().position(|prompt| prompt.ids.is_empty()) {
            return contents(format!("prompt {index} has no ids"));
        }
        if !manifest.captured {
            let Self { model, prompts, .. } = manifest;
            return Err(GoldenError::NotCaptured { dir: dir.to_owned(), model, prompts: prompts.len() });
        }
        let cells = manifest.cells_per_prompt();
        if let Some(odd) = manifest.prompts.iter().position(|prompt| prompt.tokens.len() != cells) {
            return contents(format!("prompt {odd} has another number of tokens than prompt 0"));
        }
        if cells == 0 {
            return contents("expected tokens after each prompt, found none".into());
        }
        Ok(manifest)
    }

    pub(super) fn cells_per_prompt(&self) -> usize {
        self.prompts.first().map_or(0, |prompt| prompt.tokens.len())
    }
}
