//! One sequence in progress: prompts of any length through fixed-size buckets, then token by token.

use crate::layers::Residual;
use crate::model::State;
use crate::{Config, Model};
use tt_dsl::{Backend, Dim, LogitsF32, One, Tokens, TokensError, dim};

dim! {
    /// The smallest prefill bucket.
    pub Bucket8 = 8;
    /// A tile's rows.
    pub Bucket32 = 32;
    /// Two chunks of the delta rule.
    pub Bucket128 = 128;
    /// The largest prefill bucket.
    pub Bucket512 = 512;
}

/// How a prompt is cut into forward passes. All give the same logits up to rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefill {
    /// The largest bucket that the rest of the prompt fills, again and again; a rest smaller than
    /// the smallest bucket is padded.
    Buckets,
    /// The smallest bucket that holds the whole prompt, padded; above 512 tokens as `Buckets`.
    OneShot,
    /// One token at a time, as in decode.
    TokenByToken,
}

/// The row capacity of the next pass over a rest of `rest` tokens.
fn capacity(prefill: Prefill, rest: usize) -> usize {
    let buckets = [Bucket8::SIZE, Bucket32::SIZE, Bucket128::SIZE, Bucket512::SIZE];
    let holds_all = || buckets.into_iter().find(|&size| size >= rest);
    let filled = || buckets.into_iter().rfind(|&size| size <= rest);
    match prefill {
        _ if rest <= 1 => One::SIZE,
        Prefill::TokenByToken => One::SIZE,
        Prefill::OneShot => holds_all().or_else(filled).unwrap_or(One::SIZE),
        Prefill::Buckets => filled().or_else(holds_all).unwrap_or(One::SIZE),
    }
}

/// Why a sequence could not go on.
#[derive(Debug, thiserror::Error)]
pub enum SequenceError<E: std::error::Error + 'static> {
    /// Nothing to continue.
    #[error("the prompt is empty: expected at least one token")]
    EmptyPrompt,
    /// More positions than the cache has.
    #[error(
        "the context is full: {wanted} more tokens after position {position}, but {config} keeps {capacity} positions"
    )]
    ContextFull {
        /// Positions already used.
        position: usize,
        /// Tokens that were to follow.
        wanted: usize,
        /// The `Context` dim's size.
        capacity: usize,
        /// The configuration's name.
        config: &'static str,
    },
    /// Ids that the model does not have.
    #[error(transparent)]
    Tokens(#[from] TokensError<E>),
    /// The backend failed; the sequence's state is lost.
    #[error("the backend failed: {0}")]
    Backend(#[source] E),
}

/// A visitor of the residual stream: called with the index (0 = embedding, `i` = after layer
/// `i - 1`), the position of the first row, and the values of the valid rows.
pub type Visit<'v> = dyn FnMut(usize, usize, &[half::bf16]) + 'v;

/// One sequence on one backend.
pub struct Sequence<'m, B: Backend, C: Config> {
    backend: &'m B,
    model: &'m Model<B, C>,
    state: State<B, C>,
    position: usize,
}

impl<'m, B: Backend, C: Config> Sequence<'m, B, C> {
    /// An empty sequence.
    pub fn new(backend: &'m B, model: &'m Model<B, C>) -> Self {
        Self { backend, model, state: model.new_state(backend), position: 0 }
    }

