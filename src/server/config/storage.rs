//! Settings of the store for the end of the reserved time (the horizon), the ledgers, the
//! conjunctions (close approaches in space) and the named series of numbers.

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
    /// The folder of the node's own files. A relative path starts at the working directory.
    /// Default: `./idmint-data`.
    #[serde(deserialize_with = "directory")]
    pub data_dir: PathBuf,
    /// The length of time that a busy node reserves for its ids at once: 100 ms to 1 h. The
    /// minimum, 100 ms, is also the length of a node's first reservation. Default: 3 s, or 60 s in
    /// a fleet.
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
    /// Returns the maximum length of time that a busy node reserves for its ids at once. The
    /// default is 3 s.
    ///
    /// In a fleet the default is 60 s, because a node can mint only in the time that it has already
    /// reserved while etcd has no leader.
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
    /// State is kept only in memory, so this engine is only for trials. After a restart, the
    /// process does not know which ids were minted before.
    Memory,
    /// Files in `data_dir`. Only one process at a time can use them.
    Embedded,
    /// State is kept in an etcd that all nodes of a fleet share. The section `etcd` configures the
    /// connection.
    Etcd,
}

/// The storage engine of a configuration, with the settings to open it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineChoice {
    /// A store that belongs to one process.
    Own(OwnEngine),
    /// An etcd that all nodes of a fleet share. Each node leases its slot from this etcd.
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
