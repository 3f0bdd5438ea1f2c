//! Device tensors.

use crate::bridge::ffi::{DataType, Page, Spec};
use crate::session::Session;
use core::marker::PhantomData;
use std::fmt;
use std::sync::Arc;
use tt_dsl::{Dtype, Shape};

/// How a buffer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A master's copy, a state: freed.
    Owned,
    /// An op's output: its place is kept for the next output of the same spec.
    Planned,
}

/// A tensor on the device. It shares its session, so it cannot outlive it, and frees itself when it
/// is dropped: in the order of the recording, after the last command that names it.
pub struct Buffer<E: Dtype> {
    session: Arc<Session>,
    slot: u32,
    spec: Spec,
    origin: Origin,
    of: PhantomData<fn() -> E>,
}

impl<E: Dtype> Buffer<E> {
    pub(crate) fn new(session: Arc<Session>, slot: u32, spec: Spec, origin: Origin) -> Self {
        Self { session, slot, spec, origin, of: PhantomData }
    }

    pub(crate) fn slot(&self) -> u32 {
        self.slot
    }

    /// The session that the tensor lives in.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }
}

impl<E: Dtype> Drop for Buffer<E> {
    fn drop(&mut self) {
        self.session.retire(self.slot, self.spec, self.origin);
    }
}

impl<E: Dtype> fmt::Debug for Buffer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer<{}>(slot {}, {})", E::NAME, self.slot, describe(&self.spec))
    }
}

/// How a tensor of that shape and dtype lies on the device.
///
/// The last two sizes are the matrix, those before them the batch; a vector is a matrix of one row.
/// bf16 and f32 lie in tiles. Ids are row-major, and so are tensors of rank three or more whose
/// matrices have a single row, as convolution taps are: in tiles, 4 values would take 1024.
pub(crate) fn spec<S: Shape, E: Dtype>() -> Spec {
    let size = |from_last: usize| S::SIZES.len().checked_sub(from_last).map_or(1, |i| S::SIZES[i]);
    let (cols, rows) = (size(1), size(2));
    let batch = S::SIZES[..S::SIZES.len().saturating_sub(2)].iter().product::<usize>();
    let dtype = dtype::<E>();
    let row_major = dtype == DataType::U32 || (S::RANK >= 3 && rows == 1);
    let page = if row_major { Page::RowMajor } else { Page::Tile };
    Spec { dtype, page, batch: dim(batch), rows: dim(rows), cols: dim(cols) }
}

/// Ids of a step: position and valid rows stand before them.
pub(crate) fn step_spec(tokens: usize) -> Spec {
    Spec {
        dtype: DataType::U32,
        page: Page::RowMajor,
        batch: 1,
        rows: 1,
        cols: dim(tokens.saturating_add(2)),
    }
}

/// A size as the bridge has it. One beyond 32 bits fits no device; it stays too large for any.
pub(crate) fn dim(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

/// A dtype of the language as the bridge has it. The language's set is closed, and each has its own
/// representation.
fn dtype<E: Dtype>() -> DataType {
    match E::NAME {
        "BF16" => DataType::Bf16,
        "F32" => DataType::F32,
        _ => DataType::U32,
    }
}

/// A spec for people.
pub(crate) fn describe(spec: &Spec) -> String {
    let dtype = match spec.dtype {
        DataType::Bf16 => "BF16",
        DataType::F32 => "F32",
        _ => "U32",
    };
    format!("{dtype} [{}, {}, {}]", spec.batch, spec.rows, spec.cols)
}
