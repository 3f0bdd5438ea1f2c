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
use std::time::Instant;
use tt_backend_tenstorrent::Session;
use tt_dsl::Backend;
use xtask::backends::{BackendArguments, Choice, OnBackend};
use xtask::bench;
use xtask::golden::{Golden, GoldenError};
use xtask::parity::report::{self, BackendReport, Expense, Judged, Limits};
use xtask::parity::{ParityError, run};
use xtask::profile;
use xtask::sanitize;
use xtask::sizes;
use xtask::synthesize;
use xtask::tokenizer;
use xtask::ttnn_mock;

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
    /// A model's speed as a fraction of what the machine can do.
    Bench(bench::Arguments),
    /// Run the Tenstorrent backend's tests with its C++ under AddressSanitizer and
    /// UndefinedBehaviorSanitizer.
    Sanitize(sanitize::Arguments),
    /// Check the whole vocabulary against the ids of the reference.
    Tokenizer(tokenizer::Arguments),
    /// Run the ttnn driver on the real library's mock of a card, and show what a step costs the host.
    TtnnMock(ttnn_mock::Arguments),
    /// Write a checkpoint of synthetic weights, as a published one looks.
    Synthesize(synthesize::Arguments),
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
    /// The largest quality ratio that passes. When not given, 1.0; on the Tenstorrent backend 1.5, but
    /// 1.0 with the tiny model.
    #[arg(long)]
    max_quality_ratio: Option<f64>,
    /// Run the golden's first N prompts only.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    prompts: Option<u16>,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Parity(arguments) => parity(&arguments),
        Command::Profile(arguments) => profile(&arguments),
        Command::Bench(arguments) => bench(&arguments),
        Command::Tokenizer(arguments) => {
            tokenizer::command(&arguments).map_err(|error| ParityError::Run(error.to_string()))
        }
        Command::TtnnMock(arguments) => {
            ttnn_mock::command(&arguments).map_err(|error| ParityError::Run(error.to_string()))
        }
        Command::Sanitize(arguments) => {
            sanitize::command(&arguments).map_err(|error| ParityError::Run(error.to_string()))
        }
        Command::Synthesize(arguments) => synthesize::command(&arguments)
            .map(|text| {
                print!("{text}");
                true
            })
            .map_err(|error| ParityError::Run(error.to_string())),
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

fn bench(arguments: &bench::Arguments) -> Result<bool, ParityError> {
    let text = bench::command(arguments).map_err(|error| ParityError::Run(error.to_string()))?;
    print!("{text}");
    Ok(true)
}

/// Whether every backend passed.
fn parity(arguments: &ParityArguments) -> Result<bool, ParityError> {
    let start = Instant::now();
    let mut golden = match Golden::open(&arguments.golden) {
        Err(skipped @ GoldenError::NotCaptured { .. }) => {
            not_captured(arguments, &skipped);
            return Ok(true);
        }
        golden => golden?,
    };
    if let Some(prompts) = arguments.prompts {
        golden.keep_first(prompts.into());
    }
    let checkpoint = weights(arguments, &golden)?;
    let known = Known::of(&ConfigJson::of(&checkpoint)?)?;
    let reports = sizes::with(known, RunAll { arguments, checkpoint: &checkpoint, golden: &golden })
        .map_err(|error| ParityError::Run(error.to_string()))??;
    let expense = Expense::since(start);
    if arguments.json {
        let object = serde_json::json!({
            "golden": golden.dir,
            "captured": true,
            "skipped": 0,
            "prompts": golden.prompts.len(),
            "prompts_recorded": golden.recorded,
            "seconds": expense.time.as_secs_f64(),
            "peak_bytes": expense.peak_bytes,
            "backends": reports.iter().map(Judged::json).collect::<Vec<_>>(),
        });
        println!("{object:#}");
    } else {
        if arguments.layers {
            for judged in &reports {
                println!("{}", report::layer_table(&judged.report));
            }
        }
        print!("{}", report::table(&golden, &reports));
        println!("the whole run: {expense}");
    }
    Ok(reports.iter().all(Judged::passes))
}

/// Says that a golden waits to be captured.
fn not_captured(arguments: &ParityArguments, skipped: &GoldenError) {
    if arguments.json {
        let dir = &arguments.golden;
        println!("{:#}", serde_json::json!({"golden": dir, "captured": false, "skipped": 1, "backends": []}));
    } else {
        println!("{skipped}\n\nskipped 1");
    }
}

/// The folder that was given, the weights that the golden names, or the golden's own folder.
fn weights(arguments: &ParityArguments, golden: &Golden) -> Result<Checkpoint, ParityError> {
    if let Some(dir) = &arguments.checkpoint {
        return Ok(Checkpoint::open(dir)?);
    }
    golden.check_files(&golden.dir)?;
    match &golden.weights {
        Some(synthetic) => Ok(synthetic.make(golden.tokenizer()?)?),
        None => Ok(Checkpoint::open(&golden.dir)?),
    }
}

/// Runs the gate on every backend that was asked for.
struct RunAll<'a> {
    arguments: &'a ParityArguments,
    checkpoint: &'a Checkpoint,
    golden: &'a Golden,
}

impl ForConfig for RunAll<'_> {
    type Output = Result<Vec<Judged>, ParityError>;

    fn run<C: Config>(self) -> Self::Output {
        let Self { arguments, checkpoint, golden } = self;
        let is_tiny = TypeId::of::<C>() == TypeId::of::<Tiny>();
        let run_one = |choice: &Choice| {
            let gate = Gate::<C> { choice, checkpoint, golden, of: PhantomData };
            let report = choice
                .with(gate)
                .map_err(|error| ParityError::Run(format!("{}: {error}", choice.label)))??;
            // The tiny model is held to what its trained weights allow; at full size the card's
            // arithmetic, or the device model's fast one, has more room.
            let default = if choice.is_tenstorrent() && !is_tiny { 1.5 } else { 1.0 };
            let quality_ratio = arguments.max_quality_ratio.unwrap_or(default);
            Ok(Judged { report, limits: Limits { strict: arguments.strict, quality_ratio } })
        };
        arguments.backends.choices(is_tiny).iter().map(run_one).collect()
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
