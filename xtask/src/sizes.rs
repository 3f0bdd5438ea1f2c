//! The configurations that the commands which run a model are compiled for.
//!
//! Each command has a copy of the model for every configuration and backend. Tiny and the 0.8B are
//! those with goldens; the others come with the feature `all-sizes`.

use qwen35_model::known::{ForConfig, Known};
use qwen35_model::{Qwen35_0_8B, Tiny};

/// A configuration that these commands were not compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "xtask was built for tiny and 0.8b alone, and the checkpoint is {0}: build it with `--features all-sizes`"
)]
pub struct NotBuilt(pub Known);

/// Does `task` for `known`.
pub fn with<F: ForConfig>(known: Known, task: F) -> Result<F::Output, NotBuilt> {
    match known {
        Known::Tiny => Ok(task.run::<Tiny>()),
        Known::Qwen35_0_8B => Ok(task.run::<Qwen35_0_8B>()),
        #[cfg(feature = "all-sizes")]
        other => Ok(other.with(task)),
        #[cfg(not(feature = "all-sizes"))]
        other => Err(NotBuilt(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qwen35_model::Config;

    struct Name;

    impl ForConfig for Name {
        type Output = &'static str;

        fn run<C: Config>(self) -> &'static str {
            C::NAME
        }
    }

    #[test]
    fn the_goldens_have_their_configurations() {
        assert_eq!(with(Known::Tiny, Name), Ok("Tiny"));
        assert_eq!(with(Known::Qwen35_0_8B, Name), Ok("Qwen3.5-0.8B"));
    }
}
