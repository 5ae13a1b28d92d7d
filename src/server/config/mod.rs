//! What the operator decides: every setting of the service, from every place it can come from.
//!
//! Defaults < file < environment < flags. A value is checked where it is read, so that the error names the place
//! it came from; whoever holds a [`Config`] checks nothing again. `config/default.toml` shows every setting.

mod formats;
mod http;
mod log;
mod mint;
mod storage;
mod worker;

mod duration;
mod error;
mod layers;
mod value;

#[cfg(test)]
mod default_file;
#[cfg(test)]
mod loading;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

pub use duration::{duration_of, spell_duration};
pub use error::{ConfigError, Origin};
pub use formats::{ConjunctionConfig, ConjunctionMode, DecodeConfig, FormatsConfig, SiqConfig};
pub use http::{CorsOrigin, HttpConfig};
use layers::Layers;
pub use log::{LogConfig, LogFormat, LogLevel};
pub use mint::{ClockConfig, MintConfig, OnExhausted};
pub use storage::{Engine, StorageConfig};
use worker::Surroundings;
pub use worker::{Assignment, AssignmentKind, Lanes, Slot, WorkerConfig, ordinal_of};

/// Every setting, one section a field.
///
/// `Config::default()` is what runs without a file, a variable or a flag.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where and how the service listens.
    pub http: HttpConfig,
    /// How much one request may ask for and how long it may wait.
    pub mint: MintConfig,
    /// Which worker numbers this process mints with.
    pub worker: WorkerConfig,
    /// How far clocks may be apart.
    pub clock: ClockConfig,
    /// Where the horizon, the ledgers and the anchors last.
    pub storage: StorageConfig,
    /// How a text of several readings is ranked.
    pub decode: DecodeConfig,
    /// What the `siq` format needs beyond its layout.
    pub siq: SiqConfig,
    /// How reports of one conjunction find the same id.
    pub conjunction: ConjunctionConfig,
    /// What is logged, and how it reads.
    pub log: LogConfig,
    /// Which formats there are besides the built-in ones, and which of all are on.
    pub formats: FormatsConfig,
}

impl Config {
    /// Reads the defaults, `file`, the variables under `IDMINT_` and `flags`, later ones over earlier ones.
    ///
    /// Tables are merged key by key; lists and single values replace. `env` is the whole environment: the host name
    /// and whether this is Kubernetes are read from it too. `flags` has the shape of the file
    /// (`{ http = { listen = "…" } }`).
    ///
    /// # Errors
    /// A file that cannot be read or is not TOML, an unknown key, a value out of bounds (even where a later layer
    /// replaces it), or settings that do not go together. Nothing has been started; exit code 78.
    pub fn load(
        file: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
        flags: toml::Table,
    ) -> Result<Self, ConfigError> {
        let env: BTreeMap<String, String> = env.collect();
        let surroundings = Surroundings::of(&env);

        let mut layers = Layers::default();
        if let Some(path) = file {
            layers.add_file(path)?;
        }
        layers.add_environment(&env, surroundings.kubernetes)?;
        layers.add_flags(flags)?;

        let mut config = layers.merged()?;
        config.check(&surroundings, &layers)?;
        Ok(config)
    }

    /// Refuses settings that are each fine alone and do not go together.
    fn check(&mut self, surroundings: &Surroundings, layers: &Layers) -> Result<(), ConfigError> {
        self.worker.assign(surroundings).map_err(|refusal| layers.refusal(refusal.key(), refusal.to_string()))
    }
}
