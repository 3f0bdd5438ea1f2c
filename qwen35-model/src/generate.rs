//! Generation: from a prompt's ids to one token after another.

use crate::sampling::{Before, Sampler};
use crate::sequence::{Prefill, Sequence, SequenceError};
use crate::{Config, Model};
use tt_dsl::{Backend, LogitsF32};

/// When to stop, apart from the context's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// At most this many tokens.
    pub max_tokens: usize,
    /// Tokens that end the text; they are not part of it.
    pub tokens: Vec<u32>,
}

impl Stop {
    /// After `max_tokens`, or at the configuration's end-of-text token.
    pub fn after<C: Config>(max_tokens: usize) -> Self {
        Self { max_tokens, tokens: vec![C::EOS] }
    }

    /// And at these tokens too.
    #[must_use]
    pub fn or_at(mut self, tokens: &[u32]) -> Self {
        self.tokens.extend(tokens);
        self.tokens.sort_unstable();
        self.tokens.dedup();
        self
    }
}

/// A sequence and the ids that it holds.
pub struct Transcript<'m, B: Backend, C: Config> {
    sequence: Sequence<'m, B, C>,
    ids: Vec<u32>,
}

/// What it took to bring a transcript to a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brought {
    /// Tokens of the prompt that were there.
    pub kept: usize,
    /// Tokens that were run.
    pub run: usize,
    /// Tokens that were there and not in the prompt's beginning, so that all was begun anew.
    pub dropped: usize,
}

impl<'m, B: Backend, C: Config> Transcript<'m, B, C> {
    /// An empty one.
    pub fn new(backend: &'m B, model: &'m Model<B, C>) -> Self {
        Self { sequence: Sequence::new(backend, model), ids: Vec::new() }
    }

    /// The ids that the sequence holds.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Makes it hold a prompt and returns the logits after it.
    ///
    /// If the prompt goes on where the transcript ends, only what is new is run. Otherwise, and if
    /// nothing is new, the sequence is begun anew: a recurrent state cannot be cut back.
    pub fn bring_to(
        &mut self,
        prompt: &[u32],
    ) -> Result<(LogitsF32<B, C::Vocab>, Brought), SequenceError<B::Error>> {
        let goes_on = prompt.len() > self.ids.len() && prompt.starts_with(&self.ids);
        let dropped = if goes_on { 0 } else { self.ids.len() };
        if dropped > 0 {
            self.sequence.restart();
            self.ids.clear();
        }
        let kept = self.ids.len();
        let logits = self.append(&prompt[kept..])?;
        Ok((logits, Brought { kept, run: prompt.len() - kept, dropped }))
    }

    fn append(&mut self, ids: &[u32]) -> Result<LogitsF32<B, C::Vocab>, SequenceError<B::Error>> {
        let logits = self.sequence.append(ids, Prefill::Buckets)?;
        self.ids.extend(ids);
        Ok(logits)
    }
}

/// A text in progress: an iterator of token ids.
///
/// It ends after the first error; [`SequenceError::ContextFull`] is the one at the context's end.
pub struct Generation<'m, B: Backend, C: Config> {
    transcript: Transcript<'m, B, C>,
    /// How many ids of the transcript were given.
    prompt: usize,
    sampler: Sampler,
    stop: Stop,
    next: Next<B, C>,
}

/// Where the next token comes from.
enum Next<B: Backend, C: Config> {
    /// These logits.
    From(LogitsF32<B, C::Vocab>),
    /// The pass over this token, which is run only if its successor is asked for.
    After(u32),
    /// Nowhere: the text has ended.
    Ended,
}

impl<'m, B: Backend, C: Config> Generation<'m, B, C> {
    /// Reads the prompt. After this the first token costs no pass.
    pub fn start(
        backend: &'m B,
        model: &'m Model<B, C>,
        prompt: &[u32],
        sampler: Sampler,
        stop: Stop,
    ) -> Result<Self, SequenceError<B::Error>> {
        let mut transcript = Transcript::new(backend, model);
        let (logits, _) = transcript.bring_to(prompt)?;
        Ok(Self::after(transcript, logits, sampler, stop))
    }

    /// Goes on from a transcript and the logits after it.
    pub fn after(
        transcript: Transcript<'m, B, C>,
        logits: LogitsF32<B, C::Vocab>,
        sampler: Sampler,
        stop: Stop,
    ) -> Self {
        let prompt = transcript.ids.len();
        Self { transcript, prompt, sampler, stop, next: Next::From(logits) }
    }

    /// The transcript, with every token but one that came last and has no successor, and the sampler.
    pub fn into_parts(self) -> (Transcript<'m, B, C>, Sampler) {
        (self.transcript, self.sampler)
    }

    fn advance(&mut self) -> Result<Option<u32>, SequenceError<B::Error>> {
        if self.stop.max_tokens == 0 {
            return Ok(None);
        }
        let logits = match std::mem::replace(&mut self.next, Next::Ended) {
            Next::From(logits) => logits,
            Next::After(token) => self.transcript.append(&[token])?,
            Next::Ended => return Ok(None),
        };
        let token = self.choose(&logits).map_err(SequenceError::Backend)?;
        if self.stop.tokens.contains(&token) {
            return Ok(None);
        }
        self.stop.max_tokens -= 1;
        self.next = Next::After(token);
        Ok(Some(token))
    }

    /// A greedy choice reads one id back from the backend, any other the logits.
    fn choose(&mut self, logits: &LogitsF32<B, C::Vocab>) -> Result<u32, B::Error> {
        let b = self.transcript.sequence.backend();
        if self.sampler.is_greedy() {
            return Ok(b.download(&b.argmax(logits))?.values()[0]);
        }
        let (prompt, generated) = self.transcript.ids.split_at(self.prompt);
        let logits = b.download(logits.tensor())?;
        Ok(self.sampler.sample_after(&logits.values(), Before { prompt, generated }))
    }
}

impl<B: Backend, C: Config> Iterator for Generation<'_, B, C> {
    type Item = Result<u32, SequenceError<B::Error>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}
