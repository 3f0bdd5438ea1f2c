//! Dimensions: sizes that are types with names.
//!
//! A compiler error about `UInt<UInt<UTerm, B1>, B0>` helps nobody; one about `Hidden` and
//! `HeadDim` does. So a dimension is a type that the author names with [`dim!`](crate::dim!), and
//! the number behind it is needed only where a fact is proven ([`crate::fact`]).

use core::marker::PhantomData;
use core::ops::{Add, Mul};
use typenum::{B0, B1, Prod, Sum, UInt, UTerm, Unsigned};

/// A named size. This is all that generic code needs.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a dimension",
    note = "dimensions are declared with `dim! {{ pub Hidden = 1024; }}`"
)]
pub trait Dim: 'static {
    /// The number of elements along this dimension.
    const SIZE: usize;
}

/// The typenum view of a dimension: what the facts of [`crate::fact`] are proven from.
#[diagnostic::on_unimplemented(
    message = "the size of `{Self}` is not known to the type checker here",
    note = "state the fact you need as an item bound where the dimension is declared"
)]
pub trait TypeNum: Dim {
    /// `SIZE` as a type-level unsigned integer.
    type N: Unsigned;
}

/// The structural product `A x B`: `A` groups of `B` elements, row-major.
pub struct By<A, B>(PhantomData<fn() -> (A, B)>);

impl<A: Dim, B: Dim> Dim for By<A, B> {
    const SIZE: usize = A::SIZE * B::SIZE;
}

#[diagnostic::do_not_recommend]
impl<A: TypeNum, B: TypeNum> TypeNum for By<A, B>
where
    A::N: Mul<B::N>,
    Prod<A::N, B::N>: Unsigned,
{
    type N = Prod<A::N, B::N>;
}

/// The structural sum `A + B`: `A` elements, then `B` elements.
pub struct Plus<A, B>(PhantomData<fn() -> (A, B)>);

impl<A: Dim, B: Dim> Dim for Plus<A, B> {
    const SIZE: usize = A::SIZE + B::SIZE;
}

#[diagnostic::do_not_recommend]
impl<A: TypeNum, B: TypeNum> TypeNum for Plus<A, B>
where
    A::N: Add<B::N>,
    Sum<A::N, B::N>: Unsigned,
{
    type N = Sum<A::N, B::N>;
}

/// One less than `A`, and zero for a dimension of size zero: the columns that a causal
/// convolution of kernel `A` remembers.
pub struct Pred<A>(PhantomData<fn() -> A>);

impl<A: Dim> Dim for Pred<A> {
    const SIZE: usize = A::SIZE.saturating_sub(1);
}

/// A binary digit as a const generic, so that [`dim!`](crate::dim!) can take a literal apart.
#[doc(hidden)]
pub struct Digit<const ONE: bool>;

/// The typenum bit of a [`Digit`].
#[doc(hidden)]
pub trait ToBit {
    /// `B0` or `B1`.
    type Bit;
}

impl ToBit for Digit<false> {
    type Bit = B0;
}

impl ToBit for Digit<true> {
    type Bit = B1;
}

/// Appends a binary digit; leading zeros vanish, so that equal sizes are equal types.
#[doc(hidden)]
pub trait Push<Bit> {
    /// `2 * Self + Bit`.
    type Output;
}

impl Push<B0> for UTerm {
    type Output = UTerm;
}

impl Push<B1> for UTerm {
    type Output = UInt<UTerm, B1>;
}

impl<U, B, Bit> Push<Bit> for UInt<U, B> {
    type Output = UInt<UInt<U, B>, Bit>;
}

/// Declares named dimensions.
///
/// ```
/// use tt_dsl::{Dim, dim};
///
/// dim! {
///     /// Width of the residual stream.
///     pub Hidden = 1024;
///     pub Vocab = 248_320;
/// }
/// assert_eq!(Vocab::SIZE, 248_320);
/// ```
///
/// Sizes go up to 2^24 - 1.
#[macro_export]
macro_rules! dim {
    ($($(#[$meta:meta])* $vis:vis $name:ident = $size:expr;)*) => {$(
        $(#[$meta])*
        #[doc = concat!("\n\nThe dimension `", stringify!($name), "`, of size ", stringify!($size), ".")]
        #[derive(Debug)]
        $vis enum $name {}

        impl $crate::Dim for $name {
            const SIZE: usize = $size;
        }

        impl $crate::TypeNum for $name {
            type N = $crate::__binary!($size;
                23 22 21 20 19 18 17 16 15 14 13 12 11 10 9 8 7 6 5 4 3 2 1 0);
        }

        const _: () = assert!($size < (1usize << 24), "a dimension's size must be below 2^24");
    )*};
}

/// Folds the bits of a literal, highest first, into a typenum integer.
#[doc(hidden)]
#[macro_export]
macro_rules! __binary {
    ($size:expr; $($bit:literal)*) => {
        $crate::__binary!(@fold $size; $crate::__typenum::UTerm; $($bit)*)
    };
    (@fold $size:expr; $acc:ty; $bit:literal $($rest:literal)*) => {
        $crate::__binary!(@fold $size;
            <$acc as $crate::Push<
                <$crate::Digit<{ ($size >> $bit) & 1usize == 1 }> as $crate::ToBit>::Bit>>::Output;
            $($rest)*)
    };
    (@fold $size:expr; $acc:ty;) => { $acc };
}

dim! {
    /// A single row: the decode step.
    pub One = 1;
    /// A pair, as in a head's query and gate.
    pub Two = 2;
}

#[cfg(test)]
mod tests {
    use super::*;

    dim! {
        Empty = 0;
        Heads = 8;
        HeadDim = 256;
        Vocab = 248_320;
        Largest = 16_777_215;
    }

    fn n<D: TypeNum>() -> usize {
        D::N::USIZE
    }

    #[test]
    fn the_typenum_view_is_the_size() {
        assert_eq!(n::<Empty>(), 0);
        assert_eq!(n::<Vocab>(), 248_320);
        assert_eq!(n::<Largest>(), Largest::SIZE);
        assert_eq!(n::<By<Heads, HeadDim>>(), 2048);
        assert_eq!(n::<Plus<Heads, HeadDim>>(), 264);
        assert_eq!(<Pred<Heads>>::SIZE, 7);
    }
}
