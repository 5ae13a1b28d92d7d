//! Settings of the log.

use std::path::PathBuf;

use serde::Deserialize;
use tracing::level_filters::LevelFilter;

/// The section `log`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// The form of a log line. Default: text.
    pub format: LogFormat,
    /// The lowest severity that is logged. Default: info.
    pub level: LogLevel,
    /// The file of the audit trail. Default: none.
    pub audit: Option<PathBuf>,
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// JSON for programs: one object per line.
    Json,
}

/// The severity of a log line, most severe first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// An operator must act.
    Error,
    /// An operator should check.
    Warn,
    /// Facts that an operator may need the next day.
    #[default]
    Info,
    /// The decisions of the service about each request.
    Debug,
    /// All details.
    Trace,
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> LevelFilter {
        match level {
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
            LogLevel::Trace => LevelFilter::TRACE,
        }
    }
}
