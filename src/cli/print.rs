//! Input and output of commands. Results are written to standard output, and errors and progress to
//! standard error.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::exit::Failure;

/// The minimum length of a file, in bytes, for which `ledger append` and `ledger import` show a
/// progress bar. A shorter file is sent so quickly that a progress bar would not help.
pub(super) const SENT_SHOWN_FROM_LEN: u64 = 8 * 1024 * 1024;

/// The minimum length of a file, in bytes, for which a progress bar is shown while the file is
/// read. A shorter file is read so quickly that a progress bar would not help.
pub(super) const READ_SHOWN_FROM_LEN: u64 = 64 * 1024 * 1024;

/// The time limit for writing an error message to standard error. A write blocks if no process
/// reads standard error.
const COMPLAINT_MAX: Duration = Duration::from_secs(1);

/// Writes an error message to standard error. If no process reads standard error, only the exit
/// code reports the error.
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

/// Writes a note about the result of a command to standard error. A note that cannot be written is
/// dropped, because the result matters more. `eprintln!` would panic.
pub(super) fn print_note(note: impl fmt::Display) {
    let _ = io::stderr().write_all(format!("idmint: {note}\n").as_bytes());
}

/// Writes the whole text to standard output. If the reader has closed the pipe, this is not an
/// error.
///
/// # Errors
/// Returns exit code 74 if the output fails.
pub(super) fn print(text: fmt::Arguments<'_>) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    is_read(out.write_fmt(text).and_then(|()| out.flush())).map(drop)
}

/// Writes bytes to standard output. If the reader has closed the pipe, this is not an error.
///
/// # Errors
/// Returns exit code 74 if the output fails.
pub(super) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    is_read(out.write_all(bytes).and_then(|()| out.flush())).map(drop)
}

/// Converts the result of a write to standard output. Returns `false` if the reader has closed the
/// pipe, which is not an error, and `true` if the write succeeded.
///
/// # Errors
/// Returns exit code 74 if the output fails.
pub(super) fn is_read(written: io::Result<()>) -> Result<bool, Failure> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::io("standard output", error)),
        Ok(()) => Ok(true),
    }
}

/// Returns a value as JSON text, on one line and without a newline at its end.
pub(super) fn json(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).expect("texts and numbers always serialize")
}

/// Opens a file, or standard input if `file` is `None`. Also returns the name of the input, which
/// error messages can use.
///
/// # Errors
/// Returns exit code 74 if the file cannot be opened.
pub(super) fn open_input(file: Option<&Path>) -> Result<(String, File), Failure> {
    let (name, opened) = match file {
        Some(path) => (path.display().to_string(), File::open(path)),
        None => {
            let stdin = io::stdin().as_fd().try_clone_to_owned();
            ("standard input".to_owned(), stdin.map(File::from))
        }
    };
    match opened {
        Ok(file) => Ok((name, file)),
        Err(error) => Err(Failure::io(name, error)),
    }
}

/// A writer of lines to standard output. If the reader closes the pipe, the writer discards further
/// lines without an error.
pub(super) struct Lines {
    out: BufWriter<StdoutLock<'static>>,
    are_read: bool,
}

impl Lines {
    /// Creates a writer of lines that holds the lock of standard output.
    pub(super) fn begin() -> Lines {
        Lines {
            out: BufWriter::new(io::stdout().lock()),
            are_read: true,
        }
    }

    /// Returns `true` until the reader of standard output closes the pipe.
    pub(super) fn are_read(&self) -> bool {
        self.are_read
    }

    /// Writes a line.
    ///
    /// # Errors
    /// Returns exit code 74 if the output fails.
    pub(super) fn write(&mut self, line: &str) -> Result<(), Failure> {
        let written = writeln!(self.out, "{line}");
        self.note(written)
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// Returns exit code 74 if the output fails.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        let flushed = self.out.flush();
        self.note(flushed)
    }

    fn note(&mut self, written: io::Result<()>) -> Result<(), Failure> {
        self.are_read &= is_read(written)?;
        Ok(())
    }
}

/// Writes a line for each item of a list that is read page by page. `page` takes a cursor, and
/// returns the items after this cursor and the cursor of the next page.
pub(super) async fn write_pages<T>(
    lines: &mut Lines,
    page: impl AsyncFn(Option<String>) -> Result<(Vec<T>, Option<String>), Failure>,
    line: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    let mut after = None;
    while lines.are_read() {
        let (items, next) = page(after).await?;
        for item in &items {
            lines.write(&line(item))?;
        }
        after = next;
        if after.is_none() {
            break;
        }
    }
    Ok(())
}

/// Returns a progress bar for a file of `len` bytes. The bar is visible only if the file has at
/// least `shown_from_len` bytes and standard error is a terminal.
pub(super) fn progress_bar(len: u64, shown_from_len: u64) -> ProgressBar {
    if len < shown_from_len {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(
        "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
    );
    ProgressBar::new(len).with_style(style.expect("a template of known keys"))
}

/// Returns a progress bar for `count` conjunctions. If `count` is `None`, the number of
/// conjunctions is unknown. The bar is visible only if standard error is a terminal.
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
