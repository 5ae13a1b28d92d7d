//! The socket in the data folder over which an operator of this machine asks for a backup.
//!
//! Whoever connects sends the path of a folder, closes its half, and reads one line: a [`BackupReply`].

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;
use tracing::{info, warn};

use crate::server::telemetry::{Act, Audit};
use crate::service::Service;
use crate::storage::{BackedUp, WithCauses};

/// The name of the socket in the data folder.
pub const BACKUP_SOCKET: &str = "backup.sock";

/// Like every file of the folder, for this user alone.
const MODE: u32 = 0o600;

/// How long whoever connects may take to say where to.
const REQUEST_MAX: Duration = Duration::from_secs(5);

const PATH_LEN_MAX: u64 = 4_096;

/// How a backup ended, as the line that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupReply {
    /// It is in the folder, durable.
    Done(BackedUp),
    /// There is none; why.
    Refused(String),
}

impl BackupReply {
    fn to_line(&self) -> String {
        match self {
            BackupReply::Done(BackedUp { appends, conjunctions }) => format!("done {appends} {conjunctions}\n"),
            BackupReply::Refused(why) => format!("refused {}\n", why.replace('\n', " ")),
        }
    }

    /// Reads the line; `None` if it is none, or not whole.
    ///
    /// ```
    /// use idmint::server::BackupReply;
    ///
    /// assert_eq!(BackupReply::from_line("refused no room\n"), Some(BackupReply::Refused("no room".to_owned())));
    /// assert_eq!(BackupReply::from_line("done 7"), None);
    /// ```
    pub fn from_line(line: &str) -> Option<BackupReply> {
        let (word, rest) = line.strip_suffix('\n')?.split_once(' ')?;
        match word {
            "done" => {
                let (appends, conjunctions) = rest.split_once(' ')?;
                let (appends, conjunctions) = (appends.parse().ok()?, conjunctions.parse().ok()?);
                Some(BackupReply::Done(BackedUp { appends, conjunctions }))
            }
            "refused" => Some(BackupReply::Refused(rest.to_owned())),
            _ => None,
        }
    }
}

/// The socket, there until this is dropped.
pub(in crate::server) struct BackupSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Told before anything is copied.
    audit: Option<Arc<Audit>>,
}

impl BackupSocket {
    /// Listens in the folder of this node, which is locked: a socket that is there was left by a process that has ended.
    /// `None`, with a warning, where it cannot: only backups of the running node are lost.
    pub(in crate::server) fn bind(data_dir: &Path, audit: Option<Arc<Audit>>) -> Option<BackupSocket> {
        let path = data_dir.join(BACKUP_SOCKET);
        match listen(&path) {
            Ok(listener) => Some(BackupSocket { listener, path, audit }),
            Err(error) => {
                warn!(path = %path.display(), "no backup of the running node: cannot listen on {}: {error}", path.display());
                None
            }
        }
    }

    /// Makes one backup after the other, for whoever asks.
    pub(in crate::server) async fn answer(&self, service: &Arc<Service>) {
        loop {
            let asked = match self.listener.accept().await {
                Ok((mut stream, _)) => answer(&mut stream, service, self.audit.as_deref()).await,
                Err(error) => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    Err(error)
                }
            };
            if let Err(error) = asked {
                warn!("a backup was not asked for to the end: {error}");
            }
        }
    }
}

impl Drop for BackupSocket {
    #[expect(clippy::disallowed_methods, reason = "a socket holds no state")]
    fn drop(&mut self) {
        // It means nothing without a process, and the next start replaces it.
        let _ = fs::remove_file(&self.path);
    }
}

#[expect(clippy::disallowed_methods, reason = "a socket holds no state")]
fn listen(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(MODE))?;
    Ok(listener)
}

async fn answer(stream: &mut UnixStream, service: &Arc<Service>, audit: Option<&Audit>) -> io::Result<()> {
    // Between binding and setting the mode anybody who may enter the folder could have connected.
    let (caller, own) = (stream.peer_cred()?.uid(), rustix::process::geteuid().as_raw());
    let reply = if caller == own || caller == 0 {
        let mut folder = Vec::new();
        timeout(REQUEST_MAX, (&mut *stream).take(PATH_LEN_MAX).read_to_end(&mut folder)).await??;
        back_up(PathBuf::from(OsString::from_vec(folder)), service, audit).await
    } else {
        BackupReply::Refused(format!("user {caller} may not ask for a backup, this process runs as {own}"))
    };
    stream.write_all(reply.to_line().as_bytes()).await?;
    stream.shutdown().await
}

async fn back_up(folder: PathBuf, service: &Arc<Service>, audit: Option<&Audit>) -> BackupReply {
    if !folder.is_absolute() {
        return BackupReply::Refused(format!("{} is no absolute path", folder.display()));
    }
    if let Err(error) = audit.map_or(Ok(()), |audit| audit.tell(&Act::Backup { folder: folder.clone() })) {
        return BackupReply::Refused(WithCauses(&error).to_string());
    }
    let (of_service, to) = (Arc::clone(service), folder.clone());
    let copied = tokio::task::spawn_blocking(move || {
        let keeper = of_service.record_keeper().ok_or_else(|| "the records are not open yet".to_owned())?;
        keeper.records().back_up(&to).map_err(|error| WithCauses(&error).to_string())
    });
    match copied.await {
        Ok(Ok(done)) => {
            let BackedUp { appends, conjunctions } = done;
            info!(folder = %folder.display(), appends, conjunctions, "backed up to {}", folder.display());
            BackupReply::Done(done)
        }
        Ok(Err(why)) => {
            warn!(folder = %folder.display(), "no backup in {}: {why}", folder.display());
            BackupReply::Refused(why)
        }
        Err(panic) => BackupReply::Refused(panic.to_string()),
    }
}
