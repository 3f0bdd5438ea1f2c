//! Synthetic checkpoints: the weights of any configuration, from a seed and a formula.
//!
//! Real weights cannot always be had. These are made where they are needed, in a second or two for the
//! 0.8B, and an independent implementation of the same formula (`goldens/scripts/synthetic.py`) makes the
//! same bits for the reference, so a full-size golden needs no file of weights.
//!
//! An element is `base + n step`, rounded to nearest even bf16: `n` is an integer from -30 to 30, near
//! to normally distributed, and base and step depend on what the tensor is for (`kind.rs`). Four
//! elements share one random word, which depends on the seed, the tensor's name and the word's index
//! alone (`hash.rs`):
//!
//! ```text
//! word(i) = mix(mix(seed ^ fnv1a(name)) + (i + 1) GOLDEN)       mix: SplitMix64's finaliser
//! n(e)    = sum of the nibbles in bits 16 (e % 4) .. 16 (e % 4) + 15 of word(e / 4), minus 30
//! ```
//!
//! Tensors that are F32 in published checkpoints hold values that are exact in bf16.

mod fill;
mod hash;
mod kind;
mod publish;

pub use publish::{PublishError, PublishOptions, Published};

use crate::Config;
use crate::checkpoint::{Checkpoint, DtypeRule, Expected, StoredTensor, inventory};
use core::marker::PhantomData;
use hash::Words;
use kind::{Facts, Kind};
use safetensors::Dtype;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tt_dsl::{Dim, HostBytes};

/// The formula's number: another formula has another.
pub const FORMULA: u32 = 1;

/// Prefix of the text model's names in a published checkpoint.
const PREFIX: &str = "model.language_model.";

/// The synthetic weights of configuration `C` for one seed.
#[derive(Debug, Clone, Copy)]
pub struct Synthetic<C> {
    seed: u64,
    of: PhantomData<fn() -> C>,
}

impl<C: Config> Synthetic<C> {
    /// The weights of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, of: PhantomData }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A tensor's name in a published checkpoint, by its name without prefix.
    pub fn full_name(short: &str) -> String {
        full_name(short)
    }

    /// Every tensor, with the name that the published checkpoint gives it, in the order in which a pass
    /// reads them. Each is made when the iterator comes to it, on all cores.
    pub fn tensors(&self) -> impl Iterator<Item = (String, StoredTensor)> {
        let file: Arc<str> = "synthetic weights".into();
        inventory::<C>().into_iter().filter_map(move |expected| {
            let bytes = HostBytes::from(self.bytes(&expected)?);
            let (dtype, shape) = (dtype(expected.dtypes), expected.sizes.to_vec());
            Some((full_name(&expected.name), StoredTensor { dtype, shape, bytes, file: file.clone() }))
        })
    }

    /// The bytes of one tensor, by its name without prefix, as a published checkpoint has them; none
    /// if the configuration has no such tensor.
    pub fn tensor(&self, name: &str) -> Option<Vec<u8>> {
        let expected = inventory::<C>().into_iter().find(|expected| expected.name == name)?;
        Some(self.bytes(&expected)?.into_bytes())
    }

    /// A checkpoint in memory, as if opened from a folder of a published one, with the
    /// `tokenizer.json` that it is given. [`Checkpoint::place`] names the seed.
    pub fn checkpoint(&self, tokenizer: Option<Vec<u8>>) -> Checkpoint {
        let place = format!("synthetic {} of seed {}", C::NAME, self.seed);
        let tensors: BTreeMap<String, StoredTensor> = self.tensors().collect();
        let mut files = BTreeMap::from([("config.json", publish::config_json::<C>())]);
        files.extend(tokenizer.map(|bytes| ("tokenizer.json", bytes)));
        Checkpoint::in_memory(place, files, tensors)
    }

    /// Writes the checkpoint as a published one looks: see [`PublishOptions`].
    pub fn write(&self, dir: &Path, options: &PublishOptions) -> Result<Published, PublishError> {
        publish::write(self, dir, options)
    }

    fn bytes(&self, expected: &Expected) -> Option<fill::Bytes> {
        let facts = Facts { hidden: C::Hidden::SIZE, silent_from: C::EOS as usize };
        let kind = Kind::of(self.seed, &expected.name, expected.sizes, facts)?;
        let elements = expected.sizes.iter().product();
        let values = fill::fill(Words::of(self.seed, &expected.name), &kind, elements);
        Some(match dtype(expected.dtypes) {
            Dtype::F32 => fill::Bytes::wide(&values),
            _ => fill::Bytes::narrow(values),
        })
    }
}

/// The dtype in which a tensor is published.
fn dtype(rule: DtypeRule) -> Dtype {
    match rule {
        DtypeRule::Bf16 => Dtype::BF16,
        DtypeRule::F32OrBf16 => Dtype::F32,
    }
}

/// A tensor's name in a published checkpoint.
fn full_name(short: &str) -> String {
    if short == "lm_head.weight" { short.to_owned() } else { format!("{PREFIX}{short}") }
}
