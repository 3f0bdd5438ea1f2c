//! Logits.

use crate::backend::Backend;
use crate::dim::Dim;
use crate::dtype::F32;
use crate::tensor::Tensor;

/// Logits over vocabulary `V`: the f32 accumulators of the language-model head, never rounded to
/// bf16. [`Backend::lm_head`] makes them, and there is no other way from bf16 activations to f32
/// outside a kernel.
pub struct LogitsF32<B: Backend, V: Dim>(Tensor<B, (V,), F32>);

impl<B: Backend, V: Dim> LogitsF32<B, V> {
    /// For backends: the accumulators that the head's kernel left.
    pub fn from_accumulators(accumulators: Tensor<B, (V,), F32>) -> Self {
        Self(accumulators)
    }

    /// The tensor, to be downloaded or searched.
    pub fn tensor(&self) -> &Tensor<B, (V,), F32> {
        &self.0
    }

    /// Takes the tensor out.
    pub fn into_tensor(self) -> Tensor<B, (V,), F32> {
        self.0
    }
}
