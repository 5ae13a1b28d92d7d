//! The etcd of a configuration, for commands that ask it themselves.

use crate::cli::exit::{Exit, Failure};
use crate::server::config::Config;
use crate::storage::{CoordinatorError, EngineChoice, EtcdSettings};

/// The etcd of this configuration.
///
/// # Errors
/// 78: it is of no fleet.
pub(super) fn etcd_of(config: &Config) -> Result<EtcdSettings, Failure> {
    match config.engine_choice() {
        EngineChoice::Etcd(settings) => Ok(settings),
        EngineChoice::Own(_) => Err(Failure::new(
            Exit::Config,
            "storage.engine is not \"etcd\": this is the configuration of no fleet",
        )),
    }
}

/// What is said when the etcd does not do what it was asked.
pub(super) fn failure_of(error: &CoordinatorError) -> Failure {
    let exit = match error {
        CoordinatorError::NoAnswer(_) | CoordinatorError::NotSent(_) => Exit::Busy,
        CoordinatorError::Full(_) => Exit::Io,
        CoordinatorError::Refused(_) => Exit::Config,
    };
    Failure::of(exit, error)
}
