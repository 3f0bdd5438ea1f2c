//! A synthetic checkpoint written as a published one looks.

use super::{Synthetic, fill, hash::Words, kind::Kind};
use crate::Config;
use safetensors::Dtype;
use serde_json::{Map, Value, json};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tt_dsl::Dim;

/// What is written beside the weights, and how they are cut.
#[derive(Debug, Clone, Default)]
pub struct PublishOptions {
    /// The bytes of a `tokenizer.json`.
    pub tokenizer: Option<Vec<u8>>,
    /// Into how many files the weights are cut; a single `model.safetensors` without an index when none.
    pub shards: Option<usize>,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The files' names.
    pub files: Vec<String>,
    /// Tensors of the text model.
    pub tensors: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Why a checkpoint could not be written.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The system refused.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A checkpoint is there already: somebody may have it mapped.
    #[error("expected a folder without weights, found {}", path.display())]
    Occupied {
        /// The weights or their index.
        path: PathBuf,
    },
    /// More files than tensors, or none.
    #[error("expected 1 to {tensors} shards, found {shards}")]
    Shards {
        /// What was asked for.
        shards: usize,
        /// How many tensors there are.
        tensors: usize,
    },
}

/// Small stand-ins for the vision encoder and for multi-token prediction, which a reader of the text
/// model is to pass over.
const OTHER_MODELS: [(&str, &[usize]); 4] = [
    ("model.visual.patch_embed.proj.weight", &[8, 3, 2, 4, 4]),
    ("model.visual.blocks.0.norm1.weight", &[8]),
    ("mtp.fc.weight", &[8, 16]),
    ("mtp.norm.weight", &[8]),
];

const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// A tensor's place in a file.
struct Entry {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: usize,
}

pub(super) fn write<C: Config>(
    weights: &Synthetic<C>,
    dir: &Path,
    options: &PublishOptions,
) -> Result<Published, PublishError> {
    let entries = entries::<C>();
    let shards = options.shards.unwrap_or(1);
    if shards == 0 || shards > entries.len() {
        return Err(PublishError::Shards { shards, tensors: entries.len() });
    }
    if let Some(path) = [WEIGHTS, INDEX].map(|name| dir.join(name)).into_iter().find(|path| path.exists()) {
        return Err(PublishError::Occupied { path });
    }
    fs::create_dir_all(dir).map_err(|source| PublishError::Write { path: dir.to_owned(), source })?;

    let mut files = Vec::new();
    let mut side_file = |name: &str, bytes: &[u8]| {
        let path = dir.join(name);
        fs::write(&path, bytes).map_err(|source| PublishError::Write { path, source })?;
        files.push(name.to_owned());
        Ok(())
    };
    side_file("config.json", &config_json::<C>())?;
    side_file("generation_config.json", &generation_config_json::<C>())?;
    if let Some(tokenizer) = &options.tokenizer {
        side_file("tokenizer.json", tokenizer)?;
    }

    let cuts = cut(&entries, shards);
    if options.shards.is_some() {
        side_file(INDEX, &index_json(&entries, &cuts))?;
    }
    let mut tensors = weights.tensors().map(|(_, tensor)| tensor.bytes);
    for (shard, range) in cuts.iter().enumerate() {
        let name = options.shards.map_or(WEIGHTS.to_owned(), |_| shard_name(shard, shards));
        let path = dir.join(&name);
        let error = |source| PublishError::Write { path: path.clone(), source };
        let mut file = BufWriter::new(File::create_new(&path).map_err(error)?);
        file.write_all(&header(&entries[range.clone()])).map_err(error)?;
        for entry in &entries[range.clone()] {
            match OTHER_MODELS.iter().find(|(name, _)| entry.name == *name) {
                Some((name, shape)) => file.write_all(other_model(weights.seed(), name, shape).as_ref()),
                None => tensors.next().map_or(Ok(()), |bytes| file.write_all(bytes.as_slice())),
            }
            .map_err(error)?;
        }
        file.into_inner()
            .map_err(|error| error.into_error())
            .and_then(|file| file.sync_all())
            .map_err(error)?;
        files.push(name);
    }
    let text = || entries.iter().filter(|entry| !is_other_model(&entry.name));
    Ok(Published { files, tensors: text().count(), bytes: text().map(|entry| entry.bytes as u64).sum() })
}

fn is_other_model(name: &str) -> bool {
    OTHER_MODELS.iter().any(|(other, _)| *other == name)
}

fn other_model(seed: u64, name: &str, shape: &[usize]) -> fill::Bytes {
    fill::Bytes::narrow(fill::fill(Words::of(seed, name), &Kind::of_another_model(), shape.iter().product()))
}

/// All tensors in the order of the files: the text model's, then the others.
fn entries<C: Config>() -> Vec<Entry> {
    let text = crate::checkpoint::inventory::<C>().into_iter().map(|expected| {
        let dtype = super::dtype(expected.dtypes);
        (super::full_name(&expected.name), dtype, expected.sizes)
    });
    let others = OTHER_MODELS.iter().map(|&(name, shape)| (name.to_owned(), Dtype::BF16, shape));
    text.chain(others)
        .map(|(name, dtype, shape)| {
            let bytes = shape.iter().product::<usize>() * dtype.bitsize() / 8;
            Entry { name, dtype, shape: shape.to_vec(), bytes }
        })
        .collect()
}

