//! Exit codes, as `sysexits.h` has them.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use crate::client::ClientError;
use crate::cluster::AdoptionError;
use crate::server::config::ConfigError;
use crate::server::{
    AccessError, AssemblyError, CatalogError, InheritedError, OtherGeneratorError, RunError,
};
use crate::storage::{FailureKind, StoreError, WithCauses};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It did what it should.
    Ok,
    /// The answer is no: an id that is none, a service that is not ready.
    No,
    /// The command line is wrong (`EX_USAGE`).
    Usage,
    /// Stored data is damaged, or data that was to be read or checked (`EX_DATAERR`).
    Damaged,
    /// The service cannot be reached (`EX_UNAVAILABLE`).
    Unavailable,
    /// A file, a disk or a socket failed (`EX_IOERR`).
    Io,
    /// Somebody else holds it, or the service cannot do it now; later it may work (`EX_TEMPFAIL`).
    Busy,
    /// The configuration is wrong (`EX_CONFIG`).
    Config,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Ok => 0,
            Exit::No => 1,
            Exit::Usage => 64,
            Exit::Damaged => 65,
            Exit::Unavailable => 69,
            Exit::Io => 74,
            Exit::Busy => 75,
            Exit::Config => 78,
        })
    }
}

/// Why a command failed, and the code that says so.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    /// A failure with a message for people.
    pub fn new(exit: Exit, message: impl fmt::Display) -> Failure {
        Failure {
            exit,
            message: message.to_string(),
        }
    }

    /// A failure that is this error, told with its causes.
    pub fn of(exit: Exit, error: &dyn Error) -> Failure {
        Failure::new(exit, WithCauses(error))
    }

    /// The same with more to say.
    #[must_use]
    pub fn and(self, more: impl fmt::Display) -> Failure {
        Failure {
            exit: self.exit,
            message: format!("{}; {more}", self.message),
        }
    }

    /// The code.
    pub fn exit(&self) -> Exit {
        self.exit
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::of(Exit::Config, &error)
    }
}

impl From<InheritedError> for Failure {
    fn from(error: InheritedError) -> Failure {
        Failure::of(Exit::Config, &error)
    }
}

impl From<CatalogError> for Failure {
    fn from(error: CatalogError) -> Failure {
        Failure::of(Exit::Config, &error)
    }
}

impl From<AssemblyError> for Failure {
    fn from(error: AssemblyError) -> Failure {
        Failure::of(Exit::Config, &error)
    }
}

impl From<OtherGeneratorError> for Failure {
    fn from(error: OtherGeneratorError) -> Failure {
        Failure::of(Exit::Config, &error)
    }
}

impl From<AccessError> for Failure {
    fn from(error: AccessError) -> Failure {
        Failure::of(Exit::Config, &error)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let exit = match error {
            ClientError::Refused(_) => Exit::No,
            ClientError::Busy(_) => Exit::Busy,
            ClientError::Unreachable { .. }
            | ClientError::NotIdmint(_)
            | ClientError::EventsMissing => Exit::Unavailable,
            ClientError::NoToken | ClientError::NotPem(_) | ClientError::Tls(_) => Exit::Damaged,
            ClientError::NotAnAddress(_) | ClientError::NoKey => Exit::Usage,
        };
        Failure::of(exit, &error)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        Failure::of(error.failure_kind().into(), &error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::of(error.failure_kind().into(), &error)
    }
}

impl From<AdoptionError> for Failure {
    fn from(error: AdoptionError) -> Failure {
        Failure::of(error.failure_kind().into(), &error)
    }
}

impl From<FailureKind> for Exit {
    fn from(kind: FailureKind) -> Exit {
        match kind {
            FailureKind::Locked | FailureKind::Unreachable => Exit::Busy,
            FailureKind::NotUsable | FailureKind::Full => Exit::Io,
            FailureKind::Damaged => Exit::Damaged,
            FailureKind::Disagrees => Exit::Config,
        }
    }
}
