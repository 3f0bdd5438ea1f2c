//! What a session did, counted where it happens.

use crate::bridge::ffi;
use core::ops::Sub;

/// Counters of a session since it was opened. Their difference over a step, `after - before`, is what
/// the step cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StagingStats {
    /// Look-ups of the device, its queue or its program cache: three when the session is opened, and
    /// none after that.
    pub handle_resolutions: u64,
    /// Crossings that carried host masters, one for all that were recorded.
    pub staging_calls: u64,
    /// Tensors written from the host, one a master and one a step's tokens.
    pub h2d_writes: u64,
    /// Bytes of them.
    pub h2d_bytes: u64,
    /// Tensors read back.
    pub d2h_reads: u64,
    /// Bytes of them.
    pub d2h_bytes: u64,
    /// Bytes of bf16 tensors that went through a float vector on their way to the device.
    pub f32_staged_bytes: u64,
    /// Lists submitted by [`submit`](tt_dsl::Backend::submit). One that rode with a read is not
    /// among them: it is the read's crossing.
    pub submits: u64,
    /// Commands run.
    pub commands: u64,
    /// Tensors created.
    pub allocations: u64,
    /// Commands whose program was there.
    pub program_cache_hits: u64,
    /// Commands whose program had to be made.
    pub program_cache_misses: u64,
    /// Nanoseconds in which the device ran commands.
    pub device_nanos: u64,
}

impl From<ffi::Counters> for StagingStats {
    fn from(counters: ffi::Counters) -> Self {
        Self {
            handle_resolutions: counters.handle_resolutions,
            staging_calls: counters.staging_calls,
            h2d_writes: counters.h2d_writes,
            h2d_bytes: counters.h2d_bytes,
            d2h_reads: counters.d2h_reads,
            d2h_bytes: counters.d2h_bytes,
            f32_staged_bytes: counters.f32_staged_bytes,
            submits: counters.submits,
            commands: counters.commands,
            allocations: counters.allocations,
            program_cache_hits: counters.cache_hits,
            program_cache_misses: counters.cache_misses,
            device_nanos: counters.device_nanos,
        }
    }
}

impl Sub for StagingStats {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            handle_resolutions: self.handle_resolutions - before.handle_resolutions,
            staging_calls: self.staging_calls - before.staging_calls,
            h2d_writes: self.h2d_writes - before.h2d_writes,
            h2d_bytes: self.h2d_bytes - before.h2d_bytes,
            d2h_reads: self.d2h_reads - before.d2h_reads,
            d2h_bytes: self.d2h_bytes - before.d2h_bytes,
            f32_staged_bytes: self.f32_staged_bytes - before.f32_staged_bytes,
            submits: self.submits - before.submits,
            commands: self.commands - before.commands,
            allocations: self.allocations - before.allocations,
            program_cache_hits: self.program_cache_hits - before.program_cache_hits,
            program_cache_misses: self.program_cache_misses - before.program_cache_misses,
            device_nanos: self.device_nanos - before.device_nanos,
        }
    }
}

/// The time that a session's device spent in one kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpTime {
    /// The operation's name.
    pub op: &'static str,
    /// How often it ran.
    pub calls: u64,
    /// Nanoseconds in all.
    pub nanos: u64,
}

impl From<&ffi::OpTime> for OpTime {
    fn from(time: &ffi::OpTime) -> Self {
        Self { op: name(time.op), calls: time.calls, nanos: time.nanos }
    }
}

/// The name of an operation, as the trait's method has it.
pub(crate) fn name(op: ffi::Op) -> &'static str {
    match op {
        ffi::Op::Embed => "embed",
        ffi::Op::Linear => "linear",
        ffi::Op::LmHead => "lm_head",
        ffi::Op::Add => "add",
        ffi::Op::RmsNorm => "rms_norm",
        ffi::Op::Swiglu => "swiglu",
        ffi::Op::Rotary => "rotary",
        ffi::Op::Rope => "rope",
        ffi::Op::Attention => "attention",
        ffi::Op::SigmoidGate => "sigmoid_gate",
        ffi::Op::CausalConv => "causal_conv",
        ffi::Op::GdnGates => "gdn_gates",
        ffi::Op::GatedDelta => "gated_delta",
        ffi::Op::GatedNorm => "gated_norm",
        ffi::Op::LastRow => "last_row",
        ffi::Op::Argmax => "argmax",
        _ => "unknown",
    }
}
