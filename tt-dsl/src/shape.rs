//! Shapes: tuples of one to four dimensions, row-major.

use crate::dim::Dim;

/// The shape of a tensor: `(A,)`, `(A, B)`, `(A, B, C)` or `(A, B, C, D)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a shape",
    note = "a shape is a tuple of one to four dimensions; a single one is written `(A,)`"
)]
pub trait Shape: 'static {
    /// The number of dimensions, 1 to 4.
    const RANK: usize;
    /// The number of elements. A constant, so no generic code multiplies sizes at run time.
    const NUMEL: usize;
    /// The sizes, outermost first.
    const SIZES: &'static [usize];

    /// The shape as its author wrote it, without module paths: `(By<Heads, HeadDim>, Hidden)`.
    fn notation() -> String {
        notation::<Self>()
    }
}

macro_rules! shape {
    ($rank:literal: $($dim:ident)+) => {
        impl<$($dim: Dim),+> Shape for ($($dim,)+) {
            const RANK: usize = $rank;
            const NUMEL: usize = 1 $(* $dim::SIZE)+;
            const SIZES: &'static [usize] = &[$($dim::SIZE),+];
        }
    };
}

shape!(1: A);
shape!(2: A B);
shape!(3: A B C);
shape!(4: A B C D);

/// A type's name with the module paths left out.
fn notation<T: ?Sized>() -> String {
    let full = core::any::type_name::<T>();
    let mut out = String::with_capacity(full.len());
    for part in full.split_inclusive(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
        out.push_str(part.rsplit("::").next().unwrap_or(part));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{By, dim};

    dim! { Heads = 8; HeadDim = 256; Hidden = 1024; }

    #[test]
    fn sizes_are_constants() {
        type S = (By<Heads, HeadDim>, Hidden);
        const NUMEL: usize = S::NUMEL;
        assert_eq!(NUMEL, 2048 * 1024);
        assert_eq!(S::SIZES, [2048, 1024]);
        assert_eq!(<(Heads, HeadDim, Hidden, Heads)>::RANK, 4);
    }

    #[test]
    fn notation_is_what_the_author_wrote() {
        assert_eq!(<(By<Heads, HeadDim>, Hidden)>::notation(), "(By<Heads, HeadDim>, Hidden)");
        assert_eq!(<(Hidden,)>::notation(), "(Hidden,)");
    }
}
