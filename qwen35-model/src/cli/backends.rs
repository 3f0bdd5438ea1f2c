//! From a backend's name to the backend, a type.

use super::arguments::BackendName;
use tt_backend_cpu::kernels::{Plain, Simd};
use tt_backend_cpu::{CpuBackend, CpuKernels};
use tt_dsl::Backend;

/// What is to be done on a backend.
pub(super) trait ForBackend {
    /// What comes of it.
    type Output;

    /// Does it.
    fn run<B: Backend>(self, backend: &B) -> Self::Output;
}

/// Does `task` on the backend of that name, with so many threads or as many as the CPU can run.
pub(super) fn with<F: ForBackend>(name: BackendName, threads: Option<u16>, task: F) -> F::Output {
    match name {
        BackendName::Cpu => task.run(&cpu::<Simd>(threads)),
        BackendName::CpuReference => task.run(&cpu::<Plain>(threads)),
    }
}

fn cpu<K: CpuKernels>(threads: Option<u16>) -> CpuBackend<K> {
    threads.map_or_else(CpuBackend::new, |threads| CpuBackend::with_threads(threads.into()))
}
