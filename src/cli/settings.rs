//! The configuration for a command.

use std::path::{Path, PathBuf};

use clap::Args;
use tracing::{info, warn};

use super::exit::Failure;
use crate::server::config::{Config, ConfigError};

/// The name of the configuration file in the documentation. The file is never read unless
/// `--config` names it.
const USUAL_NAME: &str = "idmint.toml";

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

    /// Logs which file was read. Warns if none was read although the current folder has one.
    pub(super) fn log_file(&self) {
        match &self.config {
            Some(path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                info!(path = %path.display(), "the configuration file is {}", path.display());
            }
            None if Path::new(USUAL_NAME).exists() => warn!(
                "no configuration file was read: ./{USUAL_NAME} exists, but --config {USUAL_NAME} was not given"
            ),
            None => info!("no configuration file was read: --config was not given"),
        }
    }

    /// Reads the configuration like [`load`](Self::load), but returns a [`ConfigError`] instead of
    /// the failure of the command, so that the caller can continue.
    ///
    /// # Errors
    /// Returns [`ConfigError`] if the configuration is invalid.
    pub(super) fn read(&self, flags: toml::Table) -> Result<Config, ConfigError> {
        // Variables that are not UTF-8 are ignored, because the value of every setting is UTF-8.
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Config::load(self.config.as_deref(), variables, flags)
    }
}
