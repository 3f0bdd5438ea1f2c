//! From a `config.json` to the configuration, a type, that has its sizes.

use crate::checkpoint::{ConfigDifference, ConfigJson};
use crate::{Config, Qwen35_0_8B, Tiny};
use std::fmt;

/// How many differing keys of a configuration an error names.
const NAMED_KEYS: usize = 3;

/// What is to be done once the configuration is known.
pub trait ForConfig {
    /// What comes of it.
    type Output;

    /// Does it.
    fn run<C: Config>(self) -> Self::Output;
}

/// The configurations that this program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// [`Tiny`].
    Tiny,
    /// [`Qwen35_0_8B`].
    Qwen35_0_8B,
}

impl Known {
    const ALL: [Self; 2] = [Self::Tiny, Self::Qwen35_0_8B];

    /// Does `task` for this configuration.
    pub fn with<F: ForConfig>(self, task: F) -> F::Output {
        match self {
            Self::Tiny => task.run::<Tiny>(),
            Self::Qwen35_0_8B => task.run::<Qwen35_0_8B>(),
        }
    }

    /// The configuration with the sizes of a `config.json`. Its other keys may differ.
    pub fn of(json: &ConfigJson) -> Result<Self, UnknownSizes> {
        let fits: Vec<Fit> = Self::ALL.into_iter().map(|known| known.with(FitOf(known, json))).collect();
        match fits.iter().find(|fit| fit.sizes.is_empty()) {
            Some(fit) => Ok(fit.known),
            None => Err(UnknownSizes { place: json.place().to_owned(), fits }),
        }
    }
}

/// In which sizes a `config.json` differs from a configuration.
#[derive(Debug)]
struct Fit {
    known: Known,
    name: &'static str,
    sizes: Vec<ConfigDifference>,
}

struct FitOf<'a>(Known, &'a ConfigJson);

impl ForConfig for FitOf<'_> {
    type Output = Fit;

    fn run<C: Config>(self) -> Fit {
        let Self(known, json) = self;
        let sizes = json.differences::<C>().into_iter().filter(|difference| difference.is_size).collect();
        Fit { known, name: C::NAME, sizes }
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<String> = self.sizes.iter().take(NAMED_KEYS).map(ToString::to_string).collect();
        write!(f, "{} ({}", self.name, named.join("; "))?;
        match self.sizes.len() - named.len() {
            0 => f.write_str(")"),
            others => write!(f, "; and {others} more)"),
        }
    }
}

/// No configuration has the sizes of a `config.json`.
#[derive(Debug)]
pub struct UnknownSizes {
    place: String,
    /// One for each configuration.
    fits: Vec<Fit>,
}

impl UnknownSizes {
    /// The configuration with the fewest differing sizes.
    pub fn nearest(&self) -> Option<Known> {
        self.fits.iter().min_by_key(|fit| fit.sizes.len()).map(|fit| fit.known)
    }
}

impl fmt::Display for UnknownSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits: Vec<String> = self.fits.iter().map(ToString::to_string).collect();
        write!(
            f,
            "{}: no configuration has its sizes: it differs from {}",
            self.place,
            fits.join(", and from ")
        )
    }
}

impl std::error::Error for UnknownSizes {}
