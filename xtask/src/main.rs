//! The project's own commands: `cargo xtask parity`, `cargo xtask goldens`, `cargo xtask profile`,
//! `cargo xtask sanitize`.

use clap::{Parser, Subcommand};
use qwen35_model::checkpoint::{Checkpoint, ConfigJson};
use qwen35_model::known::{ForConfig, Known};
use qwen35_model::{Config, Tiny};
use std::any::TypeId;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tt_backend_tenstorrent::Session;
use tt_dsl::Backend;
use xtask::backends::{BackendArguments, Choice, OnBackend};
use xtask::golden::Golden;
use xtask::parity::report::{self, BackendReport, Limits};
use xtask::parity::{ParityError, run};
use xtask::profile;
use xtask::sanitize;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own commands")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the gate: our tokens, states and logits against an independent reference's.
    Parity(ParityArguments),
    /// Where the time of a prefill and of a decode step goes, and what crosses to the device.
    Profile(profile::Arguments),
    /// Run the Tenstorrent backend's tests with its C++ under AddressSanitizer and
    /// UndefinedBehaviorSanitizer.
    Sanitize(sanitize::Arguments),
    /// Check the golden's files against the checksums in its manifest.
    Goldens {
        /// The golden folder.
        #[arg(long, default_value = "goldens/tiny")]
        golden: PathBuf,
    },
}

#[derive(clap::Args)]
struct ParityArguments {
    #[command(flatten)]
    backends: BackendArguments,
    /// The golden folder.
    #[arg(long, default_value = "goldens/tiny")]
    golden: PathBuf,
    /// The checkpoint folder; the golden's own when not given.
    #[arg(long)]
    checkpoint: Option<PathBuf>,
    /// Print every layer's figures.
    #[arg(long)]
    layers: bool,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
    /// Excuse no cell as a near tie.
    #[arg(long)]
    strict: bool,
    /// The largest quality ratio that passes.
    #[arg(long, default_value_t = 1.0)]
    max_quality_ratio: f64,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Parity(arguments) => parity(&arguments),
        Command::Profile(arguments) => profile(&arguments),
        Command::Sanitize(arguments) => {
            sanitize::command(&arguments).map_err(|error| ParityError::Run(error.to_string()))
        }
        Command::Goldens { golden } => goldens(golden),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn goldens(dir: PathBuf) -> Result<bool, ParityError> {
    let golden = Golden::open(&dir)?;
    golden.check_files(&dir)?;
    println!("{}: every file is the one in the manifest", dir.display());
    Ok(true)
}

fn profile(arguments: &profile::Arguments) -> Result<bool, ParityError> {
    let text = profile::command(arguments).map_err(|error| ParityError::Run(error.to_string()))?;
    print!("{text}");
    Ok(true)
}

/// Whether every backend passed.
fn parity(arguments: &ParityArguments) -> Result<bool, ParityError> {
    let golden = Golden::open(&arguments.golden)?;
    let dir = arguments.checkpoint.as_ref().unwrap_or(&arguments.golden);
    if arguments.checkpoint.is_none() {
        golden.check_files(dir)?;
    }
    let checkpoint = Checkpoint::open(dir)?;
    let known = Known::of(&ConfigJson::of(&checkpoint)?)?;
    let reports = known.with(RunAll { arguments, checkpoint: &checkpoint, golden: &golden })?;
    let limits = Limits { strict: arguments.strict, quality_ratio: arguments.max_quality_ratio };
    if arguments.json {
        let object = serde_json::json!({
            "golden": golden.dir,
            "backends": reports.iter().map(|report| report.json(limits)).collect::<Vec<_>>(),
        });
        println!("{object:#}");
    } else {
        if arguments.layers {
            for report in &reports {
                println!("{}", report::layer_table(report));
            }
        }
        print!("{}", report::table(&golden, &reports, limits));
    }
    Ok(reports.iter().all(|report| report.failures(limits).is_empty()))
}

/// Runs the gate on every backend that was asked for.
struct RunAll<'a> {
    arguments: &'a ParityArguments,
    checkpoint: &'a Checkpoint,
    golden: &'a Golden,
}

impl ForConfig for RunAll<'_> {
    type Output = Result<Vec<BackendReport>, ParityError>;

    fn run<C: Config>(self) -> Self::Output {
        let Self { arguments, checkpoint, golden } = self;
        let choices = arguments.backends.choices(TypeId::of::<C>() == TypeId::of::<Tiny>());
        let run_one = |choice: &Choice| {
            let gate = Gate::<C> { choice, checkpoint, golden, of: PhantomData };
            choice.with(gate).map_err(|error| ParityError::Run(format!("{}: {error}", choice.label)))?
        };
        choices.iter().map(run_one).collect()
    }
}

/// The gate on one backend.
struct Gate<'a, C> {
    choice: &'a Choice,
    checkpoint: &'a Checkpoint,
    golden: &'a Golden,
    of: PhantomData<C>,
}

impl<C: Config> OnBackend for Gate<'_, C> {
    type Output = Result<BackendReport, ParityError>;

    fn run<B: Backend>(self, b: &B, _session: Option<&Arc<Session>>) -> Self::Output {
        run::<B, C>(&self.choice.label, self.choice.rounding(), b, self.checkpoint, self.golden)
    }
}
