//! Golden data: what an independent reference did with a checkpoint. Made by
//! `goldens/scripts/capture.py`, read here, never written.

use half::bf16;
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

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
}

/// A prompt and the reference's greedy continuation.
#[derive(Debug, Clone, Deserialize)]
pub struct Prompt {
    /// The prompt as text.
    pub text: String,
    /// The prompt as ids.
    pub ids: Vec<u32>,
    /// The reference's tokens.
    pub tokens: Vec<u32>,
}

#[derive(Deserialize)]
struct FileFacts {
    sha256: String,
}

#[derive(Deserialize)]
struct Manifest {
    format: u32,
    model: String,
    files: BTreeMap<String, FileFacts>,
    prompts: Vec<Prompt>,
    layer_prompts: Vec<usize>,
}

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
    /// The two prompts' layer outputs.
    pub layer_outputs: Vec<LayerOutputs>,
    top: Vec<Vec<(u32, f32)>>,
    logits_f32: Vec<Vec<f32>>,
    logits_bf16: Vec<Vec<f32>>,
    files: BTreeMap<String, FileFacts>,
}

impl Golden {
    /// Opens `dir`. The data's checksum must be the manifest's.
    pub fn open(dir: &Path) -> Result<Self, GoldenError> {
        let path = dir.join("manifest.json");
        let text = read(&path)?;
        let manifest: Manifest = serde_json::from_slice(&text)
            .map_err(|source| GoldenError::Manifest { path: path.clone(), source })?;
        if manifest.format != 1 {
            let what = format!("expected format 1, found {}", manifest.format);
            return Err(GoldenError::Contents { path, what });
        }
        let data_path = dir.join("golden.safetensors");
        let data = read(&data_path)?;
        if let Some(facts) = manifest.files.get("golden.safetensors") {
            check_sum(&data_path, &data, &facts.sha256)?;
        }
        let contents = |what: String| GoldenError::Contents { path: data_path.clone(), what };
        let file = SafeTensors::deserialize(&data).map_err(|e| contents(e.to_string()))?;

        let cells_per_prompt = manifest.prompts.first().map_or(0, |prompt| prompt.tokens.len());
        if let Some(odd) =
            manifest.prompts.iter().position(|p| p.tokens.len() != cells_per_prompt || p.ids.is_empty())
        {
            let what = format!("prompt {odd} has no ids or another number of tokens than prompt 0");
            return Err(GoldenError::Contents { path, what });
        }
        let cells = manifest.prompts.len() * cells_per_prompt;
        let rows = |name: &str| -> Result<Vec<Vec<f32>>, GoldenError> {
            let values = floats(&file, name).map_err(contents)?;
            if cells == 0 || values.is_empty() || values.len() % cells != 0 {
                return Err(contents(format!(
                    "{name}: expected {cells} rows, found {} values",
                    values.len()
                )));
            }
            Ok(values.chunks(values.len() / cells).map(<[f32]>::to_vec).collect())
        };
        let log_probs = rows("bf16.top_logprobs")?;
        let ids = integers(&file, "bf16.top_ids").map_err(contents)?;
        if ids.len() != log_probs.iter().map(Vec::len).sum::<usize>() {
            return Err(contents("bf16.top_ids and bf16.top_logprobs differ in shape".into()));
        }
        let mut ids = ids.into_iter();
        let top = log_probs.into_iter().map(|row| ids.by_ref().zip(row).collect()).collect();
        let logits_f32 = rows("f32.logits")?;
        let logits_bf16 = rows("bf16.logits")?;

        let mut layer_outputs = Vec::new();
        for &prompt in &manifest.layer_prompts {
            let Some(length) = manifest.prompts.get(prompt).map(|prompt| prompt.ids.len()) else {
                return Err(contents(format!("layer_prompts names prompt {prompt}, which there is not")));
            };
            let (half_name, full_name) =
                (format!("layers.{prompt:02}.bf16"), format!("layers.{prompt:02}.f32"));
            let shape =
                file.tensor(&half_name).map_err(|e| contents(format!("{half_name}: {e}")))?.shape().to_vec();
            let [count, tokens, hidden] = shape[..] else {
                return Err(contents(format!("{half_name}: expected rank 3, found {shape:?}")));
            };
            let halves = floats(&file, &half_name).map_err(contents)?;
            let fulls = floats(&file, &full_name).map_err(contents)?;
            if tokens != length || tokens * hidden == 0 || fulls.len() != halves.len() {
                return Err(contents(format!(
                    "{half_name}: expected [{count}, {length}, hidden], found {shape:?}"
                )));
            }
            let layers = halves
                .chunks(tokens * hidden)
                .zip(fulls.chunks(tokens * hidden))
                .map(|(h, f)| (h.iter().map(|&x| bf16::from_f32(x)).collect(), f.to_vec()))
                .collect();
            layer_outputs.push(LayerOutputs { prompt, layers });
        }
        Ok(Self {
            dir: dir.to_owned(),
            model: manifest.model,
            prompts: manifest.prompts,
            layer_outputs,
            top,
            logits_f32,
            logits_bf16,
            files: manifest.files,
        })
    }

