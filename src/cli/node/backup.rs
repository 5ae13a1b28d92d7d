//! The command `idmint backup`, which copies the data of a running node.

use std::io::{self, BufRead, BufReader, ErrorKind, IsTerminal, Read, Write};
use std::net::Shutdown;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use clap::Args;
use rustix::io::Errno;

use crate::cli::exit::{Exit, Failure};
use crate::cli::print::{print, print_note};
use crate::cli::settings::Settings;
use crate::server::config::EngineChoice;
use crate::server::{BACKUP_SOCKET, BackupReply, TO_CLIENT, check_backup_folder};
use idmint_storage::{BackedUp, OwnEngine, write_archive};

const NO_BACKUP: &str = "the node made no backup";

/// Copy the data of a running node, without its horizon (the end of its reserved time). A node
/// starts on the copy only with --floor, a time later than the times in all minted ids.
#[derive(Debug, Args)]
pub(in crate::cli) struct Backup {
    /// The folder to copy to: empty, or new. `-` writes one archive (tar) to standard output, for `idmint restore`.
    folder: PathBuf,
    /// The data folder of the node, for storage.data_dir.
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

impl Backup {
    /// Requests a backup from the node on this machine, and waits until the copy is durable or
    /// written to standard output.
    ///
    /// # Errors
    /// Returns exit code 64 if standard output is a terminal, 69 if no node uses that folder, 74 if
    /// the backup fails or is not in the folder, and 78 if the configuration is invalid or the node keeps no files.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let folder = if self.folder == Path::new(TO_CLIENT) {
            if io::stdout().is_terminal() {
                return Err(Failure::usage(
                    "standard output is a terminal: redirect the archive to a file, as in `idmint backup - > idmint.tar`",
                ));
            }
            self.folder.clone()
        } else {
            let folder = std::path::absolute(&self.folder)
                .map_err(|error| Failure::usage(format!("{}: {error}", self.folder.display())))?;
            check_backup_folder(&folder).map_err(|why| Failure::io(NO_BACKUP, why))?;
            folder
        };
        let socket = data_dir(self.data_dir.as_deref(), &self.settings)?.join(BACKUP_SOCKET);
        let stream = UnixStream::connect(&socket).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => Failure::new(
                Exit::Unavailable,
                format!(
                    "no node listens on {}; if no node runs, copy the data folder instead",
                    socket.display()
                ),
            ),
            _ => {
                let socket = socket.display();
                Failure::io(
                    format!("cannot request a backup through the socket {socket}"),
                    error,
                )
            }
        })?;
        let mut line = String::new();
        let mut answer = BufReader::new(&stream);
        let asked = (&stream)
            .write_all(folder.as_os_str().as_bytes())
            .and_then(|()| stream.shutdown(Shutdown::Write))
            .and_then(|()| answer.read_line(&mut line));
        asked.map_err(|error| Failure::io("the node did not answer", error))?;
        match BackupReply::from_line(&line) {
            // The node reported success, but the folder is empty. The same path can be another
            // folder for the node than for this command, for example if the node runs in a
            // container.
            Some(BackupReply::Done(_)) if check_backup_folder(&folder).is_ok() => {
                let folder = folder.display();
                Err(Failure::new(
                    Exit::Io,
                    format!(
                        "the copy is not in {folder}, because the node has another {folder} than this command, as in a \
                         container or with PrivateTmp: run `idmint backup - > FILE` instead"
                    ),
                ))
            }
            Some(BackupReply::Done(backed_up)) => print(format_args!(
                "{} are in {}\n",
                counts_of(&backed_up),
                folder.display()
            )),
            Some(BackupReply::Follows { backed_up, len }) => {
                write(&mut answer, len)?;
                print_note(format_args!("{} are in the archive", counts_of(&backed_up)));
                Ok(())
            }
            Some(BackupReply::Refused(why)) => Err(Failure::io(NO_BACKUP, why)),
            None => Err(Failure::new(
                Exit::Io,
                "the node ended before the copy was complete: delete the copy, and back up again",
            )),
        }
    }
}

fn counts_of(backed_up: &BackedUp) -> String {
    format!(
        "{} appends, {} conjunctions and {} numbers",
        backed_up.appends, backed_up.conjunctions, backed_up.numbers
    )
}

/// Writes the archive to standard output.
fn write(database: &mut impl Read, len: u64) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    write_archive(database, len, &mut out).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => Failure::new(
            Exit::Io,
            "the node ended before the archive was complete: delete the archive, and back up again",
        ),
        _ => Failure::io("standard output", error).and("delete the archive, and back up again"),
    })?;
    // If standard output is a file, sync it, so that the archive is as durable as a backup in a
    // folder would be. The error `EINVAL` means that the output is a pipe, which cannot be synced.
    match rustix::fs::fsync(&out) {
        Err(error) if error != Errno::INVAL => {
            Err(Failure::io("standard output", io::Error::from(error)))
        }
        _ => Ok(()),
    }
}

/// Returns the data folder `given`, or the data folder in the configuration if `given` is `None`.
///
/// # Errors
/// Returns exit code 78 if the configuration is invalid, or if its storage engine has no data
/// folder.
pub(super) fn data_dir(given: Option<&Path>, settings: &Settings) -> Result<PathBuf, Failure> {
    if let Some(data_dir) = given {
        return Ok(data_dir.to_owned());
    }
    match settings.load_without_slot()?.engine_choice() {
        EngineChoice::Own(OwnEngine::Embedded { data_dir }) => Ok(data_dir),
        EngineChoice::Etcd(_) => Err(Failure::config(
            "storage.engine is \"etcd\", so this node stores nothing; back up with etcd snapshots \
             (docs/OPERATIONS.md)",
        )),
        EngineChoice::Own(OwnEngine::Memory) => Err(Failure::config(
            "storage.engine is \"memory\", so there is nothing to back up",
        )),
    }
}
