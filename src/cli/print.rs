//! Writing to standard output, and why a command failed to standard error.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::exit::{Exit, Failure};

/// How long a command that failed waits for somebody to read why.
const COMPLAINT_MAX: Duration = Duration::from_secs(1);

/// Writes why a command failed to standard error; if nobody reads there, the exit code says it alone.
pub(super) fn complain(failure: &Failure) {
    let complaint = format!("idmint: {failure}\n");
    let (written, is_written) = mpsc::channel();
    let write = move || {
        let _ = io::stderr().write_all(complaint.as_bytes());
        let _ = written.send(());
    };
    if thread::Builder::new().spawn(write).is_ok() {
        let _ = is_written.recv_timeout(COMPLAINT_MAX);
    }
}

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
