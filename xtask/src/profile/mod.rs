//! `cargo xtask profile`: where the time of a prefill and of a decode step goes, and what crosses
//! between host and device.
//!
//! | file | what it holds |
//! |---|---|
//! | [`measure`] | one prefill and some decode steps, first plain, then through [`tt_dsl::traced`] |
//! | [`phase`] | the wall of a prefill or a decode step, divided into its parts |
//! | [`facts`] | a session's counters, a column for each phase |
//! | [`position`] | the residual stream against the golden's, by layer and token |
//! | [`table`] | all of it for the terminal |
//! | [`html`] | all of it as one page with pictures |

pub mod facts;
pub mod html;
pub mod measure;
pub mod phase;
pub mod position;
mod svg;
pub mod table;

use crate::backends::{BackendArguments, Choice, TakeBackend};
use crate::golden::{Golden, GoldenError};
use crate::parity::ParityError;
use crate::parity::layers::Rounding;
use crate::sizes::{self, NotBuilt};
use measure::{BackendProfile, Plan};
use qwen35_model::checkpoint::{Checkpoint, CheckpointError, ConfigJson};
use qwen35_model::known::{ForConfig, Known, UnknownSizes};
use qwen35_model::{Config, Tiny};
use std::any::TypeId;
use std::fs;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;
use tt_backend_tenstorrent::Session;
use tt_dsl::{Backend, Dim};

/// Why nothing could be profiled.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The golden is unusable.
    #[error(transparent)]
    Golden(#[from] GoldenError),
    /// The checkpoint is unusable.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The checkpoint is none of the configurations.
    #[error(transparent)]
    Configuration(#[from] UnknownSizes),
    /// The checkpoint is a configuration that is not compiled in.
    #[error(transparent)]
    NotBuilt(#[from] NotBuilt),
    /// The residual stream could not be compared.
    #[error(transparent)]
    Parity(#[from] ParityError),
    /// A backend could not be opened, loaded or run.
    #[error("{backend}: {reason}")]
    Run {
        /// The backend's label.
        backend: String,
        /// Its own error.
        reason: String,
    },
    /// More positions than the configuration keeps.
    #[error(
        "a prompt of {prompt} tokens, {warm_up} warm-up steps and {steps} measured ones are more than the \
         {capacity} positions that {config} keeps"
    )]
    Context {
        /// Tokens of the prompt.
        prompt: usize,
        /// Steps before the measured ones.
        warm_up: usize,
        /// Measured steps.
        steps: usize,
        /// The `Context` dim's size.
        capacity: usize,
        /// The configuration's name.
        config: &'static str,
    },
    /// The golden has no such prompt.
    #[error("prompt {prompt}: expected one of the golden's {prompts}, counted from 0")]
    Prompt {
        /// The index asked for.
        prompt: usize,
        /// How many there are.
        prompts: usize,
    },
    /// The page could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// What to profile.
#[derive(Debug, Clone, clap::Args)]
#[command(mut_arg("backends", |arg| arg
    .default_values(["cpu", "tt"])
    .help("Which backends to profile")))]
pub struct Arguments {
    #[command(flatten)]
    backends: BackendArguments,
    /// The golden folder: its prompt is read, and its layer outputs are compared with.
    #[arg(long, default_value = "goldens/tiny")]
    golden: PathBuf,
    /// The checkpoint folder; the golden's own weights when not given.
    #[arg(long)]
    checkpoint: Option<PathBuf>,
    /// Which of the golden's prompts to read.
    #[arg(long, default_value_t = 0)]
    prompt: usize,
    /// Decode steps before the measured ones.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    warm_up: u16,
    /// Decode steps to measure.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    steps: u16,
    /// Also write a page with pictures, complete in one file.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

/// Everything that was measured.
pub struct Profile {
    /// The configuration's name.
    pub model: &'static str,
    /// Its layers.
    pub layers: usize,
    /// What was run.
    pub plan: Plan,
    /// Every backend, in the order asked for.
    pub backends: Vec<BackendProfile>,
}

/// Profiles what `arguments` ask for, and writes the page if they do. Returns the tables.
pub fn command(arguments: &Arguments) -> Result<String, ProfileError> {
    let golden = Golden::open(&arguments.golden)?;
    let checkpoint = match (&arguments.checkpoint, &golden.weights) {
        (Some(dir), _) => Checkpoint::open(dir)?,
        (None, Some(synthetic)) => synthetic.make(golden.tokenizer()?)?,
        (None, None) => Checkpoint::open(&arguments.golden)?,
    };
    let prompts = golden.prompts.len();
    let prompt = golden
        .prompts
        .get(arguments.prompt)
        .ok_or(ProfileError::Prompt { prompt: arguments.prompt, prompts })?
        .ids
        .clone();
    let plan = Plan { prompt, warm_up: arguments.warm_up.into(), steps: arguments.steps.into() };
    let known = Known::of(&ConfigJson::of(&checkpoint)?)?;
    let profile = sizes::with(known, RunAll { arguments, checkpoint: &checkpoint, golden: &golden, plan })??;
    if let Some(path) = &arguments.report {
        fs::write(path, html::page(&profile))
            .map_err(|source| ProfileError::Write { path: path.clone(), source })?;
    }
    Ok(table::tables(&profile))
}

/// Profiles every backend that was asked for.
struct RunAll<'a> {
    arguments: &'a Arguments,
    checkpoint: &'a Checkpoint,
    golden: &'a Golden,
    plan: Plan,
}

impl ForConfig for RunAll<'_> {
    type Output = Result<Profile, ProfileError>;

    fn run<C: Config>(self) -> Self::Output {
        let Self { arguments, checkpoint, golden, plan } = self;
        let Plan { ref prompt, warm_up, steps } = plan;
        let (prompt, capacity) = (prompt.len(), C::Context::SIZE);
        if prompt + warm_up + steps > capacity {
            return Err(ProfileError::Context { prompt, warm_up, steps, capacity, config: C::NAME });
        }
        // A golden of other sizes lends its prompt, but has nothing to compare with.
        let golden = Some(golden).filter(|golden| arguments.report.is_some() && position::fits::<C>(golden));
        let choices = arguments.backends.choices(TypeId::of::<C>() == TypeId::of::<Tiny>());
        let one = |choice: &Choice| {
            let (label, plan) = (&choice.label, &plan);
            let against = golden.map(|golden| (golden, choice.rounding()));
            choice
                .give(One::<C> { label, checkpoint, against, plan, of: PhantomData })
                .map_err(|error| ProfileError::Run { backend: label.clone(), reason: error.to_string() })?
        };
        let backends = choices.iter().map(one).collect::<Result<_, _>>()?;
        Ok(Profile { model: C::NAME, layers: C::LAYERS, plan, backends })
    }
}

/// Profiles one backend.
struct One<'a, C> {
    label: &'a str,
    checkpoint: &'a Checkpoint,
    against: Option<(&'a Golden, Rounding)>,
    plan: &'a Plan,
    of: PhantomData<C>,
}

impl<C: Config> TakeBackend for One<'_, C> {
    type Output = Result<BackendProfile, ProfileError>;

    fn run<B: Backend>(self, b: B, session: Option<&Arc<Session>>) -> Self::Output {
        measure::profile::<B, C>(self.label, b, session, self.checkpoint, self.against, self.plan)
    }
}
