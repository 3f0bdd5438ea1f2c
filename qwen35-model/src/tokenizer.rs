//! Text to token ids and back.
//!
//! The vocabulary comes from `tokenizer.json` as it is published and must be the model's: every id
//! has a row in the embedding table, nearly every row has a token, and the end-of-sequence id is a
//! special token. Published checkpoints leave rows at the end unused (243 of 248,320), so fewer
//! tokens than rows is right, but far fewer is the tokenizer of another model.

mod file;

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::config::Config;
use file::Added;
use std::collections::HashMap;
use tt_dsl::Dim;

/// Rows of the embedding table, in percent, that must have a token.
const NAMED_ROWS_PERCENT: usize = 90;

/// Why a tokenizer was refused, or could not encode a text.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// The file could not be read.
    #[error(transparent)]
    File(#[from] CheckpointError),
    /// It is not a tokenizer.
    #[error("{place}: expected a byte-level BPE tokenizer, found: {found}")]
    Format {
        /// The file.
        place: String,
        /// What the parser said.
        found: String,
    },
    /// It is the tokenizer of another model.
    #[error("{place}: expected the vocabulary of {config} ({expected}), found {found}")]
    Vocabulary {
        /// The file.
        place: String,
        /// The configuration's name.
        config: &'static str,
        /// What the configuration asks for.
        expected: String,
        /// What the tokenizer has.
        found: String,
    },
    /// A text that cannot be encoded.
    #[error("cannot encode the text: {0}")]
    Encode(String),
}

/// A byte-level BPE tokenizer whose vocabulary is that of a configuration.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    bytes: ByteAlphabet,
}

impl Tokenizer {
    /// The tokenizer of a checkpoint of configuration `C`.
    pub fn of<C: Config>(checkpoint: &Checkpoint) -> Result<Self, TokenizerError> {
        let (place, bytes) = checkpoint.tokenizer_bytes()?;
        Self::parse::<C>(&place, &bytes)
    }

    /// Parses the bytes of a `tokenizer.json` that is at `place`, and compares its vocabulary with the
    /// model's.
    pub fn parse<C: Config>(place: &str, bytes: &[u8]) -> Result<Self, TokenizerError> {
        let (tokenizer, added) = Self::read(place, bytes)?;
        check_vocabulary::<C>(place, &tokenizer.inner)?;
        tokenizer.check_added(place, &added)?;
        Ok(tokenizer)
    }

    /// Parses the bytes of a `tokenizer.json` of the family's pipeline, with a vocabulary of any size,
    /// also one with ids that no token has.
    pub fn of_any_model(place: &str, bytes: &[u8]) -> Result<Self, TokenizerError> {
        let (tokenizer, added) = Self::read(place, bytes)?;
        tokenizer.check_added(place, &added)?;
        Ok(tokenizer)
    }

    fn read(place: &str, bytes: &[u8]) -> Result<(Self, Vec<Added>), TokenizerError> {
        let format = |found: String| TokenizerError::Format { place: place.to_owned(), found };
        let (inner, added) = file::read(bytes).map_err(format)?;
        Ok((Self { inner, bytes: ByteAlphabet::new() }, added))
    }

    /// Refuses a file whose added tokens have other ids once it is read: the library numbers them by
    /// itself, from the vocabulary's size, unless the vocabulary has them.
    fn check_added(&self, place: &str, added: &[Added]) -> Result<(), TokenizerError> {
        let Some(Added { id, token }) =
            added.iter().find(|added| self.id_of(&added.token.content) != Some(added.id))
        else {
            return Ok(());
        };
        let read = self.id_of(&token.content).map_or_else(|| "none".to_owned(), |id| id.to_string());
        let content = token.content.escape_debug();
        let found = format!("the added token `{content}` with the id {id}, read as {read}");
        Err(TokenizerError::Format { place: place.to_owned(), found })
    }

    /// The ids of a text. Nothing is put before or after them.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let encoding =
            self.inner.encode(text, false).map_err(|error| TokenizerError::Encode(error.to_string()))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The ids of bytes that should be UTF-8: what is not becomes U+FFFD, one for each longest
    /// beginning of a character, as Python's `errors="replace"` does it.
    pub fn encode_bytes(&self, bytes: &[u8]) -> Result<Vec<u32>, TokenizerError> {
        self.encode(&String::from_utf8_lossy(bytes))
    }

    /// The id of a token by its text, if there is one.
    pub fn id_of(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The text of ids, without special tokens. Bytes that are no UTF-8 become U+FFFD.
    pub fn decode(&self, ids: &[u32]) -> String {
        let mut stream = self.stream();
        let mut text: String = ids.iter().map(|&id| stream.push(id)).collect();
        text.push_str(&stream.finish());
        text
    }

    /// A decoder that takes ids one by one.
    pub fn stream(&self) -> TextStream<'_> {
        TextStream { tokenizer: self, shows_special: false, pending: Vec::new() }
    }

