//! Generation: from a prompt's ids to one token after another.

use crate::sampling::Sampler;
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
}

/// A text in progress: an iterator of token ids.
///
/// It ends after the first error; [`SequenceError::ContextFull`] is the one at the context's end.
pub struct Generation<'m, B: Backend, C: Config> {
    sequence: Sequence<'m, B, C>,
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
        let mut sequence = Sequence::new(backend, model);
        let logits = sequence.append(prompt, Prefill::Buckets)?;
        Ok(Self { sequence, sampler, stop, next: Next::From(logits) })
    }

    fn advance(&mut self) -> Result<Option<u32>, SequenceError<B::Error>> {
        if self.stop.max_tokens == 0 {
            return Ok(None);
        }
        let logits = match std::mem::replace(&mut self.next, Next::Ended) {
            Next::From(logits) => logits,
            Next::After(token) => self.sequence.append(&[token], Prefill::TokenByToken)?,
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
        let b = self.sequence.backend();
        if self.sampler.is_greedy() {
            Ok(b.download(&b.argmax(logits))?.values()[0])
        } else {
            Ok(self.sampler.sample(&b.download(logits.tensor())?.values()))
        }
    }
}

impl<B: Backend, C: Config> Iterator for Generation<'_, B, C> {
    type Item = Result<u32, SequenceError<B::Error>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}
