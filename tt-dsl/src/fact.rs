//! Facts about dimensions, proven by the compiler.
//!
//! Each fact is a trait with one blanket impl over [`TypeNum`]. A model states the facts it needs
//! once, as item bounds of its configuration; generic layers then have them for every
//! configuration without a where clause. The impls are `do_not_recommend`, so an error speaks of
//! the fact and the dims as their author named them, never of typenum.
//!
//! Two facts need no arithmetic: [`Is`] and [`IsDim`] say that two types are one. An op takes
//! `w: &Tensor<B, impl Is<(N, K)>, Bf16>`, which is a tensor of shape `(N, K)` and nothing else, in
//! place of `w: &Tensor<B, (N, K), Bf16>`, for the sake of whoever passes another one: a type that
//! does not match is `mismatched types` to the compiler and two long types further down, a fact
//! that does not hold is `expected shape (_, Hidden), found (Inner, HeadDim)`. The `_` is a dim
//! that the arguments before left open. The price is that an argument's shape is not inferred
//! from the others: a tensor needs its type where it is made, as it has in the fields of a layer.

use crate::dim::{Dim, TypeNum};
use crate::shape::Shape;
use core::ops::Rem;
use typenum::{B1, IsGreaterOrEqual, U32, UTerm};

/// `Self` is the dim `Other`.
#[diagnostic::on_unimplemented(
    message = "expected dimension `{Other}`, found `{Self}`",
    label = "this must have the dimension `{Other}`"
)]
pub trait IsDim<Other: Dim>: Dim + sealed::Same<Other> {}

#[diagnostic::do_not_recommend]
impl<D: Dim> IsDim<D> for D {}

/// `Self` is the shape `Other`.
#[diagnostic::on_unimplemented(
    message = "expected shape `{Other}`, found `{Self}`",
    label = "the shape of this must be `{Other}`"
)]
pub trait Is<Other: Shape>: Shape + sealed::Same<Other> {}

#[diagnostic::do_not_recommend]
impl<S: Shape> Is<S> for S {}

mod sealed {
    /// Nothing is anything but itself, whoever would like to implement it.
    pub trait Same<Other> {}

    impl<T> Same<T> for T {}
}

/// `Self` and `Other` have the same number of elements.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not have the same size as `{Other}`",
    label = "these two sizes must be equal"
)]
pub trait SameSize<Other: Dim>: Dim {}

#[diagnostic::do_not_recommend]
impl<A: TypeNum, B: TypeNum<N = A::N>> SameSize<B> for A {}

/// `Self` is a whole multiple of `Divisor`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a whole multiple of `{Divisor}`",
    label = "the size of `{Self}` must be divisible by the size of `{Divisor}`"
)]
pub trait MultipleOf<Divisor: Dim>: Dim {}

#[diagnostic::do_not_recommend]
impl<A: TypeNum, B: TypeNum> MultipleOf<B> for A where A::N: Rem<B::N, Output = UTerm> {}

/// `Self` is at least as large as `Other`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is smaller than `{Other}`",
    label = "the size of `{Self}` must be at least the size of `{Other}`"
)]
pub trait AtLeast<Other: Dim>: Dim {}

#[diagnostic::do_not_recommend]
impl<A: TypeNum, B: TypeNum> AtLeast<B> for A where A::N: IsGreaterOrEqual<B::N, Output = B1> {}

/// `Self` is a whole number of 32-element tiles, the unit of a Tenstorrent tensor.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not tile-aligned",
    label = "the size of `{Self}` must be a multiple of the tile edge, 32"
)]
pub trait TileAligned: Dim {}

#[diagnostic::do_not_recommend]
impl<A: TypeNum> TileAligned for A where A::N: Rem<U32, Output = UTerm> {}
