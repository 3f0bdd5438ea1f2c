//! The CPU backend.
//!
//! Layers, of which the lower knows nothing of the upper:
//!
//! - [`backend`] and [`buffer`]: the operations of [`tt_dsl::Backend`] on typed tensors. They
//!   take slices out of buffers and sizes out of types, and nothing more.
//! - [`kernels`]: one function an operation, on plain slices. The [`Plain`](kernels::Plain)
//!   kernels are the formulas written down; the [`Simd`](kernels::Simd) kernels do the same
//!   work fast, and are tested against the plain ones over random shapes and values.
//! - [`pool`]: the threads that a kernel shares its work among. Work is only ever divided
//!   between outputs that do not depend on each other, so a result has the same bits for
//!   every number of threads.
//! - [`limits`]: what the machine can do, to hold a kernel's speed against.

pub mod backend;
pub mod buffer;
pub mod kernels;
pub mod limits;
mod memory;
pub mod pool;
mod recycle;

pub use backend::{Cpu, CpuBackend, CpuError, CpuKernels, CpuReference};
pub use buffer::Buffer;
