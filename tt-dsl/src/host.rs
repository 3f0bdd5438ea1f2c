//! Host masters: typed tensors in host memory, the only thing that staging accepts.

use crate::dtype::Dtype;
use crate::shape::Shape;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;
use std::borrow::Cow;
use std::sync::Arc;

/// Bytes that somebody owns, shared without a copy: a mapped file or a vector.
#[derive(Clone)]
pub struct HostBytes {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
}

impl HostBytes {
    /// The bytes `range` of `owner`, or `None` if the owner does not have them.
    pub fn new(owner: Arc<dyn AsRef<[u8]> + Send + Sync>, range: Range<usize>) -> Option<Self> {
        (*owner).as_ref().get(range.clone())?;
        Some(Self { owner, range })
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &(*self.owner).as_ref()[self.range.clone()]
    }
}

/// Elements kept as a vector and lent as bytes.
struct Elements<R>(Vec<R>);

impl<R: bytemuck::Pod> AsRef<[u8]> for Elements<R> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// A length that does not fit the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} {unit} for a tensor of shape {sizes:?} and dtype {dtype}, found {found}")]
pub struct LengthError {
    /// What the shape and the dtype ask for.
    pub expected: usize,
    /// What was given.
    pub found: usize,
    /// What is counted: bytes or elements.
    pub unit: &'static str,
    /// The shape's sizes, outermost first.
    pub sizes: &'static [usize],
    /// The dtype's name.
    pub dtype: &'static str,
}

/// A row-major tensor in host memory, little-endian, in exactly the dtype of its type.
///
/// It is what a checkpoint hands to [`Backend::stage`](crate::Backend::stage) and what
/// [`Backend::download`](crate::Backend::download) returns. It may lie at any byte offset of a
/// mapped file, also an odd one.
pub struct Master<S: Shape, E: Dtype> {
    bytes: HostBytes,
    of: PhantomData<fn() -> (S, E)>,
}

impl<S: Shape, E: Dtype> Master<S, E> {
    /// Takes bytes as they lie in a file; nothing is copied or converted.
    pub fn from_bytes(bytes: HostBytes) -> Result<Self, LengthError> {
        let found = bytes.range.len();
        match S::NUMEL.checked_mul(E::BYTES) {
            Some(expected) if expected == found => Ok(Self { bytes, of: PhantomData }),
            expected => Err(Self::length_error(expected.unwrap_or(usize::MAX), found, "bytes")),
        }
    }

    /// Takes a vector of exactly `S::NUMEL` elements.
    pub fn from_vec(values: Vec<E::Repr>) -> Result<Self, LengthError> {
        if values.len() != S::NUMEL {
            return Err(Self::length_error(S::NUMEL, values.len(), "elements"));
        }
        let range = 0..values.len() * E::BYTES;
        Ok(Self { bytes: HostBytes { owner: Arc::new(Elements(values)), range }, of: PhantomData })
    }

    fn length_error(expected: usize, found: usize, unit: &'static str) -> LengthError {
        LengthError { expected, found, unit, sizes: S::SIZES, dtype: E::NAME }
    }

    /// The bytes, shared.
    pub fn bytes(&self) -> &HostBytes {
        &self.bytes
    }

    /// The elements; copied only when they lie unaligned.
    pub fn values(&self) -> Cow<'_, [E::Repr]> {
        let bytes = self.bytes.as_slice();
        match bytemuck::try_cast_slice(bytes) {
            Ok(values) => Cow::Borrowed(values),
            Err(_) => Cow::Owned(bytemuck::pod_collect_to_vec(bytes)),
        }
    }
}

impl<S: Shape, E: Dtype> Clone for Master<S, E> {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), of: PhantomData }
    }
}

impl<S: Shape, E: Dtype> fmt::Debug for Master<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Master<{}, {}>", S::notation(), E::NAME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bf16, dim};
    use half::bf16;

    dim! { Two = 2; }

    #[test]
    fn an_odd_offset_reads_the_right_values() {
        let file: Arc<Vec<u8>> = Arc::new(vec![0xff, 0x80, 0x3f, 0x00, 0xc0]);
        let bytes = HostBytes::new(file, 1..5).unwrap();
        let master = Master::<(Two,), Bf16>::from_bytes(bytes).unwrap();
        assert_eq!(master.values().as_ref(), [bf16::from_f32(1.0), bf16::from_f32(-2.0)]);
    }

    #[test]
    fn a_wrong_length_says_what_was_expected() {
        let error = Master::<(Two,), Bf16>::from_vec(vec![bf16::ZERO; 3]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected 2 elements for a tensor of shape [2] and dtype BF16, found 3"
        );
        assert!(HostBytes::new(Arc::new(vec![0u8; 3]), 2..4).is_none());
    }
}
