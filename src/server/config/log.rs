//! What is logged, and how it reads.

use std::path::PathBuf;

use serde::Deserialize;
use tracing::level_filters::LevelFilter;

/// The section `log`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// How a line reads. Default: text.
    pub format: LogFormat,
    /// The least severe line that is written. Default: info.
    pub level: LogLevel,
    /// The file of the audit trail. Default: none.
    pub audit: Option<PathBuf>,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            format: LogFormat::Text,
            level: LogLevel::Info,
            audit: None,
        }
    }
}

/// How a log line reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines: one JSON object a line.
    Json,
}

/// How severe a log line is, most severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Somebody must act.
    Error,
    /// Somebody should look.
    Warn,
    /// What an operator wants to know the day after.
    Info,
    /// What the service decides, request by request.
    Debug,
    /// Everything.
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
