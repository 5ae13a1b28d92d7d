//! Where the settings of a command come from.

use std::path::PathBuf;

use clap::Args;

use super::exit::Failure;
use crate::server::config::{Config, ConfigError};

/// The configuration: defaults, then a file, then the environment, then flags.
#[derive(Debug, Args)]
pub(super) struct Settings {
    /// The configuration file (TOML); config/default.toml shows every setting.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Settings {
    /// Reads the configuration, with `flags` over everything else.
    ///
    /// # Errors
    /// Exit code 78, naming the setting and where it was found.
    pub(super) fn load(&self, flags: toml::Table) -> Result<Config, Failure> {
        Ok(self.read(flags)?)
    }

    /// As [`load`](Self::load), for callers that go on if it fails.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub(super) fn read(&self, flags: toml::Table) -> Result<Config, ConfigError> {
        // A variable that is no UTF-8 is none of ours: every setting is text.
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Config::load(self.config.as_deref(), variables, flags)
    }
}
