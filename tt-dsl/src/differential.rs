//! A differential test: two closures that ought to compute the same from the same inputs.
//!
//! [`differential!`](crate::differential!) makes a test of them. Each closure is given a [`Trial`],
//! which draws the inputs, knows the backend it was put [`on`](Trial::on), and reads the outputs
//! back. So an op or a layer is written once and run on two backends, or on one backend and as
//! plain Rust that says what is meant:
//!
//! ```
//! use tt_dsl::differential::{Trial, check};
//! use tt_dsl::parity::Tolerance;
//! use tt_dsl::{Backend, Bf16, dim, differential};
//!
//! dim! { Rows = 3; Wide = 64; }
//!
//! fn sum<B: Backend>(mut t: Trial<B>) -> Trial<B> {
//!     let (x, y) = (t.normal::<(Rows, Wide), Bf16>(1.0), t.extreme::<(Rows, Wide), Bf16>(1.0));
//!     let b = t.backend();
//!     let sum = b.add(&b.stage(&x), &b.stage(&y));
//!     t.output("sum", &sum)
//! }
//!
//! fn meant(mut t: Trial) -> Trial {
//!     let (x, y) = (t.normal::<(Rows, Wide), Bf16>(1.0), t.extreme::<(Rows, Wide), Bf16>(1.0));
//!     let sum: Vec<_> = x.values().iter().zip(y.values().iter()).map(|(x, y)| x + y).collect();
//!     t.output_values("sum", &sum)
//! }
//!
//! // As a value, where no test is wanted.
//! fn is_right<B: Backend>(open: fn() -> B) -> bool {
//!     check(&Tolerance::exact(), meant, |t| sum(t.on(open()))).is_ok()
//! }
//!
//! // As a test, within `Tolerance::default()` or one that is given last.
//! differential!(sums_agree, |t| meant(t), |t| meant(t), Tolerance::exact());
//! ```

use crate::backend::Backend;
use crate::dtype::{Dtype, U32};
use crate::host::Master;
use crate::parity::{CompareError, Comparison, Tolerance, Violations};
use crate::shape::Shape;
use crate::tensor::Tensor;
use num_traits::{Float, ToPrimitive};

/// Seeds of the trials that a test makes.
const SEEDS: u64 = 4;

/// What breaks kernels: signed zeros, values that are denormal or become so, large values. Not the
/// largest: their products would overflow on either side, and no tolerance accepts that.
const EXTREMES: [f64; 8] = [0.0, -0.0, 1e-40, -1e-39, 1e-20, 3e4, -3e4, 1.0];

