//! Where the horizon, the ledgers and the anchors last.

use std::path::PathBuf;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::units::between;
use super::value;
use crate::storage::EngineChoice;

/// The section `storage`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StorageConfig {
    /// Which store keeps the state. Default: embedded.
    #[serde(deserialize_with = "engine")]
    pub engine: Engine,
    /// The directory of the embedded store, relative to the working directory. Default `./idmint-data`.
    #[serde(deserialize_with = "directory")]
    pub data_dir: PathBuf,
    /// How far ahead a busy node reserves at once: 100 ms (the first reservation) to 1 h. Default 3 s.
    #[serde(deserialize_with = "between::<_, 100, 3_600_000>")]
    pub window: Duration,
}

impl Default for StorageConfig {
    fn default() -> Self {
        Self { engine: Engine::Embedded, data_dir: PathBuf::from("./idmint-data"), window: Duration::from_secs(3) }
    }
}

impl StorageConfig {
    /// The engine, as the store opens it.
    #[must_use]
    pub fn engine_choice(&self) -> EngineChoice {
        match self.engine {
            Engine::Memory => EngineChoice::Memory,
            Engine::Embedded => EngineChoice::Embedded { data_dir: self.data_dir.clone() },
        }
    }
}

/// Which store keeps the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Nothing lasts: for trying things out. A restart knows of no id minted before.
    Memory,
    /// Files in `data_dir`, one process at a time.
    Embedded,
}

fn engine<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Engine, D::Error> {
    // "etcd" is known by name, for an answer that says more than that it is wrong.
    let engine = value::read_text(deserializer, "\"memory\" or \"embedded\"", |text| match text {
        "memory" => Some(Some(Engine::Memory)),
        "embedded" => Some(Some(Engine::Embedded)),
        "etcd" => Some(None),
        _ => None,
    })?;
    let not_built_in = "\"etcd\" is not built in: this build has no etcd; use \"embedded\" or \"memory\"";
    engine.ok_or_else(|| D::Error::custom(not_built_in))
}

fn directory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    value::read_text(deserializer, "the path of a directory", |text| (!text.is_empty()).then(|| PathBuf::from(text)))
}
