//! Where the horizon, the ledgers and the anchors last.

use std::path::PathBuf;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::value::{self, some_between};

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
    /// How far ahead a busy node reserves at once: 100 ms (the first reservation) to 1 h. Default: [`StorageConfig::window`].
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
    /// How far ahead a busy node reserves at once: 3 s by default, and 60 s in a fleet, which it has to go on by for as long
    /// as etcd has no leader.
    #[must_use]
    pub fn window(&self) -> Duration {
        self.window.unwrap_or(match self.engine {
            Engine::Memory | Engine::Embedded => Duration::from_secs(3),
            Engine::Etcd => Duration::from_secs(60),
        })
    }
}

/// Which store keeps the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Nothing lasts: for trying things out. A restart knows of no id minted before.
    Memory,
    /// Files in `data_dir`, one process at a time.
    Embedded,
    /// An etcd that all nodes of a fleet share: the section `etcd`.
    Etcd,
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
