//! Checkpoints of several files, and the index that says which tensor is in which.

use super::error::CheckpointError;
use super::files::{StoredTensor, read_file};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The index's name.
pub(super) const INDEX: &str = "model.safetensors.index.json";

/// Maps every shard of an index. The index and the shards must agree on where each tensor is.
pub(super) fn read_shards(dir: &Path) -> Result<BTreeMap<String, StoredTensor>, CheckpointError> {
    let place = dir.join(INDEX).display().to_string();
    let shard_of = read_index(dir, &place)?;
    let shards: BTreeSet<&String> = shard_of.values().collect();
    if let Some(shard) = shards.iter().find(|shard| !dir.join(shard).exists()) {
        let expected = format!("the shard `{shard}` that the index names");
        return Err(CheckpointError::format(&place, expected, "no such file"));
    }

    let mut tensors = BTreeMap::new();
    for shard in shards {
        for (name, tensor) in read_file(dir, shard)? {
            if shard_of.get(&name) != Some(shard) {
                let place = dir.join(shard).display().to_string();
                let found = format!("tensor `{name}`, which the index does not place there");
                return Err(CheckpointError::format(&place, "the tensors that the index lists", found));
            }
            tensors.insert(name, tensor);
        }
    }
    if let Some((name, shard)) = shard_of.iter().find(|(name, _)| !tensors.contains_key(*name)) {
        let place = dir.join(shard).display().to_string();
        let expected = format!("tensor `{name}`, which the index places there");
        return Err(CheckpointError::format(&place, expected, "no such tensor"));
    }
    Ok(tensors)
}

/// The index's `weight_map`: the shard of each tensor.
fn read_index(dir: &Path, place: &str) -> Result<BTreeMap<String, String>, CheckpointError> {
    let bytes = fs::read(dir.join(INDEX)).map_err(|error| CheckpointError::io(place, error))?;
    let index: Value = serde_json::from_slice(&bytes)
        .map_err(|error| CheckpointError::format(place, "valid JSON", error))?;
    let Some(listed) = index.get("weight_map").and_then(Value::as_object) else {
        return Err(CheckpointError::format(place, "an object `weight_map`", "none"));
    };
    let mut shard_of = BTreeMap::new();
    for (tensor, shard) in listed {
        // A shard stands beside its index: a path would let a file name any other file.
        match shard.as_str() {
            Some(shard) if Path::new(shard).file_name().is_some_and(|name| name == shard) => {
                shard_of.insert(tensor.clone(), shard.to_owned());
            }
            _ => {
                let expected = format!("a file name as the shard of tensor `{tensor}`");
                return Err(CheckpointError::format(place, expected, shard));
            }
        }
    }
    Ok(shard_of)
}
