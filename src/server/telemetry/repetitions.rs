//! Deduplicates log lines. Within a second, a repeated line is only counted, and one summary line
//! reports the count.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber, debug, error, info, trace, warn};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// The target of summary lines. They are never deduplicated.
const SUMMARY: &str = "idmint::repetitions";

/// The maximum number of different log lines that are remembered per second to recognize
/// repetitions. Further lines are logged even if they repeat, until the output queue is full.
const REMEMBERED_MAX: usize = 1_024;

/// A filter for log lines. Each line passes only once between two calls of [`Repetitions::sum_up`],
/// which logs how often the line was repeated.
#[derive(Clone, Default)]
pub(super) struct Repetitions(Arc<Mutex<HashMap<Line, Repeated>>>);

/// The key by which repeated log lines are recognized: the place in the code that writes the line,
/// its message and its field values. Lines with different field values, such as different request
/// ids, are not repetitions. Operators search the log for such values, so each of these lines must
/// be written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Line {
    place: Identifier,
    text: Text,
}

#[derive(Debug, Clone, Copy)]
struct Repeated {
    level: Level,
    times: u64,
}

impl Repetitions {
    /// Logs how often each line was repeated since the last call, and then forgets all lines.
    pub(super) fn sum_up(&self) {
        let seen = std::mem::take(&mut *self.seen());
        for (Line { text, .. }, Repeated { level, times }) in
            seen.into_iter().filter(|(_, again)| again.times > 0)
        {
            let message = text.message;
            macro_rules! tell {
                ($macro:ident) => {
                    $macro!(target: SUMMARY, times, "repeated {times} times within a second: {message}")
                };
            }
            match level {
                Level::ERROR => tell!(error),
                Level::WARN => tell!(warn),
                Level::INFO => tell!(info),
                Level::DEBUG => tell!(debug),
                Level::TRACE => tell!(trace),
            }
        }
    }

    /// Returns `true` if the log line must be written, because it is no repetition or because too
    /// many lines are remembered already.
    fn is_news(&self, line: Line, level: Level) -> bool {
        let mut seen = self.seen();
        if let Some(repeated) = seen.get_mut(&line) {
            repeated.times += 1;
            return false;
        }
        if seen.len() < REMEMBERED_MAX {
            seen.insert(line, Repeated { level, times: 0 });
        }
        true
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<Line, Repeated>> {
        // If a thread panicked while it held this lock, the map is still usable. At worst, the
        // number of repetitions of one line is too low by one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Subscriber> Layer<S> for Repetitions {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if metadata.target() == SUMMARY {
            return true;
        }
        let mut text = Text::default();
        event.record(&mut text);
        self.is_news(
            Line {
                place: metadata.callsite(),
                text,
            },
            *metadata.level(),
        )
    }
}

/// The text of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Text {
    message: String,
    /// The values of all fields except the message. The names of the fields are not compared,
    /// because all events from the same place in the code have the same field names.
    values: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let written = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            _ => write!(self.values, "{value:?} "),
        };
        written.expect("a text takes what is written to it");
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// The log output of one test.
    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the lines that `work` logs.
    fn lines_of(work: impl FnOnce(&Repetitions)) -> Vec<String> {
        let (sink, repetitions) = (Sink::default(), Repetitions::default());
        let writer = sink.clone();
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(move || writer.clone())
            .without_time();
        let lines = lines.with_target(false).with_ansi(false);
        let subscriber = tracing_subscriber::registry()
            .with(repetitions.clone())
            .with(lines);
        tracing::subscriber::with_default(subscriber, || work(&repetitions));
        let written = sink.0.lock().expect("no panic").clone();
        String::from_utf8(written)
            .expect("text")
            .lines()
            .map(|line| line.trim().to_owned())
            .collect()
    }

    #[test]
    fn a_line_is_written_once_and_then_how_often_it_came_again() {
        let say = |text: &str, caller: u32| warn!(caller, "{text}");
        let lines = lines_of(|repetitions| {
            (0..1_000).for_each(|_| say("no room", 0));
            say("another", 0);
            say("no room", 7);
            repetitions.sum_up();
            say("no room", 0);
            repetitions.sum_up();
        });
        assert_eq!(
            lines,
            [
                "WARN no room caller=0",
                "WARN another caller=0",
                "WARN no room caller=7",
                "WARN repeated 999 times within a second: no room times=999",
                "WARN no room caller=0",
            ]
        );
    }

    #[test]
    fn the_same_text_of_another_place_is_another_line() {
        let lines = lines_of(|repetitions| {
            info!("again");
            info!("again");
            repetitions.sum_up();
        });
        assert_eq!(lines, ["INFO again", "INFO again"]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let lines = lines_of(|repetitions| {
            for number in 0..REMEMBERED_MAX + 10 {
                info!("number {number}");
            }
            assert_eq!(repetitions.seen().len(), REMEMBERED_MAX);
        });
        assert_eq!(lines.len(), REMEMBERED_MAX + 10);
    }
}
