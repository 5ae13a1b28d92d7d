//! The place where a process keeps its state: in a store of its own, or in the coordinator (etcd)
//! of a fleet.

use super::assembly::{AssemblyError, check_all_slots};
use super::config::{Config, Engine, EngineChoice};
#[cfg(feature = "etcd")]
use super::fleet::Fleet;
use super::start::RunOptions;
use super::warnings::equal_texts;
use idmint_core::time::UnixNanos;
use idmint_service::Service;
use idmint_storage::{Opened, StoreError};

/// The place where a process keeps its state.
pub(super) enum State {
    /// A store that only this process uses. The slot, which determines the worker numbers of the
    /// process, is known before the store is opened, and does not change.
    Own(Opened),
    /// The coordinator of a fleet.
    #[cfg(feature = "etcd")]
    Shared(Box<Fleet>),
}

impl State {
    /// Opens the process's own store, or prepares the connection to the fleet's etcd.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the store cannot be opened or conflicts with the configuration.
    pub(super) fn open(config: &Config, options: RunOptions) -> Result<State, StoreError> {
        match config.engine_choice() {
            #[cfg(feature = "etcd")]
            EngineChoice::Etcd(settings) => {
                let fleet = Fleet::of_etcd(&settings, config, options)?;
                Ok(State::Shared(Box::new(fleet)))
            }
            #[cfg(not(feature = "etcd"))]
            EngineChoice::Etcd(_) => panic!("a configuration with etcd is refused by this build"),
            EngineChoice::Own(engine) => {
                let slot = config.worker.assignment().slot;
                Ok(State::Own(engine.open(slot, options.stated_floor())?))
            }
        }
    }

    /// Returns the configured slot (place of this node), or `None` if the slot is leased.
    pub(super) fn slot(&self, config: &Config) -> Option<u32> {
        match self {
            State::Own(_) => Some(config.worker.assignment().slot),
            #[cfg(feature = "etcd")]
            State::Shared(_) => None,
        }
    }

    /// Checks, before the first mint, that a node with the last slot could mint every format. Also
    /// checks that no two formats can write the same text if the data directory is new. Returns the
    /// state unchanged.
    ///
    /// # Errors
    /// Returns [`AssemblyError::Setting`] if no id was minted yet and a format has too few worker
    /// numbers, or if the data directory is new and two formats can write the same text.
    pub(super) fn before_first_mint(
        self,
        config: &Config,
        floor: Option<UnixNanos>,
        service: &Service,
    ) -> Result<State, AssemblyError> {
        let is_new = matches!(&self, State::Own(opened) if opened.horizon().is_none());
        if is_new && floor.is_none() {
            check_all_slots(config, service)?;
            // Refuse formats with equal texts only in a new store on disk. A store in memory is new
            // at every start, so an upgrade would refuse a configuration that worked before.
            if config.storage.engine == Engine::Embedded
                && let Some(pair) = equal_texts(service).next()
            {
                return Err(AssemblyError::Setting(format!(
                    "{pair}; a new data directory must begin with only one of them"
                )));
            }
        }
        Ok(self)
    }

    /// Returns the stored horizon, which is the end of the time that earlier runs reserved. Returns
    /// `None` if the store has no horizon, or if the process is a node of a fleet.
    pub(super) fn horizon(&self) -> Option<UnixNanos> {
        match self {
            State::Own(opened) => opened.horizon(),
            #[cfg(feature = "etcd")]
            State::Shared(_) => None,
        }
    }
}