    /// Tokens per prompt.
    pub fn cells_per_prompt(&self) -> usize {
        self.prompts.first().map_or(0, |prompt| prompt.tokens.len())
    }

    /// The bf16 reference's best tokens at a cell with their log-probs, best first.
    pub fn top(&self, prompt: usize, cell: usize) -> &[(u32, f32)] {
        &self.top[prompt * self.cells_per_prompt() + cell]
    }

    /// The f32 reference's logits at a cell.
    pub fn logits_f32(&self, prompt: usize, cell: usize) -> &[f32] {
        &self.logits_f32[prompt * self.cells_per_prompt() + cell]
    }

    /// The bf16 reference's logits at a cell.
    pub fn logits_bf16(&self, prompt: usize, cell: usize) -> &[f32] {
        &self.logits_bf16[prompt * self.cells_per_prompt() + cell]
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
}

fn read(path: &Path) -> Result<Vec<u8>, GoldenError> {
    fs::read(path).map_err(|source| GoldenError::Read { path: path.to_owned(), source })
}

fn check_sum(path: &Path, data: &[u8], expected: &str) -> Result<(), GoldenError> {
    let found = hex(&Sha256::digest(data));
    if found == expected {
        return Ok(());
    }
    Err(GoldenError::Checksum { path: path.to_owned(), expected: expected.to_owned(), found })
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A tensor of F32 or BF16 as f32, exactly.
fn floats(file: &SafeTensors<'_>, name: &str) -> Result<Vec<f32>, String> {
    let tensor = file.tensor(name).map_err(|e| format!("{name}: {e}"))?;
    match tensor.dtype() {
        Dtype::F32 => Ok(words(tensor.data()).map(f32::from_le_bytes).collect()),
        Dtype::BF16 => Ok(words(tensor.data()).map(|b| bf16::from_le_bytes(b).to_f32()).collect()),
        other => Err(format!("{name}: expected F32 or BF16, found {other:?}")),
    }
}

/// A tensor of non-negative I32.
fn integers(file: &SafeTensors<'_>, name: &str) -> Result<Vec<u32>, String> {
    let tensor = file.tensor(name).map_err(|e| format!("{name}: {e}"))?;
    if tensor.dtype() != Dtype::I32 {
        return Err(format!("{name}: expected I32, found {:?}", tensor.dtype()));
    }
    let ids = words(tensor.data()).map(i32::from_le_bytes);
    ids.map(|id| u32::try_from(id).map_err(|_| format!("{name}: negative id {id}"))).collect()
}

fn words<const N: usize>(data: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    data.as_chunks::<N>().0.iter().copied()
}
