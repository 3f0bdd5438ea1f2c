//! The fast kernels.
//!
//! Where most of the time goes, there are AVX2 kernels (`avx2/`). All other operations, and
//! all operations on a CPU without AVX2, are the plain kernels with their rows, columns or
//! heads shared among the threads of the pool (`pooled`).

#[cfg(target_arch = "x86_64")]
mod avx2;
mod isa;
mod pooled;
mod split;
#[cfg(target_arch = "x86_64")]
mod tables;

use half::bf16;

use super::{
    AttentionCache, AttentionDims, AttentionInputs, ConvDims, DeltaDims, DeltaInputs, Kernels, LinearDims,
    RopeDims, Rows, Span,
};
use crate::pool::Pool;
use isa::Avx2;

/// The fast kernels, for the instructions of the CPU they were made on.
#[derive(Clone, Copy, Debug)]
pub struct Simd {
    avx2: Option<Avx2>,
}

impl Simd {
    /// Looks once at what the CPU can do.
    #[must_use]
    pub fn new() -> Self {
        Self { avx2: Avx2::detect() }
    }

    /// Uses no special instructions: what [`new`](Self::new) gives on a CPU that has none.
    #[must_use]
    pub fn portable() -> Self {
        Self { avx2: None }
    }

    /// The name of the instructions in use.
    #[must_use]
    pub fn isa(&self) -> &'static str {
        match self.avx2 {
            Some(_) => "avx2+fma",
            None => "portable",
        }
    }
}

impl Default for Simd {
    fn default() -> Self {
        Self::new()
    }
}

impl Kernels for Simd {
    fn linear(&self, pool: &Pool, dims: LinearDims, x: &[bf16], w: &[bf16], out: &mut [bf16]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(isa) = self.avx2 {
            return avx2::linear(isa, pool, dims, x, w, out);
        }
        pooled::linear(pool, dims, x, w, out, super::reference::linear);
    }

    fn linear_f32(&self, pool: &Pool, dims: LinearDims, x: &[bf16], w: &[bf16], out: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(isa) = self.avx2 {
            return avx2::linear(isa, pool, dims, x, w, out);
        }
        pooled::linear(pool, dims, x, w, out, super::reference::linear_f32);
    }

    fn rms_norm(&self, pool: &Pool, x: Rows<'_>, w: &[bf16], eps: f32, out: &mut [bf16]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(isa) = self.avx2 {
            return avx2::rms_norm(isa, pool, x, w, eps, out);
        }
        pooled::rms_norm(pool, x, w, eps, out);
    }

    fn add(&self, pool: &Pool, a: &[bf16], b: &[bf16], out: &mut [bf16]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(isa) = self.avx2 {
            return avx2::add(isa, pool, a, b, out);
        }
        pooled::add(pool, a, b, out);
    }

    fn swiglu(&self, pool: &Pool, gate: &[bf16], up: &[bf16], out: &mut [bf16]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(isa) = self.avx2 {
            return avx2::swiglu(isa, pool, gate, up, out);
        }
        pooled::swiglu(pool, gate, up, out);
    }

    fn sigmoid_gate(&self, pool: &Pool, x: &[bf16], gate: Rows<'_>, out: &mut [bf16]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(isa) = self.avx2 {
            return avx2::sigmoid_gate(isa, pool, x, gate, out);
        }
        pooled::sigmoid_gate(pool, x, gate, out);
    }

    fn rope(&self, pool: &Pool, dims: RopeDims, cos: &[bf16], sin: &[bf16], x: &mut [bf16]) {
        pooled::rope(pool, dims, cos, sin, x);
    }

    fn attention(
        &self,
        pool: &Pool,
        dims: AttentionDims,
        span: Span,
        inputs: AttentionInputs<'_>,
        cache: AttentionCache<'_>,
        out: &mut [bf16],
    ) {
        #[cfg(target_arch = "x86_64")]
        if let Some(isa) = self.avx2 {
            return avx2::attention(isa, pool, dims, span, inputs, cache, out);
        }
        pooled::attention(pool, dims, span, inputs, cache, out);
    }

    fn causal_conv(
        &self,
        pool: &Pool,
        dims: ConvDims,
        x: &[bf16],
        w: &[bf16],
        state: &mut [bf16],
        out: &mut [bf16],
    ) {
        #[cfg(target_arch = "x86_64")]
        if let Some(isa) = self.avx2 {
            return avx2::causal_conv(isa, pool, dims, x, w, state, out);
        }
        pooled::causal_conv(pool, dims, x, w, state, out);
    }

    fn delta_step(
        &self,
        pool: &Pool,
        dims: DeltaDims,
        inputs: DeltaInputs<'_>,
        state: &mut [f32],
        out: &mut [bf16],
    ) {
        #[cfg(target_arch = "x86_64")]
        if let Some(isa) = self.avx2 {
            return avx2::delta_step(isa, pool, dims, inputs, state, out);
        }
        pooled::delta_step(pool, dims, inputs, state, out);
    }

    fn delta_chunk(
        &self,
        pool: &Pool,
        dims: DeltaDims,
        rows: usize,
        inputs: DeltaInputs<'_>,
        state: &mut [f32],
        out: &mut [bf16],
    ) {
        #[cfg(target_arch = "x86_64")]
        if let Some(isa) = self.avx2 {
            return avx2::delta_chunk(isa, pool, dims, rows, inputs, state, out);
        }
        pooled::delta_chunk(pool, dims, rows, inputs, state, out);
    }

    fn gated_norm(&self, pool: &Pool, x: &[bf16], z: &[bf16], w: &[f32], eps: f32, out: &mut [bf16]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(isa) = self.avx2 {
            return avx2::gated_norm(isa, pool, x, z, w, eps, out);
        }
        pooled::gated_norm(pool, x, z, w, eps, out);
    }

    fn argmax(&self, logits: &[f32]) -> usize {
        #[cfg(target_arch = "x86_64")]
        if let Some(isa) = self.avx2 {
            return avx2::argmax(isa, logits);
        }
        super::reference::argmax(logits)
    }
}
