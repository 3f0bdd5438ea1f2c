//! `qwen35 generate`.

use super::arguments::{GenerateArguments, SamplingArguments};
use super::backends::{self, ForBackend};
use super::output::{self, Reader};
use super::{Outcome, progress, prompt};
use qwen35_model::checkpoint::{Checkpoint, ConfigJson, Verified};
use qwen35_model::generate::{Generation, Stop};
use qwen35_model::known::{ForConfig, Known};
use qwen35_model::sampling::{Random, Sampler, SamplingError};
use qwen35_model::tokenizer::Tokenizer;
use qwen35_model::{Config, Model};
use std::error::Error;
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tt_dsl::{Backend, Dim};

/// A prompt that leaves the model no position to answer at.
#[derive(Debug, thiserror::Error)]
#[error("prompt: expected at most {capacity} tokens, the context of {config}, found {found}")]
struct PromptTooLong {
    capacity: usize,
    config: &'static str,
    found: usize,
}

pub(super) fn run(arguments: &GenerateArguments) -> Outcome {
    // The cheap checks first: nobody should wait for a load to hear of a wrong option.
    let sampler = sampler(&arguments.sampling)?;
    let prompt = prompt::read(arguments.prompt.as_deref(), io::stdin().lock())?;
    let checkpoint = super::open(&arguments.model)?;
    let known = Known::of(&ConfigJson::of(&checkpoint)?)?;
    known.with(Prepared { arguments, sampler, prompt, checkpoint: &checkpoint })
}

/// The likeliest token unless an option asks for chance.
fn sampler(arguments: &SamplingArguments) -> Result<Sampler, SamplingError> {
    let SamplingArguments { temperature, top_k, top_p, seed } = *arguments;
    if temperature.is_none() && top_k.is_none() && top_p.is_none() && seed.is_none() {
        return Ok(Sampler::greedy());
    }
    let default = Random::default();
    Sampler::random(Random {
        temperature: temperature.unwrap_or(default.temperature),
        top_k,
        top_p: top_p.unwrap_or(default.top_p),
        seed: seed.unwrap_or(default.seed),
    })
}

/// Everything but the two types.
struct Prepared<'a> {
    arguments: &'a GenerateArguments,
    sampler: Sampler,
    prompt: String,
    checkpoint: &'a Checkpoint,
}

impl ForConfig for Prepared<'_> {
    type Output = Outcome;

    fn run<C: Config>(self) -> Outcome {
        let verified = self.checkpoint.verify::<C>()?;
        let tokenizer = Tokenizer::of::<C>(self.checkpoint)?;
        let ids = tokenizer.encode(&self.prompt)?;
        if ids.len() > C::Context::SIZE {
            let error = PromptTooLong { capacity: C::Context::SIZE, config: C::NAME, found: ids.len() };
            return Err(error.into());
        }
        if let Some(first) = verified.widened().first() {
            let others = verified.widened().len() - 1;
            eprintln!(
                "note: {first} and {others} others are BF16 here and F32 in the model: widened, exactly"
            );
        }
        let Self { arguments, sampler, .. } = self;
        let text = Text { arguments, sampler, verified: &verified, tokenizer: &tokenizer, ids: &ids };
        backends::with::<C>(arguments, text)
    }
}

/// Everything but the backend.
struct Text<'a, C: Config> {
    arguments: &'a GenerateArguments,
    sampler: Sampler,
    verified: &'a Verified<'a, C>,
    tokenizer: &'a Tokenizer,
    ids: &'a [u32],
}

impl<C: Config> ForBackend for Text<'_, C> {
    fn run<B: Backend>(self, backend: &B) -> Outcome {
        let started = Instant::now();
        let model = load(backend, self.verified)?;
        let loaded = started.elapsed();

        let stop = Stop::after::<C>(self.arguments.max_tokens);
        let wants_stats = self.arguments.stats;
        let stats = self.write(backend, &model, stop)?;
        if wants_stats {
            eprintln!("load     {:8.2} s", loaded.as_secs_f64());
            eprintln!("prefill  {}", Rate(stats.prefill));
            eprintln!("decode   {}", Rate(stats.decode));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn load<B: Backend, C: Config>(
    backend: &B,
    verified: &Verified<'_, C>,
) -> Result<Model<B, C>, Box<dyn Error>> {
    let bar = progress::bar(verified.bytes());
    let staged = |staged: qwen35_model::checkpoint::Staged<'_>| {
        bar.set_message(staged.name.to_owned());
        bar.inc(staged.bytes);
    };
    let model = Model::load(backend, &verified.weights(backend).with_progress(&staged));
    bar.finish_and_clear();
    Ok(model?)
}

/// Tokens and the time that they took.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    tokens: usize,
    time: Duration,
}

/// A count as a line of statistics.
struct Rate(Count);

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(Count { tokens, time }) = self;
        let seconds = time.as_secs_f64();
        let rate = if seconds > 0.0 { *tokens as f64 / seconds } else { 0.0 };
        write!(f, "{seconds:8.2} s  {tokens:6} tokens  {rate:10.2} tok/s")
    }
}

#[derive(Debug, Default)]
struct Stats {
    /// The prompt, up to and with the choice of the first token.
    prefill: Count,
    /// Every further token.
    decode: Count,
}

impl<C: Config> Text<'_, C> {
    /// Writes the continuation, token by token, and a line break.
    fn write<B: Backend>(
        self,
        backend: &B,
        model: &Model<B, C>,
        stop: Stop,
    ) -> Result<Stats, Box<dyn Error>> {
        let mut out = io::stdout().lock();
        let mut text = self.tokenizer.stream();
        let mut stats = Stats::default();

        let mut since = Instant::now();
        let mut tokens = Generation::start(backend, model, self.ids, self.sampler, stop)?;
        let mut next = tokens.next();
        stats.prefill = Count { tokens: self.ids.len(), time: since.elapsed() };
        since = Instant::now();
        while let Some(token) = next {
            match token {
                Ok(token) => {
                    if output::write(&mut out, &text.push(token))? == Reader::Gone {
                        return Ok(stats);
                    }
                }
                Err(error) => {
                    // What was written so far stays a line of its own above the error.
                    output::write(&mut out, &(text.finish() + "\n"))?;
                    return Err(error.into());
                }
            }
            next = tokens.next();
            if next.is_some() {
                stats.decode.tokens += 1;
            }
            stats.decode.time = since.elapsed();
        }
        output::write(&mut out, &(text.finish() + "\n"))?;
        Ok(stats)
    }
}
