//! Where the horizon, the ledgers and the anchors last.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::duration::between;
use super::value;

/// The section `storage`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StorageConfig {
    /// Which store keeps the state. Default: embedded.
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
    pub(super) fn check(&self) -> Result<(), &'static str> {
        match self.engine {
            Engine::Memory | Engine::Embedded => Ok(()),
            Engine::Etcd => Err("\"etcd\" is not built in: this build has no etcd; use \"embedded\" or \"memory\""),
        }
    }
}

/// Which store keeps the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Nothing lasts: for trying things out. A restart knows of no id minted before.
    Memory,
    /// Files in `data_dir`, one process at a time.
    Embedded,
    /// A coordinator shared by a fleet.
    Etcd,
}

fn directory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    value::read_text(deserializer, "the path of a directory", |text| (!text.is_empty()).then(|| PathBuf::from(text)))
}
