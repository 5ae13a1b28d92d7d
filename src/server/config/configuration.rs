//! All settings, grouped by section.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::Deserialize;

use super::error::{KeyOrigins, Origin};
use super::etcd::{ClusterConfig, EtcdConfig};
use super::formats::{
    ConjunctionConfig, DecodeConfig, FormatsConfig, NumbersConfig, SiqConfig, TypeidConfig,
};
use super::http::HttpConfig;
use super::log::LogConfig;
use super::mint::{ClockConfig, MintConfig};
use super::storage::{Engine, EngineChoice, StorageConfig};
use super::worker::WorkerConfig;
use idmint_records::ledger::NumberRules;
use idmint_storage::OwnEngine;
use idmint_storage::SlotShare;

/// All settings of the service, with one field for each section of the configuration.
///
/// `Config::default()` has the values that apply without a configuration file, an environment
/// variable or a flag.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The addresses at which the service listens, and the limits on its connections.
    pub http: HttpConfig,
    /// The limits of a mint request: its number of ids, and the time that it may wait.
    pub mint: MintConfig,
    /// The worker numbers with which this process mints.
    pub worker: WorkerConfig,
    /// The tolerated differences between clocks.
    pub clock: ClockConfig,
    /// The store for the end of the reserved time (the horizon), the ledgers, the conjunctions
    /// (close approaches in space) and the named series of numbers.
    pub storage: StorageConfig,
    /// The etcd that the nodes of a fleet share.
    pub etcd: EtcdConfig,
    /// The slots that this fleet's etcd assigns to its nodes.
    pub cluster: ClusterConfig,
    /// The ranking of the possible readings of a text.
    pub decode: DecodeConfig,
    /// The settings of the format `siq`, besides its layout.
    pub siq: SiqConfig,
    /// The types that the format `typeid` mints.
    pub typeid: TypeidConfig,
    /// The rules by which all reports of a conjunction (close approach of two objects) share an id.
    pub conjunction: ConjunctionConfig,
    /// The form and the bounds of series of numbers.
    pub numbers: NumbersConfig,
    /// The level and the form of the log.
    pub log: LogConfig,
    /// The format definitions, and the list of enabled formats.
    pub formats: FormatsConfig,
    /// The places from which some settings came, such as a line of the file. Used in warnings and
    /// error messages.
    #[serde(skip)]
    pub origins: Origins,
}

/// The places from which settings came, such as a line of the file. They are used in warnings and
/// error messages, and are not settings themselves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origins {
    /// A sentence for each setting in the configuration file that an environment variable
    /// overrides.
    pub overruled: Vec<String>,
    /// The place that sets each key of a format definition: a line of the file, or an environment
    /// variable.
    pub formats: BTreeMap<String, KeyOrigins>,
}

impl Origins {
    /// Returns the place that sets a key of a format: a line of the file, or an environment
    /// variable. If the configuration does not set the key, returns the place of the format's
    /// table. Returns `None` if the configuration does not define the format.
    pub fn of_format(&self, format: &str, key: &str) -> Option<Origin> {
        self.formats.get(format)?.of(key).cloned()
    }
}

impl Config {
    /// Returns the range of slots (places of nodes) that the fleet's etcd may assign to its nodes.
    ///
    /// # Panics
    /// Panics if the configuration was not loaded and its number of slots is invalid.
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

    /// Returns the rules for series: how their numbers are written, and the lowest and highest
    /// numbers.
    ///
    /// # Panics
    /// Panics if the rules contradict each other, which is checked when a configuration is loaded.
    #[must_use]
    pub fn number_rules(&self) -> NumberRules {
        self.numbers
            .rules()
            .expect("checked when the configuration was loaded")
    }

    /// Returns the storage engine and its settings.
    ///
    /// # Panics
    /// Panics if the engine is etcd and its settings are missing or invalid. Loading checks them.
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
