//! The configuration for a command.

use std::path::{Path, PathBuf};

use clap::Args;
use tracing::{info, warn};

use crate::server::config::{Config, ConfigError};

/// The name that the documentation uses for the configuration file. A file with this name is read
/// only if `--config` names it.
const USUAL_NAME: &str = "idmint.toml";

/// The configuration: defaults, then a file, then the environment, then flags.
#[derive(Debug, Default, Args)]
pub(super) struct Settings {
    /// The configuration file (TOML); config/default.toml shows every setting.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Settings {
    /// Logs which configuration file was read. Logs a warning if no file was read although the
    /// current folder contains a file with the usual name.
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

    /// Reads the configuration. The values in `flags` override all other layers.
    ///
    /// # Errors
    /// Returns [`ConfigError`], which names the invalid setting and its origin.
    pub(super) fn load(&self, flags: toml::Table) -> Result<Config, ConfigError> {
        // A variable that is not UTF-8 is ignored, because the value of every setting is UTF-8.
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Config::load(self.config.as_deref(), variables, flags)
    }
}
