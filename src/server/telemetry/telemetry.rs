//! Where log lines and the banner go: through queues, so that a reader who stops reading stops nothing else.

use std::io::{self, IsTerminal, Write};
use std::panic;
use std::thread;
use std::time::Duration;

use tracing::error;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::output::Output;
use super::repetitions::Repetitions;
use crate::server::config::{LogConfig, LogFormat};

/// How often repeated messages are summed up.
const SUM_UP_EVERY: Duration = Duration::from_secs(1);

/// The log on standard error and the banner on standard output, until they are closed.
pub struct Telemetry {
    log: Output,
    banner: Output,
    repetitions: Repetitions,
}

impl Telemetry {
    /// Begins to write log lines, as the configuration says. Panics are logged, too.
    pub fn start(config: &LogConfig) -> Self {
        let (log, banner) = (
            Output::to(io::stderr(), "log"),
            Output::to(io::stdout(), "banner"),
        );
        let repetitions = Repetitions::default();
        // Colours are for eyes; in a file or a journal they only get in the way of a search.
        // https://no-color.org
        let wants_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let has_colours = io::stderr().is_terminal() && !wants_none;
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(log_lines(&log))
            .with_ansi(has_colours);
        // A line that cannot be written is lost. Reporting that would again write to standard error, and panic there.
        let lines = lines.with_target(false).log_internal_errors(false);
        let filter = LevelFilter::from(config.level);
        let registry = tracing_subscriber::registry()
            .with(filter)
            .with(repetitions.clone());
        let is_ours = match config.format {
            LogFormat::Text => registry.with(lines).try_init(),
            LogFormat::Json => registry.with(lines.json()).try_init(),
        };
        // Logging that someone else has set up, a test for instance, stays.
        if is_ours.is_ok() {
            log_panics();
            sum_up_for_ever(repetitions.clone());
        }
        Self {
            log,
            banner,
            repetitions,
        }
    }

    /// Writes what an operator sees first.
    pub fn write_banner(&self, text: &str) {
        let _ = self.banner.lines().write_all(text.as_bytes());
    }

    /// Counts the log lines that nobody will read: they found the queue full, or could not be written.
    pub fn log_lines_dropped(&self) -> impl Fn() -> u64 + Send + Sync + 'static {
        self.log.lines_dropped()
    }

    /// Writes what still waits, for a second or two at most.
    pub fn close(self) {
        self.repetitions.sum_up();
        self.banner.close();
        self.log.close();
    }
}

fn log_lines(
    log: &Output,
) -> impl Fn() -> tracing_appender::non_blocking::NonBlocking + Send + Sync + 'static {
    let lines = log.lines();
    move || lines.clone()
}

/// A panic is a line like any other; written directly, it would wait for whoever reads standard error.
fn log_panics() {
    panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("without a message");
        let place = panic
            .location()
            .map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        error!("a thread panicked at {place}: {message}");
    }));
}

fn sum_up_for_ever(repetitions: Repetitions) {
    let work = move || {
        loop {
            thread::sleep(SUM_UP_EVERY);
            repetitions.sum_up();
        }
    };
    if let Err(error) = thread::Builder::new()
        .name("log-repetitions".to_owned())
        .spawn(work)
    {
        error!("repeated log lines will not be counted: {error}");
    }
}
