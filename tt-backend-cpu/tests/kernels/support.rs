//! Values, pools and comparisons.

use half::bf16;
use tt_backend_cpu::kernels::{Kernels, Plain, Simd};
use tt_backend_cpu::pool::Pool;

/// Half the distance of 1 and the next bf16.
pub(crate) const BF16_ROUNDING: f64 = 1.0 / 256.0;
/// Half the distance of 1 and the next f32.
pub(crate) const F32_ROUNDING: f64 = f32::EPSILON as f64 / 2.0;

/// What the values of a test are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Between -1 and 1.
    Finite,
    /// Multiples of 1/4 up to 2: sums of hundreds of products of two are exact in f32, in
    /// whatever order.
    Grid,
    /// As `Grid`, with infinities, NaN, zeros of both signs and subnormals among them.
    Wild,
}

/// A stream of values, the same for the same seed.
pub(crate) struct Values {
    state: u64,
    pub(crate) kind: Kind,
}

impl Values {
    pub(crate) fn new(seed: u64, kind: Kind) -> Self {
        Self { state: seed, kind }
    }

    /// The splitmix64 generator.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn one(&mut self) -> f32 {
        const SPECIAL: [f32; 6] = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 0.0, -0.0, 1e-39];
        let bits = self.next();
        if self.kind == Kind::Wild && bits.is_multiple_of(23) {
            return SPECIAL[(bits >> 32) as usize % SPECIAL.len()];
        }
        let bits = (bits >> 40) as u32;
        match self.kind {
            Kind::Finite => bits as f32 / (1 << 23) as f32 - 1.0,
            Kind::Grid | Kind::Wild => (bits % 17) as f32 / 4.0 - 2.0,
        }
    }

    pub(crate) fn f32s(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.one()).collect()
    }

    pub(crate) fn bf16s(&mut self, count: usize) -> Vec<bf16> {
        (0..count).map(|_| bf16::from_f32(self.one())).collect()
    }

    /// Logarithms of decays: from -2 to 0, or NaN and infinities.
    pub(crate) fn decays(&mut self, count: usize) -> Vec<f32> {
        let mut decays = self.f32s(count);
        decays.iter_mut().for_each(|g| *g = -g.abs());
        decays
    }

    /// Write strengths: from 0 to 1, or NaN and infinities.
    pub(crate) fn strengths(&mut self, count: usize) -> Vec<bf16> {
        let half = |x: &f32| bf16::from_f32(x.abs() / 2.0);
        self.f32s(count).iter().map(half).collect()
    }
}

thread_local! {
    static POOLS: [Pool; 3] = [1, 2, 3].map(Pool::eager);
}

/// Runs `body` on a pool of 1 to 3 threads, which belongs to this test alone.
pub(crate) fn on_pool<R>(threads: usize, body: impl FnOnce(&Pool) -> R) -> R {
    POOLS.with(|pools| body(&pools[threads - 1]))
}

/// Runs `body` with the plain kernels, with each of the fast ones on 1 to 3 threads, and checks
/// that all fast results of the same kernels are the same. Returns the plain result, the
/// portable and the SIMD one.
pub(crate) fn all_ways<R: Same>(body: impl Fn(&dyn Kernels, &Pool) -> R) -> [R; 3] {
    let plain = on_pool(1, |pool| body(&Plain, pool));
    let fast = [Simd::portable(), Simd::new()].map(|kernels| {
        let alone = on_pool(1, |pool| body(&kernels, pool));
        for threads in 2..=3 {
            let shared = on_pool(threads, |pool| body(&kernels, pool));
            shared.assert_same(&alone, "other bits with more threads");
        }
        alone
    });
    let [portable, simd] = fast;
    portable.assert_same(&plain, "the portable kernels are not the plain ones");
    [plain, portable, simd]
}

/// Comparison bit for bit, but for the many encodings of NaN.
pub(crate) trait Same {
    fn assert_same(&self, other: &Self, message: &str);
}

impl Same for f32 {
    #[track_caller]
    fn assert_same(&self, other: &Self, message: &str) {
        let same = self.to_bits() == other.to_bits() || self.is_nan() && other.is_nan();
        assert!(same, "{message}: {self:e} and {other:e}");
    }
}

impl Same for bf16 {
    #[track_caller]
    fn assert_same(&self, other: &Self, message: &str) {
        self.to_f32().assert_same(&other.to_f32(), message);
    }
}

impl Same for usize {
    #[track_caller]
    fn assert_same(&self, other: &Self, message: &str) {
        assert_eq!(self, other, "{message}");
    }
}

impl<T: Same> Same for Vec<T> {
    #[track_caller]
    fn assert_same(&self, other: &Self, message: &str) {
        assert_eq!(self.len(), other.len(), "{message}: lengths");
        for (i, (a, b)) in self.iter().zip(other).enumerate() {
            a.assert_same(b, &format!("{message}, at {i}"));
        }
    }
}

impl<A: Same, B: Same> Same for (A, B) {
    #[track_caller]
    fn assert_same(&self, other: &Self, message: &str) {
        self.0.assert_same(&other.0, message);
        self.1.assert_same(&other.1, message);
    }
}

impl<A: Same, B: Same, C: Same> Same for (A, B, C) {
    #[track_caller]
    fn assert_same(&self, other: &Self, message: &str) {
        self.0.assert_same(&other.0, message);
        self.1.assert_same(&other.1, message);
        self.2.assert_same(&other.2, message);
    }
}

/// Both NaN, both the same infinity, or no further apart than `bound`.
#[track_caller]
pub(crate) fn assert_near(found: f32, expected: f64, bound: f64, what: &str) {
    let found = f64::from(found);
    let near = if expected.is_finite() {
        (found - expected).abs() <= bound
    } else {
        found == expected || found.is_nan() && expected.is_nan()
    };
    assert!(near, "{what}: found {found:e}, expected {expected:e} within {bound:e}");
}

/// The value of a bf16, in f64.
pub(crate) fn wide(x: bf16) -> f64 {
    x.to_f64()
}

/// What rounding `x` to bf16 can change.
pub(crate) fn rounding(x: f64) -> f64 {
    // The second term is half of the smallest subnormal.
    x.abs() * BF16_ROUNDING + 2f64.powi(-134)
}