/// Cuts the tensors into `shards` runs of about the same bytes, none of them empty.
fn cut(entries: &[Entry], shards: usize) -> Vec<core::ops::Range<usize>> {
    let total: usize = entries.iter().map(|entry| entry.bytes).sum();
    let (mut cuts, mut start, mut seen) = (Vec::new(), 0, 0);
    for (index, entry) in entries.iter().enumerate() {
        seen += entry.bytes;
        let (done, later) = (cuts.len() + 1, entries.len() - index - 1);
        let is_due = seen >= total / shards * done || later == shards - done;
        if done < shards && is_due {
            cuts.push(start..index + 1);
            start = index + 1;
        }
    }
    cuts.push(start..entries.len());
    cuts
}

fn shard_name(shard: usize, shards: usize) -> String {
    format!("model-{:05}-of-{shards:05}.safetensors", shard + 1)
}

/// A safetensors header with its length before it, padded so that the tensors start at a multiple of 64.
fn header(entries: &[Entry]) -> Vec<u8> {
    let mut header = Map::new();
    header.insert("__metadata__".to_owned(), json!({"format": "pt"}));
    let mut end = 0;
    for entry in entries {
        let start = end;
        end += entry.bytes;
        let facts =
            json!({"dtype": entry.dtype.to_string(), "shape": entry.shape, "data_offsets": [start, end]});
        header.insert(entry.name.clone(), facts);
    }
    let text = Value::Object(header).to_string();
    let padded = (8 + text.len()).next_multiple_of(64) - 8;
    let mut bytes = (padded as u64).to_le_bytes().to_vec();
    bytes.extend(text.bytes());
    bytes.resize(8 + padded, b' ');
    bytes
}

fn index_json(entries: &[Entry], cuts: &[core::ops::Range<usize>]) -> Vec<u8> {
    let total: usize = entries.iter().map(|entry| entry.bytes).sum();
    let mut map = Map::new();
    for (shard, range) in cuts.iter().enumerate() {
        for entry in &entries[range.clone()] {
            map.insert(entry.name.clone(), json!(shard_name(shard, cuts.len())));
        }
    }
    pretty(&json!({"metadata": {"total_size": total}, "weight_map": map}))
}

/// `config.json` of configuration `C` in the published form: the text model beside a vision encoder,
/// of which a reader of the text model looks at nothing.
pub(super) fn config_json<C: Config>() -> Vec<u8> {
    let kind = |i| if C::is_full_attention(i) { "full_attention" } else { "linear_attention" };
    let half = C::RotaryDim::SIZE / 2;
    pretty(&json!({
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": "qwen3_5",
        "text_config": {
            "model_type": "qwen3_5_text",
            "dtype": "bfloat16",
            "mamba_ssm_dtype": "float32",
            "vocab_size": C::Vocab::SIZE,
            "hidden_size": C::Hidden::SIZE,
            "intermediate_size": C::Intermediate::SIZE,
            "num_hidden_layers": C::LAYERS,
            "full_attention_interval": C::FULL_ATTENTION_INTERVAL,
            "layer_types": (0..C::LAYERS).map(kind).collect::<Vec<_>>(),
            "num_attention_heads": C::Heads::SIZE,
            "num_key_value_heads": C::KvHeads::SIZE,
            "head_dim": C::HeadDim::SIZE,
            "attn_output_gate": true,
            "attention_bias": false,
            "attention_dropout": 0.0,
            "linear_num_key_heads": C::KeyHeads::SIZE,
            "linear_num_value_heads": C::ValueHeads::SIZE,
            "linear_key_head_dim": C::KeyDim::SIZE,
            "linear_value_head_dim": C::ValueDim::SIZE,
            "linear_conv_kernel_dim": C::ConvKernel::SIZE,
            "hidden_act": "silu",
            "rms_norm_eps": decimal(C::RMS_EPS),
            "max_position_embeddings": C::MAX_POSITIONS,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": C::ROPE_THETA,
                "partial_rotary_factor": C::PARTIAL_ROTARY_FACTOR,
                // Time, height, width; for text the three are one.
                "mrope_section": [half.div_ceil(3), (half + 1) / 3, half / 3],
                "mrope_interleaved": true,
            },
            "eos_token_id": C::EOS,
            "tie_word_embeddings": C::TIED,
            "use_cache": true,
        },
        "vision_config": {"model_type": "qwen3_5", "depth": 1, "hidden_size": 8, "patch_size": 4},
        "tie_word_embeddings": C::TIED,
    }))
}

/// `generation_config.json`: greedy, and one stop id.
fn generation_config_json<C: Config>() -> Vec<u8> {
    pretty(&json!({"do_sample": false, "eos_token_id": [C::EOS]}))
}

/// An f32 as the shortest decimal that is it.
fn decimal(value: f32) -> Value {
    value.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

fn pretty(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}
