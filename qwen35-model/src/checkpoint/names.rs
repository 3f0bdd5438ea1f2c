//! Which of a checkpoint's tensors are the text model's, and under which name.

use super::error::CheckpointError;
use super::files::{Checkpoint, StoredTensor};
use std::collections::BTreeMap;

/// Prefixes of the text model's tensors, the published one first.
const TEXT: [&str; 2] = ["model.language_model.", "model."];
/// Prefixes of tensors that belong to the vision encoder or to multi-token prediction.
const OTHER_MODELS: [&str; 3] = ["model.visual.", "visual.", "mtp."];
/// Tensors of the text model that stand outside its prefix.
const TOP_LEVEL: [&str; 1] = ["lm_head.weight"];

/// The text model's tensors, by their name without prefix.
pub struct TextTensors<'a> {
    prefix: &'static str,
    tensors: BTreeMap<&'a str, &'a StoredTensor>,
    strangers: BTreeMap<&'a str, &'a StoredTensor>,
    passed_over: usize,
}

impl<'a> TextTensors<'a> {
    /// Sorts a checkpoint's tensors by their names.
    pub fn of(checkpoint: &'a Checkpoint) -> Result<Self, CheckpointError> {
        let mut passed_over = 0;
        let mut own = Vec::new();
        for (name, tensor) in checkpoint.tensors() {
            if OTHER_MODELS.iter().any(|prefix| name.starts_with(prefix)) {
                passed_over += 1;
            } else {
                own.push((name.as_str(), tensor));
            }
        }
        let Some(prefix) =
            TEXT.into_iter().find(|prefix| own.iter().any(|(name, _)| name.starts_with(prefix)))
        else {
            let found = own.first().map_or("none".to_owned(), |(name, _)| format!("`{name}`"));
            let expected = format!("tensor names that start with `{}` or `{}`", TEXT[0], TEXT[1]);
            return Err(CheckpointError::format(&checkpoint.place(), expected, found));
        };
        let (mut tensors, mut strangers) = (BTreeMap::new(), BTreeMap::new());
        for (name, tensor) in own {
            match name.strip_prefix(prefix) {
                // `model.lm_head.weight` is not `lm_head.weight`.
                Some(short) if !TOP_LEVEL.contains(&short) => tensors.insert(short, tensor),
                None if TOP_LEVEL.contains(&name) => tensors.insert(name, tensor),
                _ => strangers.insert(name, tensor),
            };
        }
        Ok(Self { prefix, tensors, strangers, passed_over })
    }

    /// The full name of a tensor of the text model, as this checkpoint writes it.
    pub fn full_name(&self, short: &str) -> String {
        if TOP_LEVEL.contains(&short) { short.to_owned() } else { format!("{}{short}", self.prefix) }
    }

    /// A tensor by its name without prefix.
    pub fn get(&self, short: &str) -> Option<&'a StoredTensor> {
        self.tensors.get(short).copied()
    }

    /// The names without prefix.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.tensors.keys().copied()
    }

    /// Tensors that are neither the text model's nor a known other model's, by full name.
    pub fn strangers(&self) -> impl Iterator<Item = (&'a str, &'a StoredTensor)> {
        self.strangers.iter().map(|(name, tensor)| (*name, *tensor))
    }

    /// How many tensors of the vision encoder and of multi-token prediction there are.
    pub fn passed_over(&self) -> usize {
        self.passed_over
    }
}
