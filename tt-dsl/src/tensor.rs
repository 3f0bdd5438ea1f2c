//! Tensors on a backend.

use crate::backend::Backend;
use crate::dim::{By, Dim, Two};
use crate::dtype::Dtype;
use crate::fact::SameSize;
use crate::shape::Shape;
use crate::view::{Contiguous, FirstOfPair, SecondOfPair, View};
use bytemuck::TransparentWrapper;
use core::fmt;
use core::marker::PhantomData;

/// A tensor of shape `S` and dtype `E` that lives on backend `B`: row-major and contiguous,
/// always. It is its buffer and nothing else; shape and dtype take no memory and no time.
#[derive(TransparentWrapper)]
#[repr(transparent)]
#[transparent(B::Buffer<E>)]
pub struct Tensor<B: Backend, S: Shape, E: Dtype> {
    buffer: B::Buffer<E>,
    of: PhantomData<fn() -> S>,
}

impl<B: Backend, S: Shape, E: Dtype> Tensor<B, S, E> {
    /// Wraps a buffer. For backends: the buffer must hold `S::NUMEL` elements, row-major.
    pub fn from_buffer(buffer: B::Buffer<E>) -> Self {
        Self { buffer, of: PhantomData }
    }

    /// A buffer that lies elsewhere as the tensor it is. For decorators, whose tensors hold the
    /// buffers of other backends; the same condition holds.
    pub fn from_buffer_ref(buffer: &B::Buffer<E>) -> &Self {
        Self::wrap_ref(buffer)
    }

    /// The buffer.
    pub fn buffer(&self) -> &B::Buffer<E> {
        &self.buffer
    }

    /// The buffer, for an op that updates a state in place.
    pub fn buffer_mut(&mut self) -> &mut B::Buffer<E> {
        &mut self.buffer
    }

    /// Takes the buffer out.
    pub fn into_buffer(self) -> B::Buffer<E> {
        self.buffer
    }

    /// The whole tensor as a view.
    pub fn view(&self) -> View<'_, B, S, E, Contiguous> {
        View::new(&self.buffer)
    }
}

impl<B: Backend, T: Dim, D: Dim, E: Dtype> Tensor<B, (T, D), E> {
    /// The same elements under another name of the same size, as `By<Heads, HeadDim>` and `QDim`.
    pub fn columns_as<N: SameSize<D>>(self) -> Tensor<B, (T, N), E> {
        Tensor::from_buffer(self.buffer)
    }
}

/// A tensor whose rows hold, for each head, two vectors one after the other.
impl<B: Backend, T: Dim, H: Dim, D: Dim, E: Dtype> Tensor<B, (T, By<H, By<Two, D>>), E> {
    /// The first vector of every head, as (T, H x D).
    pub fn first_of_pairs(&self) -> View<'_, B, (T, By<H, D>), E, FirstOfPair<D>> {
        View::new(&self.buffer)
    }

    /// The second vector of every head, as (T, H x D).
    pub fn second_of_pairs(&self) -> View<'_, B, (T, By<H, D>), E, SecondOfPair<D>> {
        View::new(&self.buffer)
    }
}

impl<B: Backend, S: Shape, E: Dtype> fmt::Debug for Tensor<B, S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor<{}, {}, {}>", B::NAME, S::notation(), E::NAME)
    }
}
