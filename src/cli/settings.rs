//! The configuration for a command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use tracing::{info, warn};

use crate::server::config::{Config, ConfigError, VARIABLE_PREFIX};

/// The usual name of the configuration file. The file is read only if `--config` names it.
const USUAL_NAME: &str = "idmint.toml";

/// The configuration: defaults, then a file, then the environment, then flags.
#[derive(Debug, Args)]
pub(super) struct Settings {
    /// The configuration file (TOML); config/default.toml shows every setting.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Settings {
    /// Logs which configuration file was read. Logs a warning if none was read, but the current
    /// folder contains `idmint.toml`, because the operator may have forgotten `--config`.
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

    /// Reads the configuration of a node. The values in `flags` override all other layers.
    ///
    /// # Errors
    /// Returns [`ConfigError`], which names the invalid setting and its origin.
    pub(super) fn load(&self, flags: toml::Table) -> Result<Config, ConfigError> {
        Config::load(self.config.as_deref(), variables()?, flags)
    }

    /// Reads the configuration for a command that runs no node and so needs no slot (node's place).
    ///
    /// # Errors
    /// Returns [`ConfigError`], which names the invalid setting and its origin.
    pub(super) fn load_without_slot(&self) -> Result<Config, ConfigError> {
        Config::load_without_slot(self.config.as_deref(), variables()?)
    }
}

/// Reads the settings in the environment variables alone.
///
/// # Errors
/// Returns [`ConfigError`], which names the invalid variable.
pub(super) fn load_environment() -> Result<Config, ConfigError> {
    Config::from_environment(variables()?)
}

/// Returns the environment variables of this process. In variables that are not settings, bytes
/// that are not UTF-8 are replaced.
///
/// # Errors
/// Returns [`ConfigError::NotUtf8`] for a setting whose name or value is not UTF-8.
fn variables() -> Result<impl Iterator<Item = (String, String)>, ConfigError> {
    let as_text = |(name, value): (OsString, OsString)| {
        let is_text = name.to_str().is_some() && value.to_str().is_some();
        let is_setting = name
            .as_encoded_bytes()
            .starts_with(VARIABLE_PREFIX.as_bytes());
        let name = name.to_string_lossy().into_owned();
        if is_setting && !is_text {
            return Err(ConfigError::NotUtf8 { name });
        }
        Ok((name, value.to_string_lossy().into_owned()))
    };
    let variables: Vec<_> = std::env::vars_os().map(as_text).collect::<Result<_, _>>()?;
    Ok(variables.into_iter())
}
