//! Values for tests, the same in every run.

use half::bf16;
use proptest::test_runner::Config;

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    /// A generator of its own for each test.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A normally distributed value.
    pub(crate) fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * (1.0 - u).ln()).sqrt() * (core::f64::consts::TAU * v).cos()
    }

    /// Normally distributed bf16 of the given scale.
    pub(crate) fn normals(&mut self, count: usize, scale: f64) -> Vec<bf16> {
        (0..count).map(|_| bf16::from_f64(self.normal() * scale)).collect()
    }
}

/// So many cases; a failing one is printed and not filed.
pub(crate) fn cases_of(cases: u32) -> Config {
    Config { cases, failure_persistence: None, ..Config::default() }
}
