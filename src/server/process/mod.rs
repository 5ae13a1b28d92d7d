//! Interfaces to the operator and the service manager: sockets, signals and limits.

mod backup_socket;
mod inherited;
mod open_files;
mod signals;

pub(super) use backup_socket::BackupSocket;
pub use backup_socket::{BACKUP_SOCKET, BackupReply, TO_CLIENT, check_backup_folder};
pub use inherited::{InheritedError, InheritedSocket};
pub use open_files::fit_connections;
pub(super) use signals::Signals;
