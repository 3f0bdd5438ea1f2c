//! Views: tensors seen through a layout other than their own.

use crate::backend::Backend;
use crate::dim::Dim;
use crate::dtype::Dtype;
use crate::shape::Shape;
use core::marker::PhantomData;

/// How a view's elements lie in its owner's buffer: equal runs at a fixed stride.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Elements in a run.
    pub run: usize,
    /// Elements from the start of a run to the start of the next.
    pub stride: usize,
    /// Elements before the first run.
    pub offset: usize,
}

/// A layout as a type, so that a kernel is told the strides and never derives them from a shape.
pub trait Layout: 'static {
    /// The runs of a view of `numel` elements.
    fn geometry(numel: usize) -> Geometry;
}

/// Row-major without gaps: a tensor's own layout.
#[derive(Debug)]
pub enum Contiguous {}

impl Layout for Contiguous {
    fn geometry(numel: usize) -> Geometry {
        Geometry { run: numel, stride: numel, offset: 0 }
    }
}

/// The first of each pair of vectors of length `D`.
pub struct FirstOfPair<D>(PhantomData<fn() -> D>);

impl<D: Dim> Layout for FirstOfPair<D> {
    fn geometry(_numel: usize) -> Geometry {
        Geometry { run: D::SIZE, stride: 2 * D::SIZE, offset: 0 }
    }
}

/// The second of each pair of vectors of length `D`.
pub struct SecondOfPair<D>(PhantomData<fn() -> D>);

impl<D: Dim> Layout for SecondOfPair<D> {
    fn geometry(_numel: usize) -> Geometry {
        Geometry { run: D::SIZE, stride: 2 * D::SIZE, offset: D::SIZE }
    }
}

/// A tensor of shape `S` seen through layout `L` in a buffer that somebody else owns.
///
/// The few ops that can read one take it; staging and download do not.
pub struct View<'a, B: Backend, S: Shape, E: Dtype, L: Layout> {
    buffer: &'a B::Buffer<E>,
    of: PhantomData<fn() -> (S, L)>,
}

impl<'a, B: Backend, S: Shape, E: Dtype, L: Layout> View<'a, B, S, E, L> {
    /// A view of `buffer`. For backends and decorators: the buffer must hold every run that the
    /// layout's geometry names.
    pub fn new(buffer: &'a B::Buffer<E>) -> Self {
        Self { buffer, of: PhantomData }
    }

    /// The owner's whole buffer.
    pub fn buffer(&self) -> &'a B::Buffer<E> {
        self.buffer
    }

    /// Where the view's elements lie in the owner's buffer.
    pub fn geometry(&self) -> Geometry {
        L::geometry(S::NUMEL)
    }
}

impl<B: Backend, S: Shape, E: Dtype, L: Layout> Clone for View<'_, B, S, E, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend, S: Shape, E: Dtype, L: Layout> Copy for View<'_, B, S, E, L> {}
