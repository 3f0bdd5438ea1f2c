//! What the CPU can do, as types.

/// The CPU has AVX2 and FMA. A value of this type can be had from [`Avx2::detect`] only, so a
/// function that takes one may call what is compiled for these instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Asks the CPU.
    pub(super) fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Some(Self(()));
        }
        None
    }
}
