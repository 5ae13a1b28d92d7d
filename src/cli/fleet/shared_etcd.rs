//! Helpers of the fleet commands. They return the etcd settings and convert errors to exit codes.

use crate::cli::exit::{CommandError, Exit, Failure};
use crate::server::config::{Config, EngineChoice};
use idmint_fleet::{AdoptionError, CoordinatorError, FenceError, ImportError, JournalError};
use idmint_storage::EtcdSettings;

/// Returns the etcd settings of the configuration.
///
/// # Errors
/// Returns exit code 78 if the configuration is not for a fleet.
pub(super) fn etcd_of(config: &Config) -> Result<EtcdSettings, Failure> {
    match config.engine_choice() {
        EngineChoice::Etcd(settings) => Ok(settings),
        EngineChoice::Own(_) => Err(Failure::config(
            "storage.engine is not \"etcd\": this is not the configuration of a fleet",
        )),
    }
}

impl CommandError for AdoptionError {
    fn exit(&self) -> Exit {
        self.failure_kind().into()
    }
}

impl CommandError for CoordinatorError {
    fn exit(&self) -> Exit {
        match self {
            CoordinatorError::NoAnswer(_) | CoordinatorError::NotSent(_) => Exit::Busy,
            CoordinatorError::Full(_) => Exit::Io,
            CoordinatorError::Refused(_) | CoordinatorError::Denied(_) => Exit::Config,
        }
    }
}

impl CommandError for FenceError {
    fn exit(&self) -> Exit {
        match self {
            FenceError::Coordinator(error) => error.exit(),
            FenceError::Unreadable { kind, .. } => (*kind).into(),
            FenceError::FarAhead { .. }
            | FenceError::ClockBehind { .. }
            | FenceError::OtherSlots(_)
            | FenceError::OlderNodes { .. } => Exit::Config,
            FenceError::Contended => Exit::Busy,
        }
    }
}

impl CommandError for JournalError {
    fn exit(&self) -> Exit {
        match self {
            JournalError::Unreadable { .. } => Exit::Io,
            JournalError::OtherFleet { .. }
            | JournalError::OtherNamespace { .. }
            | JournalError::LaterVersion { .. } => Exit::Config,
        }
    }
}

impl CommandError for ImportError {
    fn exit(&self) -> Exit {
        match self {
            ImportError::Journal(error) => error.exit(),
            ImportError::Store(error) => error.exit(),
        }
    }
}
