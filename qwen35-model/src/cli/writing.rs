//! Generated text on its way out, and how long it took.

use super::output::{self, Reader};
use super::progress;
use qwen35_model::checkpoint::{Staged, Verified};
use qwen35_model::generate::Generation;
use qwen35_model::tokenizer::TextStream;
use qwen35_model::{Config, Model, SequenceError};
use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::ops::AddAssign;
use std::time::{Duration, Instant};
use tt_dsl::Backend;

/// Loads the model, with a bar while a large one is read.
pub(super) fn load<B: Backend, C: Config>(
    backend: &B,
    verified: &Verified<'_, C>,
) -> Result<Model<B, C>, Box<dyn Error>> {
    let bar = progress::bar(verified.bytes());
    let staged = |staged: Staged<'_>| {
        bar.set_message(staged.name.to_owned());
        bar.inc(staged.bytes);
    };
    let model = Model::load(backend, &verified.weights(backend).with_progress(&staged));
    bar.finish_and_clear();
    Ok(model?)
}

/// Tells that a tensor's values were widened from BF16.
pub(super) fn note_widened<C: Config>(verified: &Verified<'_, C>) {
    if let Some(first) = verified.widened().first() {
        let others = verified.widened().len() - 1;
        eprintln!("note: {first} and {others} others are BF16 here and F32 in the model: widened, exactly");
    }
}

/// Tokens and the time that they took.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) tokens: usize,
    pub(super) time: Duration,
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.tokens += other.tokens;
        self.time += other.time;
    }
}

/// As a line of statistics.
impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.time.as_secs_f64();
        let rate = if seconds > 0.0 { self.tokens as f64 / seconds } else { 0.0 };
        write!(f, "{seconds:8.2} s  {:6} tokens  {rate:10.2} tok/s", self.tokens)
    }
}

/// What was written.
pub(super) struct Written<E: Error + 'static> {
    pub(super) text: String,
    /// The time to the first token's choice.
    pub(super) first: Duration,
    /// Every further token.
    pub(super) decode: Count,
    pub(super) reader: Reader,
    /// Why the text ends where it does, if not by itself.
    pub(super) error: Option<SequenceError<E>>,
}

/// Writes a text token by token, and a line break.
pub(super) fn write<B: Backend, C: Config>(
    tokens: &mut Generation<'_, B, C>,
    mut stream: TextStream<'_>,
    out: &mut impl Write,
) -> io::Result<Written<B::Error>> {
    let mut written = Written {
        text: String::new(),
        first: Duration::ZERO,
        decode: Count::default(),
        reader: Reader::There,
        error: None,
    };
    let started = Instant::now();
    let mut next = tokens.next();
    written.first = started.elapsed();
    let since = Instant::now();
    while let Some(token) = next {
        match token {
            Ok(token) => {
                let piece = stream.push(token);
                written.text.push_str(&piece);
                written.reader = output::write(out, &piece)?;
            }
            Err(error) => written.error = Some(error),
        }
        if written.reader == Reader::Gone || written.error.is_some() {
            break;
        }
        next = tokens.next();
        written.decode.tokens += usize::from(next.is_some());
        written.decode.time = since.elapsed();
    }
    if written.reader == Reader::There {
        // What was written so far stays a line of its own above an error.
        let rest = stream.finish();
        written.text.push_str(&rest);
        written.reader = output::write(out, &(rest + "\n"))?;
    }
    Ok(written)
}
