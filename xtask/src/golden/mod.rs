//! Golden data: what an independent reference did with a checkpoint. Made by
//! `goldens/scripts/capture.py` and `capture_full.py`, read here, never written.
//!
//! | file | what it reads |
//! |---|---|
//! | `manifest.rs` | `manifest.json` |
//! | `files.rs` | bytes, checksums and tensors |
//! | `logits.rs` | the recorded logits, and divergences from them |
//! | `weights.rs` | weights that a golden names instead of a file |

mod error;
mod files;
mod logits;
mod manifest;
mod weights;

pub use error::GoldenError;
pub use files::hex;
pub use logits::Divergences;
pub use manifest::{Prompt, SyntheticWeights};

use files::{Tensors, check_sum, read};
use half::bf16;
use logits::Logits;
use manifest::{FileFacts, Manifest};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tt_dsl::parity::CompareError;

const DATA: &str = "golden.safetensors";
const TOKENIZER: &str = "tokenizer.json";

/// The reference's residual stream over one prompt.
pub struct LayerOutputs {
    /// Which prompt.
    pub prompt: usize,
    /// For index 0 the embedding, for index `i` the output of layer `i - 1`: bf16 run, then f32 run,
    /// each `tokens x hidden`.
    pub layers: Vec<(Vec<bf16>, Vec<f32>)>,
}

/// A golden folder, read and checked against its manifest.
pub struct Golden {
    /// The folder.
    pub dir: PathBuf,
    /// The model's name in the manifest.
    pub model: String,
    /// The prompts with their continuations.
    pub prompts: Vec<Prompt>,
    /// How many prompts were recorded, of which [`keep_first`](Self::keep_first) may have left fewer.
    pub recorded: usize,
    /// The layer outputs of some prompts.
    pub layer_outputs: Vec<LayerOutputs>,
    /// The weights, if a formula defines them.
    pub weights: Option<SyntheticWeights>,
    top: Vec<Vec<(u32, f32)>>,
    logits: Logits,
    files: BTreeMap<String, FileFacts>,
}

impl Golden {
    /// Opens `dir`. The data's checksum must be the manifest's.
    pub fn open(dir: &Path) -> Result<Self, GoldenError> {
        let manifest = Manifest::read(dir)?;
        let path = dir.join(DATA);
        let data = read(&path)?;
        if let Some(facts) = manifest.files.get(DATA) {
            check_sum(&path, &data, &facts.sha256)?;
        }
        Self::parse(dir, manifest, &data).map_err(|what| GoldenError::Contents { path, what })
    }

    fn parse(dir: &Path, manifest: Manifest, data: &[u8]) -> Result<Self, String> {
        let cells = manifest.prompts.len() * manifest.cells_per_prompt();
        let tensors = Tensors::parse(data, cells)?;
        let (log_probs, ids) = (tensors.rows("bf16.top_logprobs")?, tensors.id_rows("bf16.top_ids")?);
        if log_probs.iter().map(Vec::len).ne(ids.iter().map(Vec::len)) {
            return Err("bf16.top_ids and bf16.top_logprobs differ in shape".into());
        }
        let top =
            ids.into_iter().zip(log_probs).map(|(ids, row)| ids.into_iter().zip(row).collect()).collect();
        let layer_outputs = manifest.layer_prompts.iter().map(|&prompt| {
            let length = manifest.prompts.get(prompt).map(|prompt| prompt.ids.len());
            let length = length.ok_or(format!("layer_prompts names prompt {prompt}, which there is not"))?;
            layer_outputs(&tensors, prompt, length)
        });
        Ok(Self {
            dir: dir.to_owned(),
            model: manifest.model,
            recorded: manifest.prompts.len(),
            layer_outputs: layer_outputs.collect::<Result<_, String>>()?,
            logits: Logits::read(&tensors, manifest.logits)?,
            prompts: manifest.prompts,
            weights: manifest.weights,
            top,
            files: manifest.files,
        })
    }

    /// Forgets all prompts but the first `count`.
    pub fn keep_first(&mut self, count: usize) {
        self.prompts.truncate(count);
        self.layer_outputs.retain(|outputs| outputs.prompt < count);
    }

    /// Tokens per prompt.
    pub fn cells_per_prompt(&self) -> usize {
        self.prompts.first().map_or(0, |prompt| prompt.tokens.len())
    }

    /// The bf16 reference's best tokens at a cell with their log-probs, best first.
    pub fn top(&self, prompt: usize, cell: usize) -> &[(u32, f32)] {
        &self.top[prompt * self.cells_per_prompt() + cell]
    }

    /// How far `ours`, the logits of every token at a cell, and the reference's own bf16 run are from
    /// the reference's f32 run.
    pub fn divergences(&self, prompt: usize, cell: usize, ours: &[f32]) -> Result<Divergences, CompareError> {
        self.logits.divergences(prompt * self.cells_per_prompt() + cell, ours)
    }

    /// Checks the files of `dir` that the manifest names against its checksums: the first that
    /// differs is the error.
    pub fn check_files(&self, dir: &Path) -> Result<(), GoldenError> {
        for (name, facts) in &self.files {
            let path = dir.join(name);
            check_sum(&path, &read(&path)?, &facts.sha256)?;
        }
        Ok(())
    }

    /// The golden's own `tokenizer.json`, if the manifest names one.
    pub fn tokenizer(&self) -> Result<Option<Vec<u8>>, GoldenError> {
        self.files.contains_key(TOKENIZER).then(|| read(&self.dir.join(TOKENIZER))).transpose()
    }
}

fn layer_outputs(tensors: &Tensors<'_>, prompt: usize, length: usize) -> Result<LayerOutputs, String> {
    let (half_name, full_name) = (format!("layers.{prompt:02}.bf16"), format!("layers.{prompt:02}.f32"));
    let shape = tensors.shape(&half_name)?;
    let [count, tokens, hidden] = shape[..] else {
        return Err(format!("{half_name}: expected rank 3, found {shape:?}"));
    };
    let (halves, fulls) = (tensors.floats(&half_name)?, tensors.floats(&full_name)?);
    if tokens != length || tokens * hidden == 0 || fulls.len() != halves.len() {
        return Err(format!("{half_name}: expected [{count}, {length}, hidden], found {shape:?}"));
    }
    let layers = halves
        .chunks(tokens * hidden)
        .zip(fulls.chunks(tokens * hidden))
        .map(|(half, full)| (half.iter().map(|&x| bf16::from_f32(x)).collect(), full.to_vec()))
        .collect();
    Ok(LayerOutputs { prompt, layers })
}
