//! Filling a tensor on all cores.

use super::hash::{LANES, Words, integers};
use super::kind::{Kind, Lanes};
use half::bf16;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use tt_dsl::HostBytes;

/// Words that a thread fills before it asks for more.
const CHUNK: usize = 1 << 16;

/// The elements of a tensor. Every one depends on its index alone, so the threads may take chunks in any
/// order.
pub(super) fn fill(words: Words, kind: &Kind, elements: usize) -> Vec<bf16> {
    let mut values = vec![bf16::ZERO; elements];
    let chunks = Mutex::new(values.chunks_mut(CHUNK * LANES).enumerate());
    let work = || {
        loop {
            // A thread that panicked took its chunk with it; the scope passes the panic on.
            let next = chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((index, chunk)) = next else { break };
            fill_chunk(words, kind, index * CHUNK, chunk);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(elements.div_ceil(CHUNK * LANES));
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    values
}

/// Fills the elements that start with word `first`.
fn fill_chunk(words: Words, kind: &Kind, first: usize, chunk: &mut [bf16]) {
    match kind {
        Kind::Plain(lanes) => fill_words(words, lanes, first, chunk),
        Kind::Rows(rows) => {
            let (mut first, mut rest) = (first, chunk);
            while !rest.is_empty() {
                let (row, within) = (first / rows.words, first % rows.words);
                let words_left = rows.words - within;
                let (now, later) = rest.split_at_mut((words_left * LANES).min(rest.len()));
                fill_words(words, rows.of(row), first, now);
                (first, rest) = (first + words_left, later);
            }
        }
    }
}

fn fill_words(words: Words, lanes: &Lanes, first: usize, values: &mut [bf16]) {
    for (index, values) in values.chunks_mut(LANES).enumerate() {
        let integers = integers(words.word(first + index));
        for ((value, lane), integer) in values.iter_mut().zip(lanes).zip(integers) {
            // A lane has 64 places and an integer is at most 60; the mask says so to the compiler.
            *value = lane[integer & 63];
        }
    }
}

/// A tensor's elements, to be lent as bytes.
pub(super) struct Bytes(Elements);

enum Elements {
    Narrow(Vec<bf16>),
    Wide(Vec<f32>),
}

impl Bytes {
    /// Published in BF16.
    pub(super) fn narrow(values: Vec<bf16>) -> Self {
        Self(Elements::Narrow(values))
    }

    /// Published in F32: the same values, widened exactly.
    pub(super) fn wide(values: &[bf16]) -> Self {
        Self(Elements::Wide(values.iter().map(|value| value.to_f32()).collect()))
    }

    /// A copy.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.as_ref().to_vec()
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Elements::Narrow(values) => bytemuck::cast_slice(values),
            Elements::Wide(values) => bytemuck::cast_slice(values),
        }
    }
}

impl From<Bytes> for HostBytes {
    fn from(bytes: Bytes) -> Self {
        let end = bytes.as_ref().len();
        Self::new(Arc::new(bytes), 0..end).unwrap_or_else(|| unreachable!("the range is the whole"))
    }
}
