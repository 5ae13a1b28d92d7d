//! Where log lines go.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::server::config::{LogConfig, LogFormat};

/// Writes log lines to standard error, as the configuration says.
pub fn start_logging(config: &LogConfig) {
    let filter = EnvFilter::new(config.level.as_str());
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_target(false);
    // Colours are for eyes; in a file or a journal they only get in the way of a search.
    let lines = lines.with_ansi(io::stderr().is_terminal());
    // A line that cannot be written is lost. Reporting that would again write to standard error, and panic there.
    let lines = lines.log_internal_errors(false);
    // Logging that someone else has set up, a test for instance, stays.
    let _ = match config.format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
}
