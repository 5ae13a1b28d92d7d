//! What those who run this process hand to it, tell it and ask of it.

mod backup_socket;
mod inherited;
mod signals;
pub(super) mod supervisor;

pub(super) use backup_socket::BackupSocket;
pub use backup_socket::{BACKUP_SOCKET, BackupReply};
pub use inherited::{InheritedError, InheritedSocket};
pub(super) use signals::{Hangups, Signals};
