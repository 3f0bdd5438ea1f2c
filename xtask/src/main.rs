//! The project's own commands: `cargo xtask parity`, `cargo xtask goldens`.

use clap::{Parser, Subcommand};

use qwen35_model::Config;
use qwen35_model::checkpoint::{Checkpoint, ConfigJson};
use qwen35_model::known::{ForConfig, Known};
use std::path::PathBuf;
use std::process::ExitCode;
use tt_backend_cpu::kernels::{Plain, Simd};
use tt_backend_cpu::{CpuBackend, CpuKernels};
use xtask::golden::Golden;
use xtask::parity::report::{self, BackendReport, Limits};
use xtask::parity::{ParityError, run};

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
    /// Check the golden's files against the checksums in its manifest.
    Goldens {
        /// The golden folder.
        #[arg(long, default_value = "goldens/tiny")]
        golden: PathBuf,
    },
}

#[derive(clap::Args)]
struct ParityArguments {
    /// Which backends to run; all of them when not given.
    #[arg(long = "backend", value_enum)]
    backends: Vec<BackendName>,
    /// The golden folder.
    #[arg(long, default_value = "goldens/tiny")]
    golden: PathBuf,
    /// The checkpoint folder; the golden's own when not given.
    #[arg(long)]
    checkpoint: Option<PathBuf>,
    /// Threads of the CPU backend.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
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

#[derive(Clone, Copy, clap::ValueEnum)]
enum BackendName {
    /// The CPU backend with its fast kernels.
    Cpu,
    /// The CPU backend with plain kernels.
    CpuReference,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Parity(arguments) => parity(&arguments),
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
        let threads = arguments.threads;
        let all = [BackendName::Cpu, BackendName::CpuReference];
        let wanted = if arguments.backends.is_empty() { &all[..] } else { &arguments.backends };
        let reports = wanted.iter().map(|backend| match backend {
            BackendName::Cpu => run::<_, C>(&cpu::<Simd>(threads), checkpoint, golden),
            BackendName::CpuReference => run::<_, C>(&cpu::<Plain>(threads), checkpoint, golden),
        });
        reports.collect()
    }
}

fn cpu<K: CpuKernels>(threads: Option<u16>) -> CpuBackend<K> {
    threads.map_or_else(CpuBackend::new, |threads| CpuBackend::with_threads(threads.into()))
}
