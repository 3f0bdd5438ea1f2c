//! From a backend's name to the backend, a type.

use super::Outcome;
use super::arguments::{BackendName, ComputeArguments, DriverName, NumericsName};
use qwen35_model::{Config, Tiny};
use std::any::TypeId;
use std::sync::Arc;
use tt_backend_cpu::kernels::{Plain, Simd};
use tt_backend_cpu::{CpuBackend, CpuKernels};
use tt_backend_tenstorrent::ttnn::{self, TtnnOptions};
use tt_backend_tenstorrent::{Numerics, Session, SessionOptions, StagingStats, Tenstorrent};
use tt_dsl::Backend;

/// What is to be done on a backend.
pub(super) trait ForBackend {
    /// Does it.
    fn run<B: Backend>(self, backend: &B) -> Outcome;
}

/// Does `task` for a model of configuration `C` on the backend that was asked for.
pub(super) fn with<C: Config>(arguments: &ComputeArguments, task: impl ForBackend) -> Outcome {
    let threads = arguments.threads;
    match arguments.backend {
        BackendName::Cpu => task.run(&cpu::<Simd>(threads)),
        BackendName::CpuReference => task.run(&cpu::<Plain>(threads)),
        BackendName::Tt => {
            let session = match arguments.driver {
                DriverName::Model => Session::open(session_options::<C>(arguments))?,
                DriverName::Ttnn => ttnn::open(&TtnnOptions::default())?,
            };
            let outcome = task.run(&Tenstorrent::new(Arc::clone(&session)))?;
            if arguments.stats {
                print_crossings(&session.stats());
            }
            Ok(outcome)
        }
    }
}

fn cpu<K: CpuKernels>(threads: Option<u16>) -> CpuBackend<K> {
    threads.map_or_else(CpuBackend::new, |threads| CpuBackend::with_threads(threads.into()))
}

/// The card's own arithmetic costs a multiple of the time, which a small model can afford.
fn session_options<C: Config>(arguments: &ComputeArguments) -> SessionOptions {
    let is_tiny = TypeId::of::<C>() == TypeId::of::<Tiny>();
    let default = if is_tiny { NumericsName::Tensix } else { NumericsName::Fast };
    let numerics = match arguments.numerics.unwrap_or(default) {
        NumericsName::Tensix => Numerics::Tensix,
        NumericsName::Fast => Numerics::Fast,
    };
    SessionOptions { numerics, threads: arguments.threads.map_or(0, u32::from), ..SessionOptions::default() }
}

/// What crossed since the session was opened, load included.
fn print_crossings(stats: &StagingStats) {
    eprintln!(
        "to device   {:6} writes  {:12} bytes in {} staging calls; {} bytes through f32",
        stats.h2d_writes, stats.h2d_bytes, stats.staging_calls, stats.f32_staged_bytes
    );
    eprintln!("from device {:6} reads   {:12} bytes", stats.d2h_reads, stats.d2h_bytes);
    eprintln!(
        "device      {:6} submits {:12} commands; program cache {} hits, {} misses; {} handle look-ups",
        stats.submits,
        stats.commands,
        stats.program_cache_hits,
        stats.program_cache_misses,
        stats.handle_resolutions
    );
}
