//! Weight conventions as types.

use crate::backend::Backend;
use crate::dtype::{Bf16, F32};
use crate::tensor::Tensor;

/// The weight of a zero-centred RMS norm: the norm multiplies by `1 + w`. Bf16, `(D,)`.
pub struct ZeroCentredNorm<B: Backend, D: crate::Dim>(pub Tensor<B, (D,), Bf16>);

/// The weight of a plain RMS norm: the norm multiplies by `w`. F32, `(D,)`, as published.
pub struct PlainNorm<B: Backend, D: crate::Dim>(pub Tensor<B, (D,), F32>);
