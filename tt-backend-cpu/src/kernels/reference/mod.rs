//! The plain kernels: each the formula of the written reference, line by line.
//!
//! They define what the operations compute. They are slow, on one thread, and free of
//! anything a reader would have to see through: a sum runs from the first index to the last.

mod add;
mod argmax;
mod attention;
mod conv;
mod delta_chunk;
mod delta_step;
mod embed;
mod gated_norm;
mod gdn_gates;
mod linear;
mod rms_norm;
mod rope;
mod scalar;
mod sigmoid_gate;
mod swiglu;

pub use add::add;
pub use argmax::argmax;
pub use attention::attention;
pub use conv::causal_conv;
pub use delta_chunk::{CHUNK, delta_chunk};
pub use delta_step::delta_step;
pub use embed::embed;
pub use gated_norm::gated_norm;
pub use gdn_gates::gdn_gates;
pub use linear::{linear, linear_f32};
pub use rms_norm::rms_norm;
pub use rope::{rope, rope_tables};
pub use sigmoid_gate::sigmoid_gate;
pub use swiglu::swiglu;

// Parts of the kernels that the SIMD kernels share among threads, or begin and end with.
pub(super) use attention::{append, attend, check as check_attention};
#[cfg(target_arch = "x86_64")]
pub(super) use conv::past_row;
pub(super) use conv::{check as check_conv, conv_channels, shift_state};
pub(super) use delta_chunk::chunk_head;
pub(super) use delta_step::{query_scale, step_head, unit};
#[cfg(target_arch = "x86_64")]
pub(super) use scalar::{rsqrt, sigmoid, silu};
