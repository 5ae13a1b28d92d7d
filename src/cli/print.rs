//! Writing to standard output.

use std::fmt;
use std::io::{self, ErrorKind, Write};

use super::exit::{Exit, Failure};

/// Writes the text, all of it, to standard output; if nobody reads it any more, that is no failure.
///
/// # Errors
/// 74.
pub(super) fn print(text: fmt::Arguments<'_>) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_fmt(text).and_then(|()| out.flush()) {
        // Whoever reads may have seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Failure::new(Exit::Io, format!("standard output: {error}"))),
    }
}
