//! Exit codes. They follow `sysexits.h`.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use crate::server::config::ConfigError;
use crate::server::{
    AccessError, AssemblyError, CatalogError, InheritedError, OtherGeneratorError, RunError,
};
use idmint_client::ClientError;
use idmint_storage::{FailureKind, StoreError, WithCauses};

/// The outcome of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The command succeeded.
    Ok = 0,
    /// The result of the command is negative: for example, a text is not an id, a service is not
    /// ready, or the service refused the request.
    No = 1,
    /// The command line is invalid (`EX_USAGE`).
    Usage = 64,
    /// Stored data or input data is invalid (`EX_DATAERR`).
    Damaged = 65,
    /// The service is unreachable (`EX_UNAVAILABLE`).
    Unavailable = 69,
    /// A file, a disk or a socket failed (`EX_IOERR`).
    Io = 74,
    /// Another process holds a needed resource, or the service is busy. Repeating the same command
    /// later may succeed (`EX_TEMPFAIL`).
    Busy = 75,
    /// The configuration is invalid (`EX_CONFIG`).
    Config = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// The error message of a command, and its exit code.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    /// Creates a failure with a message.
    pub fn new(exit: Exit, message: impl fmt::Display) -> Failure {
        Failure {
            exit,
            message: message.to_string(),
        }
    }

    /// Creates the failure for an invalid argument.
    pub fn usage(message: impl fmt::Display) -> Failure {
        Failure::new(Exit::Usage, message)
    }

    /// Creates the failure for invalid input.
    pub fn damaged(message: impl fmt::Display) -> Failure {
        Failure::new(Exit::Damaged, message)
    }

    /// Creates the failure for a negative result.
    pub fn no(message: impl fmt::Display) -> Failure {
        Failure::new(Exit::No, message)
    }

    /// Creates the failure for an invalid configuration.
    pub fn config(message: impl fmt::Display) -> Failure {
        Failure::new(Exit::Config, message)
    }

    /// Creates the failure for an error that occurred while the file `name` was read or written.
    pub fn io(name: impl fmt::Display, error: impl fmt::Display) -> Failure {
        Failure::new(Exit::Io, format!("{name}: {error}"))
    }

    /// Creates a failure with this exit code. Its message consists of the error and its causes.
    pub fn of(exit: Exit, error: &dyn Error) -> Failure {
        Failure::new(exit, WithCauses(error))
    }

    /// Appends a sentence to the message of this failure.
    #[must_use]
    pub fn and(self, more: impl fmt::Display) -> Failure {
        Failure {
            exit: self.exit,
            message: format!("{}; {more}", self.message),
        }
    }

    /// Returns the exit code.
    pub fn exit(&self) -> Exit {
        self.exit
    }
}

/// An error that can end a command.
pub trait CommandError: Error {
    /// Returns the exit code with which the command ends because of this error. The default is
    /// [`Exit::Config`].
    fn exit(&self) -> Exit {
        Exit::Config
    }
}

impl<E: CommandError> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::of(error.exit(), &error)
    }
}

impl CommandError for AccessError {}
impl CommandError for AssemblyError {}
impl CommandError for CatalogError {}
impl CommandError for ConfigError {}
impl CommandError for InheritedError {}
impl CommandError for OtherGeneratorError {}

impl CommandError for ClientError {
    fn exit(&self) -> Exit {
        match self {
            ClientError::Refused(_) => Exit::No,
            ClientError::Busy(_) => Exit::Busy,
            ClientError::Unreachable { .. }
            | ClientError::Untrusted { .. }
            | ClientError::NotIdmint(_)
            | ClientError::EventsMissing => Exit::Unavailable,
            ClientError::NoToken | ClientError::NotPem(_) | ClientError::Tls(_) => Exit::Damaged,
            ClientError::NotAnAddress(_) | ClientError::NoKey => Exit::Usage,
        }
    }
}

impl CommandError for RunError {
    fn exit(&self) -> Exit {
        self.failure_kind().into()
    }
}

impl CommandError for StoreError {
    fn exit(&self) -> Exit {
        self.failure_kind().into()
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
