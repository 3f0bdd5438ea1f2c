//! A checkpoint compared with the types, in full.

use super::config_json::ConfigJson;
use super::error::CheckpointError;
use super::files::Checkpoint;
use super::inventory::{DtypeRule, inventory};
use super::loader::Weights;
use super::names::TextTensors;
use super::problem::{Listed, TensorProblem};
use crate::config::Config;
use core::marker::PhantomData;
use safetensors::Dtype;
use std::collections::BTreeSet;
use tt_dsl::Backend;

/// A checkpoint that is one of configuration `C`: its `config.json` says so, and its text tensors
/// are those of the [`inventory`], no more and no fewer, each of its shape and dtype.
pub struct Verified<'a, C: Config> {
    text: TextTensors<'a>,
    place: String,
    widened: Vec<String>,
    bytes: u64,
    of: PhantomData<fn() -> C>,
}

impl Checkpoint {
    /// Checks `config.json`, then every tensor.
    pub fn verify<C: Config>(&self) -> Result<Verified<'_, C>, CheckpointError> {
        ConfigJson::of(self)?.check::<C>()?;
        let text = TextTensors::of(self)?;
        let problems = text.problems::<C>();
        if !problems.is_empty() {
            let summary = format!("tensors differ from those of {}", C::NAME);
            return Err(CheckpointError::Tensors(Listed { place: self.place(), summary, problems }));
        }
        let mut widened = Vec::new();
        let mut bytes = 0;
        for expected in inventory::<C>() {
            let Some(tensor) = text.get(&expected.name) else { continue };
            bytes += tensor.bytes.as_slice().len() as u64;
            if !expected.dtypes.is_declared(tensor.dtype) {
                widened.push(text.full_name(&expected.name));
            }
        }
        Ok(Verified { text, place: self.place(), widened, bytes, of: PhantomData })
    }
}

impl TextTensors<'_> {
    /// Everything in which these tensors differ from those of configuration `C`: first what the
    /// types ask for, in their order, then what they do not ask for.
    pub fn problems<C: Config>(&self) -> Vec<TensorProblem> {
        let inventory = inventory::<C>();
        let mut problems = Vec::new();
        for expected in &inventory {
            let name = self.full_name(&expected.name);
            let Some(tensor) = self.get(&expected.name) else {
                problems.push(TensorProblem::Missing {
                    name,
                    dtypes: expected.dtypes.to_string(),
                    expected: expected.sizes,
                    notation: expected.notation.clone(),
                });
                continue;
            };
            if tensor.shape != expected.sizes {
                problems.push(TensorProblem::Shape {
                    name: name.clone(),
                    file: tensor.file.to_string(),
                    expected: expected.sizes,
                    notation: expected.notation.clone(),
                    found: tensor.shape.clone(),
                });
            }
            if !expected.dtypes.admits(tensor.dtype) {
                problems.push(TensorProblem::Dtype {
                    name,
                    file: tensor.file.to_string(),
                    expected: expected.dtypes.to_string(),
                    found: tensor.dtype,
                });
            }
        }
        let asked: BTreeSet<_> = inventory.iter().map(|expected| expected.name.as_str()).collect();
        let unasked = self
            .names()
            .filter(|short| !asked.contains(short))
            .filter_map(|short| Some((self.full_name(short), self.get(short)?)));
        let strangers = self.strangers().map(|(name, tensor)| (name.to_owned(), tensor));
        problems.extend(unasked.chain(strangers).map(|(name, tensor)| TensorProblem::Surplus {
            name,
            file: tensor.file.to_string(),
            dtype: tensor.dtype,
            shape: tensor.shape.clone(),
        }));
        problems
    }
}

impl<'a, C: Config> Verified<'a, C> {
    /// The tensors, to be staged on `backend`.
    pub fn weights<B: Backend>(&'a self, backend: &'a B) -> Weights<'a, B> {
        Weights::new(&self.text, &self.place, backend)
    }

    /// The tensors that the types declare F32 and the files hold in BF16. They are widened, which
    /// is exact, when they are staged.
    pub fn widened(&self) -> &[String] {
        &self.widened
    }

    /// The bytes of all text tensors together.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bytes of each text tensor: what a decode step reads.
    pub fn each(&self) -> Vec<&[u8]> {
        let all = self.text.names().filter_map(|name| self.text.get(name));
        all.map(|tensor| tensor.bytes.as_slice()).collect()
    }

    /// How many tensors of the vision encoder and of multi-token prediction were passed over.
    pub fn passed_over(&self) -> usize {
        self.text.passed_over()
    }
}

impl DtypeRule {
    /// Whether `dtype` is the one that the types declare, so that nothing need be widened.
    fn is_declared(self, dtype: Dtype) -> bool {
        match self {
            Self::Bf16 => dtype == Dtype::BF16,
            Self::F32OrBf16 => dtype == Dtype::F32,
        }
    }
}
