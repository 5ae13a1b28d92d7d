//! `idmint backup`.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use clap::Args;

use crate::cli::exit::{Exit, Failure};
use crate::cli::print::print;
use crate::cli::settings::Settings;
use crate::server::config::EngineChoice;
use crate::server::{BACKUP_SOCKET, BackupReply};
use idmint_storage::{BackedUp, OwnEngine};

/// Copy the data of a running node, without its horizon: a node starts on the copy only with --floor.
#[derive(Debug, Args)]
pub(in crate::cli) struct Backup {
    /// The folder to copy to: empty, or new.
    folder: PathBuf,
    /// The data folder of the node, for storage.data_dir.
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

impl Backup {
    /// Requests a backup from the node on this machine, and waits until the copy is durable.
    ///
    /// # Errors
    /// Returns exit code 69 if no node uses that folder, 74 if the backup fails, and 78 if the
    /// configuration is invalid or the node keeps no files.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let folder = std::path::absolute(&self.folder);
        let folder = folder.map_err(|error| {
            Failure::new(Exit::Usage, format!("{}: {error}", self.folder.display()))
        })?;
        let socket = self.data_dir()?.join(BACKUP_SOCKET);
        let mut stream = UnixStream::connect(&socket).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => Failure::new(
                Exit::Unavailable,
                format!(
                    "no node listens on {}: if none runs, copy its data folder",
                    socket.display()
                ),
            ),
            _ => Failure::new(
                Exit::Io,
                format!("cannot ask for a backup at {}: {error}", socket.display()),
            ),
        })?;
        let mut line = String::new();
        let asked = stream
            .write_all(folder.as_os_str().as_bytes())
            .and_then(|()| stream.shutdown(Shutdown::Write))
            .and_then(|()| stream.read_to_string(&mut line));
        asked
            .map_err(|error| Failure::new(Exit::Io, format!("the node did not answer: {error}")))?;
        match BackupReply::from_line(&line) {
            Some(BackupReply::Done(BackedUp {
                appends,
                conjunctions,
                numbers,
            })) => print(format_args!(
                "{appends} appends, {conjunctions} conjunctions and {numbers} numbers are in {}\n",
                folder.display()
            )),
            Some(BackupReply::Refused(why)) => {
                Err(Failure::new(Exit::Io, format!("no backup: {why}")))
            }
            None => Err(Failure::new(
                Exit::Io,
                "the node ended before the copy was complete: do not use it",
            )),
        }
    }

    fn data_dir(&self) -> Result<PathBuf, Failure> {
        if let Some(data_dir) = &self.data_dir {
            return Ok(data_dir.clone());
        }
        match self.settings.load(toml::Table::new())?.engine_choice() {
            EngineChoice::Own(OwnEngine::Embedded { data_dir }) => Ok(data_dir),
            EngineChoice::Etcd(_) => Err(Failure::new(
                Exit::Config,
                "storage.engine is \"etcd\": this node stores nothing; back up etcd with etcd snapshots (docs/OPERATIONS.md)",
            )),
            EngineChoice::Own(OwnEngine::Memory) => Err(Failure::new(
                Exit::Config,
                "storage.engine is \"memory\": nothing is stored",
            )),
        }
    }
}
