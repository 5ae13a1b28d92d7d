//! The errors with which a configuration is refused.

use std::path::PathBuf;
use std::{fmt, io};

/// The reason why a configuration is refused. Nothing was started, and the exit code is 78
/// (`EX_CONFIG`).
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is missing or cannot be read.
    #[error("cannot read the configuration {}", .path.display())]
    Unreadable {
        /// The path that the caller gave.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// The file is not TOML. No setting was checked.
    #[error("{}, line {line}: not TOML: {problem}", .path.display())]
    NotToml {
        /// The path that the caller gave.
        path: PathBuf,
        /// The line of the error, from 1.
        line: usize,
        /// The message of the parser.
        problem: String,
    },
    /// A setting is unknown, out of bounds or in conflict with other settings.
    #[error("{origin}: {key}: {problem}")]
    Setting {
        /// The full key, such as `http.listen`.
        key: String,
        /// The layer that set the setting.
        origin: Origin,
        /// The invalid value and the accepted values.
        problem: String,
    },
}

/// The layer from which a setting came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The default value.
    Default,
    /// The configuration file.
    File {
        /// The path that the caller gave.
        path: PathBuf,
        /// The line, from 1. `None` if the error concerns several settings.
        line: Option<usize>,
    },
    /// The environment variable of this name.
    Variable(String),
    /// The command line.
    Flags,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File {
                path,
                line: Some(line),
            } => write!(f, "{}, line {line}", path.display()),
            Self::File { path, line: None } => write!(f, "{}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flags => f.write_str("command line"),
        }
    }
}
