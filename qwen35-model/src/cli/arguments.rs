//! What can be said on the command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use qwen35_model::known::{Known, UnknownWord};
use std::path::PathBuf;
use std::str::FromStr;

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
    /// Talk with a model whose checkpoint has a chat template.
    ///
    /// A line of standard input is a message; `/reset` begins a new conversation, and `/exit` or the
    /// input's end ends the last. Replies go to standard output.
    Chat(ChatArguments),
    /// Compare a checkpoint with the types, key by key and tensor by tensor; or say what a size needs.
    Info(InfoArguments),
}

#[derive(Debug, Args)]
pub(super) struct ModelArguments {
    /// A directory with config.json, model.safetensors (or shards) and tokenizer.json; the small
    /// built-in checkpoint if absent.
    #[arg(long, value_name = "DIR")]
    pub(super) model: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct InfoArguments {
    #[command(flatten)]
    pub(super) model: ModelArguments,

    /// Say what a size needs, without weights: tiny, 0.8b, 2b, 4b, 9b, 27b, or `all`.
    #[arg(long, value_name = "SIZE", conflicts_with = "model")]
    pub(super) config: Option<SizeName>,
}

/// A size, or all of them.
#[derive(Debug, Clone, Copy)]
pub(super) enum SizeName {
    One(Known),
    All,
}

impl FromStr for SizeName {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        if word.eq_ignore_ascii_case("all") { Ok(Self::All) } else { word.parse().map(Self::One) }
    }
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

    #[command(flatten)]
    pub(super) compute: ComputeArguments,
}

#[derive(Debug, Args)]
pub(super) struct ChatArguments {
    #[command(flatten)]
    pub(super) model: ModelArguments,

    /// What the conversation begins with, as the system's message.
    #[arg(long, value_name = "TEXT")]
    pub(super) system: Option<String>,

    /// Whether the model thinks before it replies; as the template has it if absent.
    #[arg(long, value_enum)]
    pub(super) thinking: Option<Thinking>,

    /// Stop a reply after this many tokens.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(super) max_tokens: usize,

    /// Take the likeliest token, whatever generation_config.json says.
    #[arg(
        long,
        conflicts_with_all = ["temperature", "top_k", "top_p", "repetition_penalty", "presence_penalty", "seed"]
    )]
    pub(super) greedy: bool,

    #[command(flatten)]
    pub(super) sampling: SamplingArguments,

    #[command(flatten)]
    pub(super) compute: ComputeArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Thinking {
    /// It thinks.
    On,
    /// It does not.
    Off,
}

#[derive(Debug, Args)]
pub(super) struct ComputeArguments {
    /// Where to compute.
    #[arg(long, value_enum, default_value_t = BackendName::Cpu)]
    pub(super) backend: BackendName,

    /// Arithmetic of the `tt` backend's device model; `tensix` for the tiny model and `fast` for
    /// others if absent.
    #[arg(long, value_enum)]
    pub(super) numerics: Option<NumericsName>,

    /// What stands behind the Tenstorrent backend.
    #[arg(long, value_enum, default_value = "model")]
    pub(super) driver: DriverName,

    /// Threads to compute with; all cores if absent. The text is the same for every number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,

    /// Print tokens per second, and what crossed to a device and back, to standard error.
    #[arg(long)]
    pub(super) stats: bool,
}

/// Any of these makes the choice random; without them `generate` takes the likeliest token, and `chat`
/// does what generation_config.json says.
#[derive(Debug, Args)]
pub(super) struct SamplingArguments {
    /// Sample at this temperature.
    #[arg(long, value_name = "T")]
    pub(super) temperature: Option<f64>,

    /// Sample among the K likeliest tokens.
    #[arg(long, value_name = "K")]
    pub(super) top_k: Option<usize>,

    /// Sample among the fewest tokens that have this probability together.
    #[arg(long, value_name = "P")]
    pub(super) top_p: Option<f64>,

    /// Divide the logits of tokens that were there by this; multiply them if negative.
    #[arg(long, value_name = "R")]
    pub(super) repetition_penalty: Option<f64>,

    /// Take this off the logits of tokens that were generated.
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub(super) presence_penalty: Option<f64>,

    /// Sample with this seed, 0 if absent.
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
pub(super) enum DriverName {
    /// The device model.
    Model,
    /// tt-metal's ttnn on a card, in a build with the feature `ttnn`.
    Ttnn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum NumericsName {
    /// The card's own, bit for bit, at HiFi4 with f32 destination.
    Tensix,
    /// f32 accumulation.
    Fast,
}
