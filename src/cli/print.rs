//! Writing to standard output, and to standard error why a command failed, or how far it is.

use std::fmt;
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::exit::{Exit, Failure};

/// A shorter file is appended before anyone could look at a bar.
pub(super) const SENT_SHOWN_FROM_LEN: u64 = 8 * 1024 * 1024;

/// A shorter file is read, and its events or ids checked, before anyone could look at a bar.
pub(super) const READ_SHOWN_FROM_LEN: u64 = 64 * 1024 * 1024;

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
        written => {
            written.map_err(|error| Failure::new(Exit::Io, format!("standard output: {error}")))
        }
    }
}

/// Standard output, line by line, until nobody reads it any more, which is no failure.
pub(super) struct Lines {
    out: BufWriter<StdoutLock<'static>>,
    are_read: bool,
}

impl Lines {
    /// With no line yet.
    pub(super) fn begin() -> Lines {
        Lines {
            out: BufWriter::new(io::stdout().lock()),
            are_read: true,
        }
    }

    /// Whether somebody may still read.
    pub(super) fn are_read(&self) -> bool {
        self.are_read
    }

    /// Writes a line.
    ///
    /// # Errors
    /// 74.
    pub(super) fn write(&mut self, line: &str) -> Result<(), Failure> {
        let written = writeln!(self.out, "{line}");
        self.note(written)
    }

    /// Writes what has not been written yet.
    ///
    /// # Errors
    /// 74.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        let flushed = self.out.flush();
        self.note(flushed)
    }

    fn note(&mut self, written: io::Result<()>) -> Result<(), Failure> {
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.are_read = false;
                Ok(())
            }
            written => {
                written.map_err(|error| Failure::new(Exit::Io, format!("standard output: {error}")))
            }
        }
    }
}

/// A bar for a file of at least `shown_from_len` bytes, if standard error is a terminal.
pub(super) fn progress_bar(len: u64, shown_from_len: u64) -> ProgressBar {
    if len < shown_from_len {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(
        "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
    );
    ProgressBar::new(len).with_style(style.expect("a template of known keys"))
}

/// A bar for `count` conjunctions, or for nobody knows how many, if standard error is a terminal.
pub(super) fn conjunction_bar(count: Option<u64>) -> ProgressBar {
    let template = if count.is_some() {
        "{bar:40} {human_pos} of {human_len}, {eta} left"
    } else {
        "{human_pos} so far"
    };
    let style = ProgressStyle::with_template(template).expect("a template of known keys");
    count
        .map_or_else(ProgressBar::no_length, ProgressBar::new)
        .with_style(style)
}
