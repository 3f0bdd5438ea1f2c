//! `qwen35 generate`.

use super::arguments::GenerateArguments;
use super::backends::{self, ForBackend};
use super::writing::{self, Count};
use super::{Outcome, prompt};
use qwen35_model::Config;
use qwen35_model::chat::stop_tokens;
use qwen35_model::checkpoint::{Checkpoint, ConfigJson, GenerationConfig, Verified};
use qwen35_model::generate::{Generation, Stop};
use qwen35_model::known::{ForConfig, Known};
use qwen35_model::sampling::Sampler;
use qwen35_model::tokenizer::Tokenizer;
use std::io;
use std::process::ExitCode;
use std::time::Instant;
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
    let sampler = arguments.sampling.sampler()?;
    let prompt = prompt::read(arguments.prompt.as_deref(), io::stdin().lock())?;
    let checkpoint = super::open(&arguments.model)?;
    let known = Known::of(&ConfigJson::of(&checkpoint)?)?;
    known.with(Prepared { arguments, sampler, prompt, checkpoint: &checkpoint })
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
        let generation = GenerationConfig::of(self.checkpoint)?;
        let stop =
            Stop::after::<C>(self.arguments.max_tokens).or_at(&stop_tokens::<C>(generation.as_ref(), None)?);
        writing::note_widened(&verified);
        let Self { arguments, sampler, .. } = self;
        let text = Text { arguments, sampler, stop, verified: &verified, tokenizer: &tokenizer, ids: &ids };
        backends::with::<C>(&arguments.compute, text)
    }
}

/// Everything but the backend.
struct Text<'a, C: Config> {
    arguments: &'a GenerateArguments,
    sampler: Sampler,
    stop: Stop,
    verified: &'a Verified<'a, C>,
    tokenizer: &'a Tokenizer,
    ids: &'a [u32],
}

impl<C: Config> ForBackend for Text<'_, C> {
    fn run<B: Backend>(self, backend: &B) -> Outcome {
        let started = Instant::now();
        let model = writing::load(backend, self.verified)?;
        let loaded = started.elapsed();

        let since = Instant::now();
        let mut tokens = Generation::start(backend, &model, self.ids, self.sampler, self.stop)?;
        let read = since.elapsed();
        let written = writing::write(&mut tokens, self.tokenizer.stream(), &mut io::stdout().lock())?;
        if let Some(error) = written.error {
            return Err(error.into());
        }
        if self.arguments.compute.stats {
            eprintln!("load     {:8.2} s", loaded.as_secs_f64());
            eprintln!("prefill  {}", Count { tokens: self.ids.len(), time: read + written.first });
            eprintln!("decode   {}", written.decode);
        }
        Ok(ExitCode::SUCCESS)
    }
}
