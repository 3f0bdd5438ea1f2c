//! Tests of the kernels through the [`Kernels`](tt_backend_cpu::kernels::Kernels) trait.
//!
//! - `formulas`: the plain kernels against the formulas in f64, and against values made by hand
//! - `plain_and_simd`: the SIMD kernels against the plain ones
//! - `invariance`: threads, rows, steps and padding make no difference

mod formulas;
mod invariance;
mod plain_and_simd;
mod support;
