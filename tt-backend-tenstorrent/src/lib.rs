//! The Tenstorrent backend: one session, layers recorded and submitted in one crossing, and a device
//! model that computes as the card does.
//!
//! | module | what it holds |
//! |---|---|
//! | [`session`] | [`Session`]: the device, its queue and program cache, opened once |
//! | [`backend`] | [`Tenstorrent`], the [`tt_dsl::Backend`] that records on a session |
//! | [`buffer`] | [`Buffer`]: a device tensor, which shares its session and frees itself |
//! | [`stats`] | [`StagingStats`]: what crossed, counted |
//! | [`error`] | what can fail, typed |
//! | [`numerics`] | the exact kernels as functions over plain slices |
//! | [`ttnn`] | opening a session on tt-metal's own library instead of the device model |
//!
//! # What happens when
//!
//! An op only records. [`Backend::submit`](tt_dsl::Backend::submit) hands the list over in one call:
//! tensors to create, masters to write, commands, tensors to free. A download carries what is still
//! outstanding with it, so that a pass ends in one crossing that also reads. Token ids and their
//! position are the only bytes that a step uploads: embedding, rotary tables, causal masks, caches
//! and states live on the device.
//!
//! The outputs of ops are planned: when one is dropped its place is kept for the next output of the
//! same shape, so that after the first step nothing is allocated. Commands run in the order of their
//! recording, which is what makes the reuse safe: whoever read the old value was recorded before
//! whoever writes the new one.
//!
//! # Arithmetic
//!
//! See [`Numerics`]. In [`Numerics::Tensix`] products of matrices (projections, `q k^T`, the
//! exponentials with `v`) and element-wise products and sums (residuals, gates, rotary embedding, the
//! convolution's taps) are the matrix unit's, bit for bit. Norms, exponentials and everything about
//! the recurrent state run in f32, as on the vector unit, and are packed once.

pub mod backend;
mod bridge;
pub mod buffer;
pub mod error;
pub mod numerics;
mod recorder;
pub mod session;
pub mod stats;
pub mod ttnn;

pub use backend::Tenstorrent;
pub use buffer::Buffer;
pub use error::Error;
pub use session::{Destination, Fidelity, InjectedFault, Numerics, Session, SessionOptions, Staging};
pub use stats::{OpTime, StagingStats};
