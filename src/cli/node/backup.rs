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
use crate::server::{BACKUP_SOCKET, BackupReply};
use crate::storage::{BackedUp, EngineChoice, OwnEngine};

/// Copy what a running node keeps, without its horizon: a node starts on the copy only with --floor.
#[derive(Debug, Args)]
pub(in crate::cli) struct Backup {
    /// The folder to copy to: empty, or to be made.
    folder: PathBuf,
    /// The data folder of the node, for storage.data_dir.
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

impl Backup {
    /// Asks the node on this machine, and waits until the copy is durable.
    ///
    /// # Errors
    /// 69 when no node runs with that folder, 74 when there is no copy, 78.
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
                    "no node listens on {}: if none runs, copy its data folder itself",
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
                "the node ended before the copy was whole: it is no backup",
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
                "storage.engine is \"etcd\": nothing is kept here; back up etcd by its own snapshots (docs/OPERATIONS.md)",
            )),
            EngineChoice::Own(OwnEngine::Memory) => Err(Failure::new(
                Exit::Config,
                "storage.engine is \"memory\": nothing is kept",
            )),
        }
    }
}