    /// The backend that it runs on.
    pub fn backend(&self) -> &'m B {
        self.backend
    }

    /// The same sequence on another instance of the backend, which must be able to use the tensors
    /// of this one: another number of threads of a CPU, say.
    #[must_use]
    pub fn continued_on(self, backend: &'m B) -> Self {
        Self { backend, ..self }
    }

    /// Makes it empty. Its cache keeps its memory, which the system need not bring in again. After a
    /// failure of the backend make a new one instead.
    pub fn restart(&mut self) {
        self.state.restart(self.backend);
        self.position = 0;
    }

    /// The number of positions used.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The states of the layers.
    pub fn state(&self) -> &State<B, C> {
        &self.state
    }

    /// Appends `ids` and returns the logits of the token after them.
    ///
    /// Nothing is changed when the ids do not fit the context or the vocabulary. When the backend
    /// fails, the sequence is not to be used again.
    pub fn append(
        &mut self,
        ids: &[u32],
        prefill: Prefill,
    ) -> Result<LogitsF32<B, C::Vocab>, SequenceError<B::Error>> {
        self.run(ids, prefill, None)
    }

    /// [`append`](Self::append), showing the residual stream of every layer to `visit`. Reads each
    /// back from the backend, so it is for comparing, not for speed.
    pub fn append_visited(
        &mut self,
        ids: &[u32],
        prefill: Prefill,
        visit: &mut Visit<'_>,
    ) -> Result<LogitsF32<B, C::Vocab>, SequenceError<B::Error>> {
        self.run(ids, prefill, Some(visit))
    }

    fn run(
        &mut self,
        ids: &[u32],
        prefill: Prefill,
        mut visit: Option<&mut Visit<'_>>,
    ) -> Result<LogitsF32<B, C::Vocab>, SequenceError<B::Error>> {
        if ids.is_empty() {
            return Err(SequenceError::EmptyPrompt);
        }
        if self.position + ids.len() > C::Context::SIZE {
            return Err(SequenceError::ContextFull {
                position: self.position,
                wanted: ids.len(),
                capacity: C::Context::SIZE,
                config: C::NAME,
            });
        }
        if let Some(index) = ids.iter().position(|&id| id as usize >= C::Vocab::SIZE) {
            return Err(TokensError::Vocabulary { index, id: ids[index], vocab: C::Vocab::SIZE }.into());
        }
        let mut rest = ids;
        loop {
            let capacity = capacity(prefill, rest.len());
            let (now, later) = rest.split_at(capacity.min(rest.len()));
            let wants_logits = later.is_empty();
            let logits = match capacity {
                Bucket512::SIZE => self.pass::<Bucket512>(now, wants_logits, &mut visit),
                Bucket128::SIZE => self.pass::<Bucket128>(now, wants_logits, &mut visit),
                Bucket32::SIZE => self.pass::<Bucket32>(now, wants_logits, &mut visit),
                Bucket8::SIZE => self.pass::<Bucket8>(now, wants_logits, &mut visit),
                _ => self.pass::<One>(now, wants_logits, &mut visit),
            }?;
            if let Some(logits) = logits {
                return Ok(logits);
            }
            rest = later;
        }
    }

    /// One forward pass of up to `T` tokens.
    fn pass<T: Dim>(
        &mut self,
        ids: &[u32],
        wants_logits: bool,
        visit: &mut Option<&mut Visit<'_>>,
    ) -> Result<Option<LogitsF32<B, C::Vocab>>, SequenceError<B::Error>> {
        let (b, start) = (self.backend, self.position);
        let tokens = Tokens::<B, T, C::Vocab>::upload(b, ids, start)?;
        let show = |index: usize, h: &Residual<B, T, C>| {
            if let Some(visit) = visit {
                let values = b.download(h)?;
                visit(index, start, &values.values()[..ids.len() * C::Hidden::SIZE]);
            }
            Ok(())
        };
        let h = self.model.forward(b, &tokens, &mut self.state, show).map_err(SequenceError::Backend)?;
        let logits = wants_logits.then(|| self.model.logits(b, &h, tokens.step()));
        b.submit().map_err(SequenceError::Backend)?;
        self.position += ids.len();
        Ok(logits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The capacities and valid rows of all passes over a prompt.
    fn plan(prefill: Prefill, mut rest: usize) -> Vec<(usize, usize)> {
        let mut passes = Vec::new();
        while rest > 0 {
            let capacity = capacity(prefill, rest);
            passes.push((capacity, capacity.min(rest)));
            rest -= capacity.min(rest);
        }
        passes
    }

    #[test]
    fn buckets_are_filled_and_the_rest_padded() {
        assert_eq!(plan(Prefill::Buckets, 1), [(1, 1)]);
        assert_eq!(plan(Prefill::Buckets, 5), [(8, 5)]);
        assert_eq!(plan(Prefill::Buckets, 45), [(32, 32), (8, 8), (8, 5)]);
        assert_eq!(plan(Prefill::Buckets, 641), [(512, 512), (128, 128), (1, 1)]);
    }

    #[test]
    fn one_shot_is_one_pass_up_to_the_largest_bucket() {
        assert_eq!(plan(Prefill::OneShot, 45), [(128, 45)]);
        assert_eq!(plan(Prefill::OneShot, 512), [(512, 512)]);
        assert_eq!(plan(Prefill::OneShot, 513), [(512, 512), (1, 1)]);
        assert_eq!(plan(Prefill::TokenByToken, 2), [(1, 1), (1, 1)]);
    }
}
