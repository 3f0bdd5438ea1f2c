//! From a `config.json` to the configuration, a type, that has its sizes.

use crate::Config;
use crate::checkpoint::{ConfigDifference, ConfigJson};
use std::fmt;
use std::str::FromStr;

/// How many differing keys of a configuration an error names.
const NAMED_KEYS: usize = 3;

/// What is to be done once the configuration is known.
pub trait ForConfig {
    /// What comes of it.
    type Output;

    /// Does it.
    fn run<C: Config>(self) -> Self::Output;
}

/// Declares [`Known`]: a variant for each configuration, and the word that names it.
macro_rules! known {
    ($($(#[$when:meta])* $config:ident = $word:literal,)*) => {
        /// The configurations that this program has; the larger ones with the feature `all-sizes`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Known {
            $(
                $(#[$when])*
                #[doc = concat!("[`", stringify!($config), "`](crate::", stringify!($config), "), `", $word, "`.")]
                $config,
            )*
        }

        impl Known {
            /// All of them, the smallest first.
            pub const ALL: &[Self] = &[$($(#[$when])* Self::$config,)*];

            /// The word that names it on a command line.
            pub fn word(self) -> &'static str {
                match self {
                    $($(#[$when])* Self::$config => $word,)*
                }
            }

            /// Does `task` for this configuration.
            pub fn with<F: ForConfig>(self, task: F) -> F::Output {
                match self {
                    $($(#[$when])* Self::$config => task.run::<crate::$config>(),)*
                }
            }
        }
    };
}

known! {
    Tiny = "tiny",
    Qwen35_0_8B = "0.8b",
    #[cfg(feature = "all-sizes")]
    Qwen35_2B = "2b",
    #[cfg(feature = "all-sizes")]
    Qwen35_4B = "4b",
    #[cfg(feature = "all-sizes")]
    Qwen35_9B = "9b",
    #[cfg(feature = "all-sizes")]
    Qwen35_27B = "27b",
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that names no configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord(String);

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = Known::ALL.iter().map(|known| known.word()).collect();
        write!(f, "expected one of {}, found `{}`", words.join(", "), self.0)
    }
}

impl std::error::Error for UnknownWord {}

impl FromStr for Known {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let found = Self::ALL.iter().find(|known| known.word().eq_ignore_ascii_case(word));
        found.copied().ok_or_else(|| UnknownWord(word.to_owned()))
    }
}

impl Known {
    /// The configuration with the sizes of a `config.json`. Its other keys may differ.
    pub fn of(json: &ConfigJson) -> Result<Self, UnknownSizes> {
        let fits: Vec<Fit> = Self::ALL.iter().map(|&known| known.with(FitOf(known, json))).collect();
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
