//! Where log lines go.

use std::io;

use tracing_subscriber::EnvFilter;

use super::config::{LogConfig, LogFormat};

/// Writes log lines to standard error, as the configuration says.
pub fn start_logging(config: &LogConfig) {
    let filter = EnvFilter::new(config.level.as_str());
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_target(false);
    // Logging that someone else has set up, a test for instance, stays.
    let _ = match config.format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
}
