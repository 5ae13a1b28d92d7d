//! Interfaces to the operator and the service manager: sockets and signals.

mod backup_socket;
mod inherited;
mod signals;

pub(super) use backup_socket::BackupSocket;
pub use backup_socket::{BACKUP_SOCKET, BackupReply, TO_CLIENT};
pub use inherited::{InheritedError, InheritedSocket};
pub(super) use signals::Signals;
