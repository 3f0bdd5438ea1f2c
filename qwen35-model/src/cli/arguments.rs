//! What can be said on the command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Qwen3.5 text models whose shapes are types.
#[derive(Debug, Parser)]
#[command(name = "qwen35", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Continue a text.
    Generate(GenerateArguments),
    /// Compare a checkpoint with the types, key by key and tensor by tensor.
    Info(ModelArguments),
}

#[derive(Debug, Args)]
pub(super) struct ModelArguments {
    /// A directory with config.json, model.safetensors (or shards) and tokenizer.json; the small
    /// built-in checkpoint if absent.
    #[arg(long, value_name = "DIR")]
    pub(super) model: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct GenerateArguments {
    /// The text to continue; read from standard input, less one line break at its end, if absent
    /// or `-`.
    pub(super) prompt: Option<String>,

    #[command(flatten)]
    pub(super) model: ModelArguments,

    /// Stop after this many tokens.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(super) max_tokens: usize,

    #[command(flatten)]
    pub(super) sampling: SamplingArguments,

    /// Where to compute.
    #[arg(long, value_enum, default_value_t = BackendName::Cpu)]
    pub(super) backend: BackendName,

    /// Arithmetic of the `tt` backend's device model; `tensix` for the tiny model and `fast` for
    /// others if absent.
    #[arg(long, value_enum)]
    pub(super) numerics: Option<NumericsName>,

    /// Threads to compute with; all cores if absent. The text is the same for every number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,

    /// Print tokens per second, and what crossed to a device and back, to standard error.
    #[arg(long)]
    pub(super) stats: bool,
}

/// Any of these makes the choice random; without them the likeliest token is taken.
#[derive(Debug, Args)]
pub(super) struct SamplingArguments {
    /// Sample at this temperature (1 if another sampling option is given).
    #[arg(long, value_name = "T")]
    pub(super) temperature: Option<f64>,

    /// Sample among the K likeliest tokens.
    #[arg(long, value_name = "K")]
    pub(super) top_k: Option<usize>,

    /// Sample among the fewest tokens that have this probability together.
    #[arg(long, value_name = "P")]
    pub(super) top_p: Option<f64>,

    /// Sample with this seed (0 if another sampling option is given).
    #[arg(long, value_name = "SEED")]
    pub(super) seed: Option<u64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum BackendName {
    /// SIMD kernels.
    Cpu,
    /// Kernels that are the formulas written down; slow.
    CpuReference,
    /// Tenstorrent, on the device model.
    Tt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum NumericsName {
    /// The card's own, bit for bit, at HiFi4 with f32 destination.
    Tensix,
    /// f32 accumulation.
    Fast,
}
