//! Kernels for x86-64 CPUs with AVX2 and FMA.
//!
//! Each entry point takes an [`Avx2`](super::isa::Avx2), the proof that the CPU has these
//! instructions, and checks the lengths of its slices. Below, functions marked with
//! `#[target_feature]` do arithmetic in safe code; `unsafe` is left for loads and stores.

mod argmax;
mod attention;
mod conv;
mod delta_chunk;
mod delta_step;
mod elementwise;
mod exp;
mod gemm;
mod lanes;
mod linear;
mod matrix;
mod norms;
mod pack;
mod scratch;
mod tile;

pub(super) use argmax::argmax;
pub(super) use attention::attention;
pub(super) use conv::causal_conv;
pub(super) use delta_chunk::delta_chunk;
pub(super) use delta_step::delta_step;
pub(super) use elementwise::{add, sigmoid_gate, swiglu};
pub(super) use linear::linear;
pub(super) use norms::{gated_norm, rms_norm};
