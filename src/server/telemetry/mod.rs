//! Output for operators: the banner, the log, the audit trail and the metrics.
//!
//! Log lines and the banner go through queues to separate threads. If the reader of the output
//! stalls, only these threads are blocked.

mod audit;
mod output;
mod repetitions;
mod whole_lines;

use std::io::{self, IsTerminal, Write};
use std::panic;
use std::thread;
use std::time::Duration;

use prometheus::Registry;
use prometheus::process_collector::ProcessCollector;
use tracing::error;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use self::output::Output;
use self::repetitions::Repetitions;
use crate::server::config::{LogConfig, LogFormat};

pub use audit::AuditError;
pub(super) use audit::{Act, Audit};

/// The interval at which a summary of repeated messages is logged.
const SUM_UP_EVERY: Duration = Duration::from_secs(1);

/// The log on standard error, and the banner on standard output.
pub struct Telemetry {
    log: Output,
    banner: Output,
    repetitions: Repetitions,
}

impl Telemetry {
    /// Starts logging with the settings in the section `log` of the configuration. From then on,
    /// panics are logged, too.
    pub fn start(config: &LogConfig) -> Self {
        let log = Output::to(io::stderr(), "log");
        let banner = Output::to(io::stdout(), "banner");
        let repetitions = Repetitions::default();
        // Colours are used only on a terminal, because colour codes disturb a text search in a file
        // or journal. See https://no-color.org.
        let wants_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let has_colours = io::stderr().is_terminal() && !wants_none;
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(log.lines())
            .with_ansi(has_colours);
        // A log line that cannot be written is dropped. Reporting the failure would write to
        // standard error again, and panic.
        let lines = lines.with_target(false).log_internal_errors(false);
        let filter = LevelFilter::from(config.level);
        let registry = tracing_subscriber::registry()
            .with(filter)
            .with(repetitions.clone());
        let is_ours = match config.format {
            LogFormat::Text => registry.with(lines).try_init(),
            LogFormat::Json => registry.with(lines.json()).try_init(),
        };
        // If a log subscriber is already installed, for instance by a test, that subscriber is
        // kept.
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

    /// Writes the banner.
    pub fn write_banner(&self, text: &str) {
        let _ = self.banner.lines().write_all(text.as_bytes());
    }

    /// Returns a function that returns the number of log lines lost so far, because the queue was
    /// full or a write failed.
    pub fn log_lines_dropped(&self) -> impl Fn() -> u64 + Send + Sync + 'static {
        self.log.lines_dropped()
    }

    /// Writes the queued lines, for at most two seconds.
    pub fn close(self) {
        self.repetitions.sum_up();
        self.banner.close();
        self.log.close();
    }
}

/// Logs every panic through the queue of the log. If a panic were written directly, the panicking
/// thread would block while standard error is full.
fn log_panics() {
    panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("without a message");
        let place = panic
            .location()
            .map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        error!("a thread panicked at {place}, which is a bug: {message}");
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

/// Returns a registry with metrics of the process itself: its memory, CPU time, open descriptors
/// and start time.
pub(super) fn registry() -> Registry {
    let registry = Registry::new();
    registry
        .register(Box::new(ProcessCollector::for_self()))
        .expect("an empty registry has no collector of the same name");
    registry
}
