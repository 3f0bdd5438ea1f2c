//! Tensors fetched by walking names, as a model's constructor reads.

use super::error::CheckpointError;
use super::files::StoredTensor;
use super::names::TextTensors;
use super::problem::{Listed, TensorProblem};
use core::fmt::Display;
use safetensors::Dtype as FileDtype;
use tt_dsl::{Backend, Bf16, Dtype, F32, Master, Shape, Tensor};

/// A tensor that was just handed to the backend.
#[derive(Debug, Clone, Copy)]
pub struct Staged<'n> {
    /// Its name without the text model's prefix.
    pub name: &'n str,
    /// Its bytes in the file.
    pub bytes: u64,
}

/// A place among the tensors of a verified checkpoint, and the backend that they go to.
///
/// ```text
/// let layer = weights.at("layers").at(3);
/// let attention = layer.at("self_attn");
/// let q_proj = attention.tensor("q_proj.weight")?;    // the field's type says shape and dtype
/// ```
pub struct Weights<'a, B: Backend> {
    text: &'a TextTensors<'a>,
    place: &'a str,
    backend: &'a B,
    progress: Option<&'a dyn Fn(Staged<'_>)>,
    path: String,
}

impl<B: Backend> Clone for Weights<'_, B> {
    fn clone(&self) -> Self {
        Self { path: self.path.clone(), ..*self }
    }
}

impl<'a, B: Backend> Weights<'a, B> {
    pub(super) fn new(text: &'a TextTensors<'a>, place: &'a str, backend: &'a B) -> Self {
        Self { text, place, backend, progress: None, path: String::new() }
    }

    /// Calls `progress` after each tensor.
    #[must_use]
    pub fn with_progress(self, progress: &'a dyn Fn(Staged<'_>)) -> Self {
        Self { progress: Some(progress), ..self }
    }

    /// The backend that the tensors go to.
    pub fn backend(&self) -> &'a B {
        self.backend
    }

    /// One step down: `at("layers")`, `at(3)`.
    #[must_use]
    pub fn at(&self, part: impl Display) -> Self {
        Self { path: self.join(part), ..*self }
    }

    /// Stages a tensor whose dtype in the file is `E`. Only recorded: the backend has it when its
    /// next submit returns.
    pub fn tensor<S: Shape, E: Dtype>(&self, name: &str) -> Result<Tensor<B, S, E>, CheckpointError> {
        self.stage(&self.join(name), |tensor| tensor.master())
    }

    /// Stages a tensor that is F32 in published files and BF16 in re-packed ones. BF16 is widened,
    /// which is exact; [`Verified::widened`](super::Verified::widened) lists where.
    pub fn widened<S: Shape>(&self, name: &str) -> Result<Tensor<B, S, F32>, CheckpointError> {
        self.stage(&self.join(name), |tensor| {
            if tensor.stored.dtype != FileDtype::BF16 {
                return tensor.master();
            }
            let narrow: Master<S, Bf16> = tensor.master()?;
            let wide = narrow.values().iter().map(|value| value.to_f32()).collect();
            Master::from_vec(wide).map_err(|_| tensor.shape_problem::<S>())
        })
    }

    /// Stages a tensor of the top level, wherever this place is: the head's own weight.
    pub fn head<S: Shape, E: Dtype>(&self, name: &str) -> Result<Tensor<B, S, E>, CheckpointError> {
        self.stage(name, |tensor| tensor.master())
    }

    fn join(&self, part: impl Display) -> String {
        if self.path.is_empty() { part.to_string() } else { format!("{}.{part}", self.path) }
    }

    fn stage<S: Shape, E: Dtype>(
        &self,
        path: &str,
        master: impl FnOnce(&Named<'_>) -> Result<Master<S, E>, TensorProblem>,
    ) -> Result<Tensor<B, S, E>, CheckpointError> {
        let name = self.text.full_name(path);
        let master = match self.text.get(path) {
            Some(stored) => master(&Named { name: &name, stored }),
            None => Err(TensorProblem::Missing {
                name,
                dtypes: E::NAME.to_owned(),
                expected: S::SIZES,
                notation: S::notation(),
            }),
        };
        let master = master.map_err(|problem| CheckpointError::Tensors(Listed::one(self.place, problem)))?;
        let tensor = self.backend.stage(&master);
        if let Some(progress) = self.progress {
            progress(Staged { name: path, bytes: master.bytes().as_slice().len() as u64 });
        }
        Ok(tensor)
    }
}

/// A tensor as it lies in a file, with the full name that errors speak of.
struct Named<'a> {
    name: &'a str,
    stored: &'a StoredTensor,
}

impl Named<'_> {
    /// The bytes under the type that a layer gives them. A verified checkpoint has that shape and
    /// dtype unless the layer asks for something that the inventory does not, so this second look
    /// keeps the two from drifting apart.
    fn master<S: Shape, E: Dtype>(&self) -> Result<Master<S, E>, TensorProblem> {
        if self.stored.dtype.to_string() != E::NAME {
            return Err(TensorProblem::Dtype {
                name: self.name.to_owned(),
                file: self.stored.file.to_string(),
                expected: E::NAME.to_owned(),
                found: self.stored.dtype,
            });
        }
        if self.stored.shape != S::SIZES {
            return Err(self.shape_problem::<S>());
        }
        Master::from_bytes(self.stored.bytes.clone()).map_err(|_| self.shape_problem::<S>())
    }

    fn shape_problem<S: Shape>(&self) -> TensorProblem {
        TensorProblem::Shape {
            name: self.name.to_owned(),
            file: self.stored.file.to_string(),
            expected: S::SIZES,
            notation: S::notation(),
            found: self.stored.shape.clone(),
        }
    }
}
