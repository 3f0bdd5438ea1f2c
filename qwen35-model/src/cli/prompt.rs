//! Where the prompt comes from.

use std::io::{self, BufRead, Read};

/// The most that is read of standard input: far more text than any context here holds, and far less
/// than a machine's memory.
const LONGEST: u64 = 16 << 20;

/// Why there is no prompt.
#[derive(Debug, thiserror::Error)]
pub(super) enum PromptError {
    /// Neither argument nor input has a character.
    #[error("prompt: expected text, found none")]
    Empty,
    /// Not a text.
    #[error("standard input: expected UTF-8 text, found an invalid sequence at byte {0}")]
    Utf8(usize),
    /// Not a prompt but a library.
    #[error("standard input: expected at most {LONGEST} bytes, found more")]
    Long,
    /// The input failed.
    #[error("standard input: expected text, found: {0}")]
    Io(io::Error),
}

/// The argument, or all of `input` if there is none or it is `-`.
pub(super) fn read(argument: Option<&str>, input: impl Read) -> Result<String, PromptError> {
    let text = match argument {
        Some(text) if text != "-" => text.to_owned(),
        _ => read_all(input)?,
    };
    if text.is_empty() { Err(PromptError::Empty) } else { Ok(text) }
}

/// The next line of `input`, without its break; none at the end.
pub(super) fn read_line(input: &mut impl BufRead) -> Result<Option<String>, PromptError> {
    let mut bytes = Vec::new();
    input.take(LONGEST + 1).read_until(b'\n', &mut bytes).map_err(PromptError::Io)?;
    if bytes.is_empty() { Ok(None) } else { text(bytes).map(Some) }
}

fn read_all(input: impl Read) -> Result<String, PromptError> {
    let mut bytes = Vec::new();
    input.take(LONGEST + 1).read_to_end(&mut bytes).map_err(PromptError::Io)?;
    text(bytes)
}

fn text(bytes: Vec<u8>) -> Result<String, PromptError> {
    if bytes.len() as u64 > LONGEST {
        return Err(PromptError::Long);
    }
    let mut text =
        String::from_utf8(bytes).map_err(|error| PromptError::Utf8(error.utf8_error().valid_up_to()))?;
    // `echo` ends its line; that a text goes on after it is not what is meant.
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_break_at_the_end_of_the_input_is_not_the_prompt() {
        assert_eq!(read(None, &b"Alice was\n"[..]).unwrap(), "Alice was");
        assert_eq!(read(Some("-"), &b"Alice\r\n"[..]).unwrap(), "Alice");
        assert_eq!(read(None, &b"a\n\n"[..]).unwrap(), "a\n");
        assert_eq!(read(Some("a\n"), io::empty()).unwrap(), "a\n");
    }

    #[test]
    fn lines_come_one_by_one() {
        let mut input = &b"a\r\n\n  b\nc"[..];
        let mut next = || read_line(&mut input).unwrap();
        let lines = [next(), next(), next(), next(), next()];
        assert_eq!(
            lines,
            [Some("a"), Some(""), Some("  b"), Some("c"), None].map(|line| line.map(str::to_owned))
        );
        assert!(matches!(read_line(&mut &b"a\xff\nb"[..]), Err(PromptError::Utf8(1))));
        let mut endless = io::BufReader::new(io::repeat(b'a'));
        assert!(matches!(read_line(&mut endless), Err(PromptError::Long)));
    }

    #[test]
    fn what_is_no_prompt_is_refused() {
        assert!(matches!(read(None, io::empty()), Err(PromptError::Empty)));
        assert!(matches!(read(Some(""), &b"text"[..]), Err(PromptError::Empty)));
        assert!(matches!(read(None, &b"\n"[..]), Err(PromptError::Empty)));
        assert!(matches!(read(None, &b"ab\xff"[..]), Err(PromptError::Utf8(2))));
        assert!(matches!(read(None, io::repeat(b'a')), Err(PromptError::Long)));
    }
}