    /// A decoder that takes ids one by one and writes special tokens too, as their own text: in a
    /// conversation, tags are part of what the assistant says.
    pub fn stream_with_special(&self) -> TextStream<'_> {
        TextStream { shows_special: true, ..self.stream() }
    }

    /// The bytes of a token; none for an id without one, or for a special token that is not shown.
    fn bytes_of(&self, id: u32, shows_special: bool) -> Vec<u8> {
        let Some(token) = self.inner.id_to_token(id) else { return Vec::new() };
        match self.inner.get_added_vocabulary().is_special_token(&token) {
            false => self.bytes.bytes_of(&token),
            true if shows_special => token.into_bytes(),
            true => Vec::new(),
        }
    }
}

/// Text as it grows token by token. A character whose bytes are spread over tokens appears when
/// its last byte is there, never in part.
pub struct TextStream<'t> {
    tokenizer: &'t Tokenizer,
    shows_special: bool,
    /// The beginning of a character: at most three bytes.
    pending: Vec<u8>,
}

impl TextStream<'_> {
    /// The text that is certain now that `id` has come.
    pub fn push(&mut self, id: u32) -> String {
        self.pending.extend(self.tokenizer.bytes_of(id, self.shows_special));
        let incomplete = incomplete_tail(&self.pending);
        let tail = self.pending.split_off(self.pending.len() - incomplete);
        let text = String::from_utf8_lossy(&self.pending).into_owned();
        self.pending = tail;
        text
    }

    /// What is left when no more ids come: U+FFFD for a character that was cut off, else nothing.
    #[must_use]
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.pending).into_owned()
    }
}

/// The number of bytes at the end that more bytes may complete to a character.
fn incomplete_tail(bytes: &[u8]) -> usize {
    match bytes.utf8_chunks().last() {
        Some(chunk) if bytes.ends_with(chunk.invalid()) => {
            let tail = chunk.invalid();
            // `error_len` is none exactly when the bytes end inside a character.
            match core::str::from_utf8(tail) {
                Err(error) if error.error_len().is_none() => tail.len(),
                _ => 0,
            }
        }
        _ => 0,
    }
}

/// The alphabet in which byte-level BPE writes bytes: printable Latin-1 characters are themselves,
/// and the other bytes, in order, are the characters from U+0100.
struct ByteAlphabet(HashMap<char, u8>);

impl ByteAlphabet {
    fn new() -> Self {
        let is_itself = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
        let mut next = '\u{100}'..;
        let letters = (0..=u8::MAX).filter_map(|byte| {
            let letter = if is_itself(byte) { Some(char::from(byte)) } else { next.next() };
            letter.map(|letter| (letter, byte))
        });
        Self(letters.collect())
    }

    /// The bytes of a token. An added token is written in plain text: if one of its characters is
    /// not of the alphabet, it stands for itself.
    fn bytes_of(&self, token: &str) -> Vec<u8> {
        let bytes: Option<Vec<u8>> = token.chars().map(|letter| self.0.get(&letter).copied()).collect();
        bytes.unwrap_or_else(|| token.as_bytes().to_vec())
    }
}

fn check_vocabulary<C: Config>(place: &str, inner: &tokenizers::Tokenizer) -> Result<(), TokenizerError> {
    let refuse = |expected: String, found: String| {
        let place = place.to_owned();
        Err(TokenizerError::Vocabulary { place, config: C::NAME, expected, found })
    };
    let rows = C::Vocab::SIZE;
    let named = (0..rows as u32).filter(|&id| inner.id_to_token(id).is_some()).count();
    // Only then is the vocabulary worth a copy.
    if inner.get_vocab_size(true) > named
        && let Some((token, id)) = inner.get_vocab(true).into_iter().max_by_key(|(_, id)| *id)
        && id as usize >= rows
    {
        return refuse(format!("ids below {rows}"), format!("id {id} (`{}`)", token.escape_debug()));
    }
    let least = rows * NAMED_ROWS_PERCENT / 100;
    if named < least {
        return refuse(format!("at least {least} tokens for {rows} rows"), format!("{named}"));
    }
    let expected = || format!("a special token with the end-of-sequence id {}", C::EOS);
    match inner.id_to_token(C::EOS) {
        Some(token) if inner.get_added_vocabulary().is_special_token(&token) => Ok(()),
        Some(token) => refuse(expected(), format!("the ordinary token `{}`", token.escape_debug())),
        None => refuse(expected(), "no token with that id".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_has_a_letter_for_every_byte() {
        let alphabet = ByteAlphabet::new();
        assert_eq!(alphabet.0.len(), 256);
        assert_eq!(alphabet.bytes_of("\u{120}the\u{10a}"), b" the\n");
        assert_eq!(alphabet.bytes_of("<\u{4e00}>"), "<\u{4e00}>".as_bytes());
    }

    #[test]
    fn only_a_tail_that_can_be_completed_is_held_back() {
        assert_eq!(incomplete_tail(b"abc"), 0);
        assert_eq!(incomplete_tail(b""), 0);
        assert_eq!(incomplete_tail("a\u{e9}".as_bytes()), 0);
        assert_eq!(incomplete_tail(b"a\xc3"), 1);
        assert_eq!(incomplete_tail(b"\xf0\x9f\x98"), 3);
        // 0xff begins no character; 0xf0 0x28 is broken already.
        assert_eq!(incomplete_tail(b"a\xff"), 0);
        assert_eq!(incomplete_tail(b"\xf0\x28"), 0);
        assert_eq!(incomplete_tail(b"\xff\xe2\x82"), 2);
    }
}
