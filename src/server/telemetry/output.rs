//! Output to a stream that may stall, such as a pipe. Lines go through a bounded queue to a thread.
//! Only this thread is blocked while the stream stalls.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};

/// The maximum number of queued lines. This many lines are enough for a burst, and take less than a
/// megabyte.
const LINES_MAX: usize = 4_096;

/// The time limit for writing lines (such as log lines) still queued when the process ends.
const CLOSE_MAX: Duration = Duration::from_secs(1);

/// An output stream whose writers never block. If the queue is full, the next line is dropped and
/// counted.
pub(super) struct Output {
    lines: NonBlocking,
    unwritten: Arc<AtomicU64>,
    guard: WorkerGuard,
}

impl Output {
    /// Starts a thread with the name `thread_name` that writes queued lines to `stream`. Returns
    /// the output to which lines can be added.
    pub(super) fn to(stream: impl Write + Send + 'static, thread_name: &str) -> Self {
        let unwritten = Arc::new(AtomicU64::new(0));
        let stream = CountedStream {
            stream,
            failures: Arc::clone(&unwritten),
        };
        let queue = NonBlockingBuilder::default()
            .lossy(true)
            .buffered_lines_limit(LINES_MAX)
            .thread_name(thread_name);
        let (lines, guard) = queue.finish(stream);
        Self {
            lines,
            unwritten,
            guard,
        }
    }

    /// Returns a writer to this output. The bytes of each call of `write` are one line.
    pub(super) fn lines(&self) -> NonBlocking {
        self.lines.clone()
    }

    /// Returns a function that counts the lines that were dropped because the queue was full or the
    /// stream failed.
    pub(super) fn lines_dropped(&self) -> impl Fn() -> u64 + Send + Sync + 'static {
        let (queue, unwritten) = (self.lines.error_counter(), Arc::clone(&self.unwritten));
        move || queue.dropped_lines() as u64 + unwritten.load(Ordering::Relaxed)
    }

    /// Writes the queued lines, for at most `CLOSE_MAX`.
    pub(super) fn close(self) {
        let (closed, is_closed) = mpsc::channel();
        // Drop the guard of the queue on a separate thread, because its `drop` may block. It waits
        // for the queue only for a bounded time, but if the queue stays full, it then prints an
        // error to standard output, which may stall.
        let closing = move || {
            drop(self.guard);
            let _ = closed.send(());
        };
        if thread::Builder::new()
            .name("output-close".to_owned())
            .spawn(closing)
            .is_ok()
        {
            let _ = is_closed.recv_timeout(CLOSE_MAX);
        }
    }
}

/// A stream that counts failed writes.
struct CountedStream<S> {
    stream: S,
    /// The number of failed calls of `write`. Each call writes one line.
    ///
    /// Written by: `write`. Read by: `Output::lines_dropped`.
    /// Ordering: `Relaxed`, because the number is only reported.
    /// Tested by: `what_cannot_be_written_is_counted`.
    failures: Arc<AtomicU64>,
}

impl<S: Write> Write for CountedStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stream.write(bytes);
        if written
            .as_ref()
            .is_err_and(|error| error.kind() != io::ErrorKind::Interrupted)
        {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender};

    use super::*;

    /// A stream in which each write waits until the test lets it continue.
    struct Gate {
        entered: Sender<()>,
        opened: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.entered.send(());
            let _ = self.opened.recv();
            self.written
                .lock()
                .expect("no panic")
                .extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_finds_the_queue_full_is_dropped_and_counted_and_the_end_does_not_wait_for_it() {
        let ((entered, is_entered), (open, opened)) = (mpsc::channel(), mpsc::channel());
        let written = Arc::default();
        let output = Output::to(
            Gate {
                entered,
                opened,
                written: Arc::clone(&written),
            },
            "test",
        );
        let (mut lines, dropped) = (output.lines(), output.lines_dropped());
        lines.write_all(b"first\n").expect("it never fails");
        is_entered.recv().expect("the first line is being written");
        for _ in 0..LINES_MAX + 7 {
            lines.write_all(b"more\n").expect("it never fails");
        }
        assert_eq!(dropped(), 7);
        output.close();
        assert_eq!(
            written.lock().expect("no panic").len(),
            0,
            "the stream is stuck all the time"
        );
        drop(open);
    }

    #[test]
    fn what_waits_is_written_before_the_end() {
        let written: Arc<Mutex<Vec<u8>>> = Arc::default();
        let ((entered, _), (open, opened)) = (mpsc::channel(), mpsc::channel());
        drop(open);
        let output = Output::to(
            Gate {
                entered,
                opened,
                written: Arc::clone(&written),
            },
            "test",
        );
        for _ in 0..100 {
            output.lines().write_all(b"line\n").expect("it never fails");
        }
        let dropped = output.lines_dropped();
        output.close();
        assert_eq!(
            (dropped(), written.lock().expect("no panic").len()),
            (0, 500)
        );
    }

    #[test]
    fn what_cannot_be_written_is_counted() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let output = Output::to(Full, "test");
        let dropped = output.lines_dropped();
        output.lines().write_all(b"one\n").expect("it never fails");
        output.lines().write_all(b"two\n").expect("it never fails");
        output.close();
        assert_eq!(dropped(), 2);
    }
}