/// One run of one of the closures: what it draws, the backend it is on, what came out.
///
/// Both closures of a test draw the same values if they draw in the same order.
pub struct Trial<B = ()> {
    backend: B,
    /// SplitMix64's state: a generator of a few lines is the same on every platform and in every
    /// version, and its quality is more than test inputs need.
    random: u64,
    outputs: Vec<(&'static str, Result<Vec<f32>, String>)>,
}

impl Trial {
    // Not inlined: rustc 1.95 takes two equal values that are moved into calls for one, and the second
    // call would get what the first has left of it (rust-lang/rust#155241).
    #[inline(never)]
    fn new(seed: u64) -> Self {
        Self { backend: (), random: seed, outputs: Vec::new() }
    }
}

impl<B> Trial<B> {
    /// The same trial on `backend`.
    pub fn on<C: Backend>(self, backend: C) -> Trial<C> {
        Trial { backend, random: self.random, outputs: self.outputs }
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Normally distributed values of standard deviation `scale`.
    pub fn normal<S: Shape, E: Dtype<Repr: Float>>(&mut self, scale: f64) -> Master<S, E> {
        self.master(|t| cast(scale * t.bell()))
    }

    /// The same, but every eighth value or so is an extreme: a zero, a denormal, a large value.
    pub fn extreme<S: Shape, E: Dtype<Repr: Float>>(&mut self, scale: f64) -> Master<S, E> {
        self.master(|t| match (t.next(), scale * t.bell()) {
            (odd, _) if odd % 8 == 0 => cast(EXTREMES[(odd / 8 % 8) as usize]),
            (_, value) => cast(value),
        })
    }

    /// Ids below `end`.
    pub fn below<S: Shape>(&mut self, end: u32) -> Master<S, U32> {
        self.master(|t| (t.next() % u64::from(end.max(1))) as u32)
    }

    /// Adds an output that was computed without a backend.
    #[must_use]
    pub fn output_values(mut self, name: &'static str, values: &[impl ToPrimitive]) -> Self {
        self.outputs.push((name, Ok(values.iter().map(|v| v.to_f32().unwrap_or(f32::NAN)).collect())));
        self
    }

    fn master<S: Shape, E: Dtype>(&mut self, mut draw: impl FnMut(&mut Self) -> E::Repr) -> Master<S, E> {
        let values = (0..S::NUMEL).map(|_| draw(self)).collect();
        Master::from_vec(values).expect("as many values were drawn as the shape has elements")
    }

    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Normally distributed, by the Box-Muller transform.
    fn bell(&mut self) -> f64 {
        let (u, v) = ((self.next() >> 11) as f64 / 2f64.powi(53), self.next() as f64 / 2f64.powi(64));
        (-2.0 * (1.0 - u).ln()).sqrt() * (core::f64::consts::TAU * v).cos()
    }
}

impl<B: Backend> Trial<B> {
    /// Reads an output back. If that fails, the test says why.
    #[must_use]
    pub fn output<S: Shape, E: Dtype>(mut self, name: &'static str, tensor: &Tensor<B, S, E>) -> Self {
        match self.backend.download(tensor) {
            Ok(master) => self.output_values(name, &master.values()),
            Err(error) => {
                self.outputs.push((name, Err(error.to_string())));
                self
            }
        }
    }
}

/// Every float type here takes every number; one that did not would hold a NaN.
fn cast<R: Float>(value: f64) -> R {
    num_traits::cast(value).unwrap_or_else(R::nan)
}

/// How two closures disagree.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Difference {
    /// One drew more values than the other: they did not have the same inputs.
    #[error("seed {0}: the closures drew different numbers of inputs")]
    Inputs(u64),
    /// Not the same outputs in the same order, or none at all.
    #[error("expected outputs as of the first closure, {reference:?}, found {ours:?}; none is too few")]
    Outputs {
        /// Names of the first closure's.
        reference: Vec<&'static str>,
        /// Names of the second's.
        ours: Vec<&'static str>,
    },
    /// An output could not be read back.
    #[error("output `{0}` could not be read: {1}")]
    Unread(&'static str, String),
    /// An output's sizes do not allow a comparison.
    #[error("output `{0}`: {1}")]
    Sizes(&'static str, #[source] CompareError),
    /// An output is further from the first closure's than it may be.
    #[error("output `{output}` at seed {seed}: {violations}\n    {found}")]
    Beyond {
        /// The output.
        output: &'static str,
        /// The trial's seed.
        seed: u64,
        /// How far it is.
        found: Comparison,
        /// The bounds that do not hold.
        violations: Violations,
    },
}

/// Runs both closures over a few seeds and compares each output of the second with the first's.
pub fn check<R, S>(
    tolerance: &Tolerance,
    reference: impl Fn(Trial) -> Trial<R>,
    subject: impl Fn(Trial) -> Trial<S>,
) -> Result<(), Difference> {
    for seed in 0..SEEDS {
        let (reference, ours) = (reference(Trial::new(seed)), subject(Trial::new(seed)));
        if reference.random != ours.random {
            return Err(Difference::Inputs(seed));
        }
        let (expected, found) = (reference.outputs, ours.outputs);
        if expected.is_empty() || !expected.iter().map(|o| o.0).eq(found.iter().map(|o| o.0)) {
            let names = |of: Vec<(&'static str, _)>| of.into_iter().map(|(name, _)| name).collect();
            return Err(Difference::Outputs { reference: names(expected), ours: names(found) });
        }
        for ((output, expected), (_, found)) in expected.into_iter().zip(found) {
            let unread = |reason| Difference::Unread(output, reason);
            let (expected, found) = (expected.map_err(unread)?, found.map_err(unread)?);
            let found = Comparison::of(&expected, &found).map_err(|e| Difference::Sizes(output, e))?;
            let beyond = |violations| Difference::Beyond { output, seed, found, violations };
            tolerance.check(&found).map_err(beyond)?;
        }
    }
    Ok(())
}

/// Makes a test of two closures, see [`mod@differential`](mod@crate::differential). Attributes
/// before the name are the test's.
#[macro_export]
macro_rules! differential {
    ($(#[$meta:meta])* $name:ident, $reference:expr, $subject:expr $(,)?) => {
        $crate::differential!(
            $(#[$meta])* $name, $reference, $subject, $crate::parity::Tolerance::default());
    };
    ($(#[$meta:meta])* $name:ident, $reference:expr, $subject:expr, $tolerance:expr $(,)?) => {
        #[test]
        $(#[$meta])*
        fn $name() {
            if let Err(difference) = $crate::differential::check(&$tolerance, $reference, $subject) {
                panic!("{}: {difference}", stringify!($name));
            }
        }
    };
}
