//! The input of a forward pass: token ids at consecutive positions.

use crate::backend::Backend;
use crate::dim::Dim;
use crate::dtype::U32;
use core::marker::PhantomData;

/// Which rows of a capacity `T` are valid, and at which position the first one stands.
///
/// `1 <= rows <= T::SIZE`, checked where it is made. Rows past `rows` are padding: an op may
/// compute anything in them, and nothing in them reaches a valid row or a state.
pub struct Span<T: Dim> {
    start: usize,
    rows: usize,
    of: PhantomData<fn() -> T>,
}

impl<T: Dim> Span<T> {
    /// `rows` valid rows from position `start`.
    pub fn new(start: usize, rows: usize) -> Result<Self, RowsError> {
        if (1..=T::SIZE).contains(&rows) {
            Ok(Self { start, rows, of: PhantomData })
        } else {
            Err(RowsError { rows, capacity: T::SIZE })
        }
    }

    /// The position of the first row.
    pub fn start(self) -> usize {
        self.start
    }

    /// The number of valid rows.
    pub fn rows(self) -> usize {
        self.rows
    }

    /// The position after the last valid row.
    pub fn end(self) -> usize {
        self.start + self.rows
    }
}

impl<T: Dim> Clone for Span<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Dim> Copy for Span<T> {}

/// A number of rows that a capacity cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected 1 to {capacity} tokens in a step, found {rows}")]
pub struct RowsError {
    /// The rows asked for.
    pub rows: usize,
    /// The capacity dim's size.
    pub capacity: usize,
}

/// Why token ids could not be uploaded.
#[derive(Debug, thiserror::Error)]
pub enum TokensError<E: std::error::Error + 'static> {
    /// Too few or too many of them.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// An id without a row in the embedding table.
    #[error("expected token ids below {vocab}, found {id} at index {index}")]
    Vocabulary {
        /// Where it stands.
        index: usize,
        /// The id.
        id: u32,
        /// The vocabulary dim's size.
        vocab: usize,
    },
    /// The backend could not take them.
    #[error(transparent)]
    Backend(E),
}

/// Up to `T` consecutive positions on a backend: the ids' buffer, which also holds what the
/// backend needs of the position, and the span on the host.
pub struct Step<B: Backend, T: Dim> {
    buffer: B::Buffer<U32>,
    span: Span<T>,
}

impl<B: Backend, T: Dim> Step<B, T> {
    /// For decorators, which keep a step for each backend they drive.
    pub fn from_parts(buffer: B::Buffer<U32>, span: Span<T>) -> Self {
        Self { buffer, span }
    }

    /// The buffer that [`Backend::upload_tokens`] made.
    pub fn buffer(&self) -> &B::Buffer<U32> {
        &self.buffer
    }

    /// Takes the buffer out. For decorators.
    pub fn into_buffer(self) -> B::Buffer<U32> {
        self.buffer
    }

    /// The valid rows and their positions.
    pub fn span(&self) -> Span<T> {
        self.span
    }
}

/// Up to `T` token ids of vocabulary `V`, every one known to be below `V::SIZE`.
pub struct Tokens<B: Backend, T: Dim, V: Dim> {
    step: Step<B, T>,
    of: PhantomData<fn() -> V>,
}

impl<B: Backend, T: Dim, V: Dim> Tokens<B, T, V> {
    /// Checks the ids and uploads them with their position: the one host-to-device crossing of a
    /// forward pass. Shorter inputs are padded with id 0.
    pub fn upload(backend: &B, ids: &[u32], start: usize) -> Result<Self, TokensError<B::Error>> {
        let span = Span::new(start, ids.len())?;
        if let Some(index) = ids.iter().position(|&id| id as usize >= V::SIZE) {
            return Err(TokensError::Vocabulary { index, id: ids[index], vocab: V::SIZE });
        }
        let mut padded = vec![0; T::SIZE];
        padded[..ids.len()].copy_from_slice(ids);
        let buffer = backend.upload_tokens(&padded, span).map_err(TokensError::Backend)?;
        Ok(Self { step: Step { buffer, span }, of: PhantomData })
    }

    /// For decorators.
    pub fn from_step(step: Step<B, T>) -> Self {
        Self { step, of: PhantomData }
    }

    /// Takes the step out. For decorators.
    pub fn into_step(self) -> Step<B, T> {
        self.step
    }

    /// The positions, which most ops need without the ids.
    pub fn step(&self) -> &Step<B, T> {
        &self.step
    }
}
