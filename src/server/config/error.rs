//! Why a configuration is refused.

use std::path::PathBuf;
use std::{fmt, io};

/// A configuration that is not used. Nothing has been started; every variant is exit code 78 (`EX_CONFIG`).
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is missing or may not be read.
    #[error("cannot read the configuration {}", .path.display())]
    Unreadable {
        /// The file as named by the caller.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        cause: io::Error,
    },
    /// The file is not TOML; nothing in it was looked at.
    #[error("{}, line {line}: not TOML: {problem}", .path.display())]
    NotToml {
        /// The file as named by the caller.
        path: PathBuf,
        /// Where it went wrong, from 1.
        line: usize,
        /// What the parser expected.
        problem: String,
    },
    /// One setting is unknown, out of bounds or does not go with the others.
    #[error("{origin}: {key}: {problem}")]
    Setting {
        /// The key from the top, `http.listen`.
        key: String,
        /// Which layer it came from.
        origin: Origin,
        /// The value and what is accepted.
        problem: String,
    },
}

/// The layer a setting came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// The configuration file.
    File {
        /// The file as named by the caller.
        path: PathBuf,
        /// From 1; `None` where settings of several places do not go together.
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
