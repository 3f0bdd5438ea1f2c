//! Standard output that may be closed by its reader.

use std::io::{self, Write};

/// Whether anybody is still reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// As far as is known.
    There,
    /// It closed the pipe, as `head` does when it has enough: no error, but no reason to go on.
    Gone,
}

/// Writes and flushes, so that a text appears as it grows.
pub(super) fn write(out: &mut impl Write, text: &str) -> io::Result<Reader> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(io::Error::new(error.kind(), format!("standard output: {error}"))),
    }
}
