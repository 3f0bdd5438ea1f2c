//! Functions of a bf16, tabulated: there are only 65,536 of them.
//!
//! A table holds what the plain function computes, so looking a value up has its very bits; and
//! it takes a fraction of the time of an exponential. The values of a layer's activations lie in
//! a few thousand of the entries, which stay in the caches.

use std::sync::LazyLock;

use half::bf16;

use crate::kernels::reference::{sigmoid, silu};

/// `bf(silu(x))`.
pub(super) static SILU: LazyLock<Table<bf16>> = LazyLock::new(|| Table::new(|x| bf16::from_f32(silu(x))));

/// `bf(sigmoid(x))`.
pub(super) static SIGMOID: LazyLock<Table<bf16>> =
    LazyLock::new(|| Table::new(|x| bf16::from_f32(sigmoid(x))));

/// `silu(x)`, not rounded.
pub(super) static SILU_F32: LazyLock<Table<f32>> = LazyLock::new(|| Table::new(silu));

const SIZE: usize = 1 << 16;

/// A function's value for every bf16.
pub(super) struct Table<T>(Box<[T; SIZE]>);

impl<T: Copy> Table<T> {
    fn new(function: impl Fn(f32) -> T) -> Self {
        let values: Vec<T> = (0..=u16::MAX).map(|bits| function(bf16::from_bits(bits).to_f32())).collect();
        let Ok(values) = values.into_boxed_slice().try_into() else {
            unreachable!("a value for each of the 65,536")
        };
        Self(values)
    }

    /// The function's value.
    #[inline]
    pub(super) fn at(&self, x: bf16) -> T {
        self.0[usize::from(x.to_bits())]
    }
}
