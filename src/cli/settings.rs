//! The configuration for a command.

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
    /// Reads the configuration. The values in `flags` override all other layers.
    ///
    /// # Errors
    /// Returns exit code 78, naming the invalid setting and its origin.
    pub(super) fn load(&self, flags: toml::Table) -> Result<Config, Failure> {
        Ok(self.read(flags)?)
    }

    /// Reads the configuration like [`load`](Self::load), but returns a [`ConfigError`] instead of
    /// the failure of the command, so that the caller can continue.
    ///
    /// # Errors
    /// Returns [`ConfigError`] if the configuration is invalid.
    pub(super) fn read(&self, flags: toml::Table) -> Result<Config, ConfigError> {
        // The value of every setting is UTF-8, so other variables are ignored.
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Config::load(self.config.as_deref(), variables, flags)
    }
}
