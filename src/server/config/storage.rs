//! Settings of the store for the reserved time (the horizon), the ledgers, the conjunctions and the
//! numbers.

use std::path::PathBuf;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::value::{self, some_between};
use idmint_storage::{EtcdSettings, OwnEngine};

/// The section `storage`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StorageConfig {
    /// The storage engine that keeps the state. Default: embedded.
    #[serde(deserialize_with = "engine")]
    pub engine: Engine,
    /// The folder of the embedded store, relative to the working directory. Default:
    /// `./idmint-data`.
    #[serde(deserialize_with = "directory")]
    pub data_dir: PathBuf,
    /// The time that a busy node reserves for minting at once: 100 ms to 1 h. The minimum is the
    /// length of the first reservation. Default: see [`StorageConfig::window`].
    #[serde(deserialize_with = "some_between::<_, 100, 3_600_000>")]
    pub window: Option<Duration>,
}

impl Default for StorageConfig {
    fn default() -> Self {
        Self {
            engine: Engine::Embedded,
            data_dir: PathBuf::from("./idmint-data"),
            window: None,
        }
    }
}

impl StorageConfig {
    /// Returns the maximum time that a busy node reserves at once. The default is 3 s.
    ///
    /// In a fleet the default is 60 s. While etcd has no leader, a node can mint only in the time
    /// that it has already reserved.
    #[must_use]
    pub fn window(&self) -> Duration {
        self.window.unwrap_or(match self.engine {
            Engine::Memory | Engine::Embedded => Duration::from_secs(3),
            Engine::Etcd => Duration::from_secs(60),
        })
    }
}

/// The store that keeps the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Nothing is kept, so this engine is only for trials. A restart does not know the ids that
    /// were minted before.
    Memory,
    /// Files in `data_dir`. Only one process at a time can use them.
    Embedded,
    /// An etcd that all nodes of a fleet share, configured in the section `etcd`.
    Etcd,
}

/// The storage engine of a configuration, with the settings to open it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineChoice {
    /// A store that belongs to one process.
    Own(OwnEngine),
    /// An etcd that the nodes of a fleet share and from which they lease their slots.
    Etcd(EtcdSettings),
}

fn engine<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Engine, D::Error> {
    let engine = value::read_text(
        deserializer,
        "\"memory\", \"embedded\" or \"etcd\"",
        |text| match text {
            "memory" => Some(Engine::Memory),
            "embedded" => Some(Engine::Embedded),
            "etcd" => Some(Engine::Etcd),
            _ => None,
        },
    )?;
    if engine == Engine::Etcd && !cfg!(feature = "etcd") {
        return Err(D::Error::custom(
            "\"etcd\" is not built in: build with --features etcd (needs Debian's protobuf-compiler and libprotobuf-dev), or use \"embedded\"",
        ));
    }
    Ok(engine)
}

fn directory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    value::read_text(deserializer, "the path of a directory", |text| {
        (!text.is_empty()).then(|| PathBuf::from(text))
    })
}
