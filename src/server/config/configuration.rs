//! Every setting, by section.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::Deserialize;

use super::error::Origin;
use super::etcd::{ClusterConfig, EtcdConfig};
use super::formats::{
    ConjunctionConfig, DecodeConfig, FormatsConfig, NumbersConfig, SiqConfig, TypeidConfig,
};
use super::http::HttpConfig;
use super::log::LogConfig;
use super::mint::{ClockConfig, MintConfig};
use super::storage::{Engine, StorageConfig};
use super::worker::WorkerConfig;
use crate::cluster::SlotShare;
use crate::ledger::NumberRules;
use crate::storage::{EngineChoice, OwnEngine};

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
    /// The etcd that the nodes of a fleet share.
    pub etcd: EtcdConfig,
    /// Which slots that etcd hands out.
    pub cluster: ClusterConfig,
    /// How a text of several readings is ranked.
    pub decode: DecodeConfig,
    /// What the `siq` format needs beyond its layout.
    pub siq: SiqConfig,
    /// What the `typeid` format mints.
    pub typeid: TypeidConfig,
    /// How reports of one conjunction find the same id.
    pub conjunction: ConjunctionConfig,
    /// How series of numbers are written, and how far they go.
    pub numbers: NumbersConfig,
    /// What is logged, and how it reads.
    pub log: LogConfig,
    /// Which formats there are besides the built-in ones, and which of all are on.
    pub formats: FormatsConfig,
    /// Where some of it came from.
    #[serde(skip)]
    pub origins: Origins,
}

/// Where settings came from, as far as anybody is told; nobody writes them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origins {
    /// Settings of the file that the environment goes over, each as a sentence.
    pub overruled: Vec<String>,
    /// Where each format of the file is defined.
    pub formats: BTreeMap<String, Origin>,
}

impl Config {
    /// The slots that nodes of a fleet lease here.
    ///
    /// # Panics
    /// Where the configuration was not loaded, and has no such slots.
    #[must_use]
    pub fn slot_share(&self) -> SlotShare {
        let slots =
            NonZeroU32::new(self.worker.slots).expect("at least 1, checked where it was read");
        match self.cluster.slots {
            None => SlotShare::all(slots),
            Some(range) => {
                SlotShare::part(slots, range).expect("checked when the configuration was loaded")
            }
        }
    }

    /// How series of numbers are written, and how far they go.
    ///
    /// # Panics
    /// Where the configuration was not loaded, and its rules do not go together.
    #[must_use]
    pub fn number_rules(&self) -> NumberRules {
        self.numbers
            .rules()
            .expect("checked when the configuration was loaded")
    }

    /// The engine, as the store opens it.
    ///
    /// # Panics
    /// Where the configuration was not loaded, and names etcd.
    #[must_use]
    pub fn engine_choice(&self) -> EngineChoice {
        match self.storage.engine {
            Engine::Memory => EngineChoice::Own(OwnEngine::Memory),
            Engine::Embedded => EngineChoice::Own(OwnEngine::Embedded {
                data_dir: self.storage.data_dir.clone(),
            }),
            Engine::Etcd => EngineChoice::Etcd(self.etcd.checked()),
        }
    }
}
