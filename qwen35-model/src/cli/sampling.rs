//! How tokens are chosen, by what was asked for and by what the checkpoint says.

use super::arguments::{ChatArguments, SamplingArguments};
use qwen35_model::checkpoint::GenerationConfig;
use qwen35_model::sampling::{Random, Sampler, SamplingError};

impl SamplingArguments {
    /// Whether an option asks for chance.
    fn is_any(&self) -> bool {
        let Self { temperature, top_k, top_p, repetition_penalty, presence_penalty, seed } = self;
        let filters = temperature.is_some() || top_k.is_some() || top_p.is_some();
        filters || repetition_penalty.is_some() || presence_penalty.is_some() || seed.is_some()
    }

    /// `base` with the options that were given.
    fn over(&self, base: Random) -> Random {
        Random {
            temperature: self.temperature.unwrap_or(base.temperature),
            top_k: self.top_k.or(base.top_k),
            top_p: self.top_p.unwrap_or(base.top_p),
            repetition_penalty: self.repetition_penalty.unwrap_or(base.repetition_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(base.presence_penalty),
            seed: self.seed.unwrap_or(base.seed),
        }
    }

    /// The likeliest token unless an option asks for chance.
    pub(super) fn sampler(&self) -> Result<Sampler, SamplingError> {
        if self.is_any() { Sampler::random(self.over(Random::default())) } else { Ok(Sampler::greedy()) }
    }
}

impl ChatArguments {
    /// What the checkpoint says, with the options that were given.
    pub(super) fn random(&self, config: Option<&GenerationConfig>) -> Option<Random> {
        let published = config.and_then(GenerationConfig::sampling);
        match published {
            _ if self.greedy => None,
            None if !self.sampling.is_any() => None,
            published => Some(self.sampling.over(published.unwrap_or_default())),
        }
    }
}

/// What a conversation's user did not ask for and should know.
pub(super) fn note(config: Option<&GenerationConfig>, random: Option<Random>) {
    let (Some(config), Some(random)) = (config, random) else { return };
    if config.sampling().is_some() {
        eprintln!(
            "note: {}: tokens are drawn: {}; `--greedy` takes the likeliest",
            config.place(),
            Drawn(random)
        );
        if !config.ignored().is_empty() {
            let ignored: Vec<String> = config.ignored().iter().map(ToString::to_string).collect();
            eprintln!("note: {}: not applied: {}", config.place(), ignored.join(", "));
        }
    }
}

/// A way to draw tokens, in words.
struct Drawn(Random);

impl std::fmt::Display for Drawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Random { temperature, top_k, top_p, repetition_penalty, presence_penalty, seed } = self.0;
        write!(f, "temperature {temperature}")?;
        if let Some(k) = top_k {
            write!(f, ", top-k {k}")?;
        }
        if top_p < 1.0 {
            write!(f, ", top-p {top_p}")?;
        }
        if repetition_penalty != 1.0 {
            write!(f, ", repetition penalty {repetition_penalty}")?;
        }
        if presence_penalty != 0.0 {
            write!(f, ", presence penalty {presence_penalty}")?;
        }
        write!(f, ", seed {seed}")
    }
}
