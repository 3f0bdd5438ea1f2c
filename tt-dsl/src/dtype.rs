//! Element types. A dtype is a type, and nothing in this crate turns one into another: no cast,
//! no `From`, no mixed arithmetic.

use bytemuck::Pod;
use core::fmt::Debug;
use num_traits::{ToPrimitive, Zero};

mod sealed {
    pub trait Sealed {}
}

/// A closed set of element types: [`Bf16`], [`F32`], [`U32`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a dtype",
    note = "the dtypes are `Bf16`, `F32` and `U32`"
)]
pub trait Dtype: sealed::Sealed + 'static {
    /// How an element lies in memory.
    ///
    /// `ToPrimitive` is there for measuring: [`crate::parity`] reads every dtype as numbers.
    type Repr: Pod + Zero + ToPrimitive + Debug + PartialEq + Send + Sync;
    /// The name as safetensors writes it.
    const NAME: &'static str;
    /// Bytes per element.
    const BYTES: usize = size_of::<Self::Repr>();
}

/// bfloat16: weights, activations, caches. Kernels accumulate in f32 and round once, to nearest
/// even, when they store.
#[derive(Debug)]
pub enum Bf16 {}

/// IEEE single precision. It stands only where the model's definition has it: [`LogitsF32`](crate::LogitsF32),
/// the recurrent state, `A_log`, the decay and the gated-norm weight of Gated DeltaNet.
#[derive(Debug)]
pub enum F32 {}

/// Token ids.
#[derive(Debug)]
pub enum U32 {}

impl sealed::Sealed for Bf16 {}
impl sealed::Sealed for F32 {}
impl sealed::Sealed for U32 {}

impl Dtype for Bf16 {
    type Repr = half::bf16;
    const NAME: &'static str = "BF16";
}

impl Dtype for F32 {
    type Repr = f32;
    const NAME: &'static str = "F32";
}

impl Dtype for U32 {
    type Repr = u32;
    const NAME: &'static str = "U32";
}
