//! The socket in the data folder over which an operator of this machine asks for a backup.
//!
//! Whoever connects sends the path of a folder, closes its half, and reads one line: a [`BackupReply`]. Whoever connects and
//! says nothing keeps nobody else waiting.

use std::collections::VecDeque;
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
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};

use crate::server::telemetry::{Act, Audit};
use crate::service::Service;
use crate::storage::{BackedUp, WithCauses};

/// The name of the socket in the data folder.
pub const BACKUP_SOCKET: &str = "backup.sock";

/// Like every file of the folder, for this user alone.
const MODE: u32 = 0o600;

/// How long a caller may take to say where to.
const REQUEST_MAX: Duration = Duration::from_secs(5);

/// How many may take that time at once. For one more the one that has taken longest is let go,
const UNHEARD_MAX: usize = 64;

/// but not before it had so long.
const UNHEARD_MIN: Duration = Duration::from_millis(100);

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
            BackupReply::Done(BackedUp {
                appends,
                conjunctions,
                numbers,
            }) => {
                format!("done {appends} {conjunctions} {numbers}\n")
            }
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
    /// assert_eq!(BackupReply::from_line("done 7 8\n"), BackupReply::from_line("done 7 8 0\n"));
    /// ```
    pub fn from_line(line: &str) -> Option<BackupReply> {
        let (word, rest) = line.strip_suffix('\n')?.split_once(' ')?;
        match word {
            "done" => {
                let mut counts = rest.split(' ').map(str::parse);
                let mut next = || counts.next().transpose().ok();
                // A node of an earlier version keeps no numbers, and says nothing of them.
                let (appends, conjunctions, numbers) = (next()??, next()??, next()?.unwrap_or(0));
                counts
                    .next()
                    .is_none()
                    .then_some(BackupReply::Done(BackedUp {
                        appends,
                        conjunctions,
                        numbers,
                    }))
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
    pub(in crate::server) fn bind(
        data_dir: &Path,
        audit: Option<Arc<Audit>>,
    ) -> Option<BackupSocket> {
        let path = data_dir.join(BACKUP_SOCKET);
        match listen(&path) {
            Ok(listener) => Some(BackupSocket {
                listener,
                path,
                audit,
            }),
            Err(error) => {
                warn!(path = %path.display(), "no backup of the running node: cannot listen on {}: {error}", path.display());
                None
            }
        }
    }

    /// Makes one backup after the other, for each caller.
    pub(in crate::server) async fn answer(&self, service: &Arc<Service>) {
        let (mut hearing, mut unheard) = (JoinSet::new(), VecDeque::new());
        loop {
            let next = async {
                wait_for_room(&mut unheard).await;
                self.listener.accept().await
            };
            let ended = tokio::select! {
                // First whoever has said where to: it is not to be taken for silent.
                biased;
                Some(heard) = hearing.join_next() => match heard {
                    Ok(Ok((stream, asked))) => self.reply(stream, asked, service).await,
                    Ok(Err(error)) => Err(error),
                    Err(_) => Err(io::Error::other("it said nothing while others waited")),
                },
                accepted = next => match accepted {
                    Ok((stream, _)) => {
                        if unheard.len() == UNHEARD_MAX && let Some((_, silent)) = unheard.pop_front() {
                            silent.abort();
                        }
                        unheard.push_back((Instant::now(), hearing.spawn(hear(stream))));
                        Ok(())
                    }
                    Err(error) => {
                        sleep(Duration::from_secs(1)).await;
                        Err(error)
                    }
                },
            };
            if let Err(error) = ended {
                warn!("a backup was not asked for to the end: {error}");
            }
        }
    }

    async fn reply(
        &self,
        mut stream: UnixStream,
        asked: Asked,
        service: &Arc<Service>,
    ) -> io::Result<()> {
        let reply = match asked {
            Asked::For(folder) => back_up(folder, service, self.audit.as_deref()).await,
            Asked::InVain(why) => BackupReply::Refused(why),
        };
        stream.write_all(reply.to_line().as_bytes()).await?;
        stream.shutdown().await
    }
}

/// What somebody who connected has asked for.
enum Asked {
    For(PathBuf),
    /// Why it is refused.
    InVain(String),
}

/// Forgets those who were heard, and waits until one more can be: at once unless all that may have just come.
async fn wait_for_room(unheard: &mut VecDeque<(Instant, AbortHandle)>) {
    unheard.retain(|(_, caller)| !caller.is_finished());
    if unheard.len() == UNHEARD_MAX {
        sleep_until(unheard[0].0 + UNHEARD_MIN).await;
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

/// Reads what is asked for.
async fn hear(mut stream: UnixStream) -> io::Result<(UnixStream, Asked)> {
    // Between binding and setting the mode anybody who may enter the folder could have connected.
    let (caller, own) = (
        stream.peer_cred()?.uid(),
        rustix::process::geteuid().as_raw(),
    );
    if caller != own && caller != 0 {
        let why = format!("user {caller} may not ask for a backup, this process runs as {own}");
        return Ok((stream, Asked::InVain(why)));
    }
    let mut folder = Vec::new();
    timeout(
        REQUEST_MAX,
        (&mut stream).take(PATH_LEN_MAX).read_to_end(&mut folder),
    )
    .await??;
    Ok((
        stream,
        Asked::For(PathBuf::from(OsString::from_vec(folder))),
    ))
}

async fn back_up(folder: PathBuf, service: &Arc<Service>, audit: Option<&Audit>) -> BackupReply {
    if !folder.is_absolute() {
        return BackupReply::Refused(format!("{} is no absolute path", folder.display()));
    }
    if let Err(error) = audit.map_or(Ok(()), |audit| {
        audit.tell(&Act::Backup {
            folder: folder.clone(),
        })
    }) {
        return BackupReply::Refused(WithCauses(&error).to_string());
    }
    let (of_service, to) = (Arc::clone(service), folder.clone());
    let copied = tokio::task::spawn_blocking(move || {
        if fs::read_dir(&to).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(format!(
                "{} is not empty: name a folder that is, or one that is to be made",
                to.display()
            ));
        }
        let keeper = of_service
            .record_keeper()
            .ok_or_else(|| "the records are not open yet".to_owned())?;
        keeper
            .records()
            .back_up(&to)
            .map_err(|error| WithCauses(&error).to_string())
    });
    match copied.await {
        Ok(Ok(done)) => {
            let BackedUp {
                appends,
                conjunctions,
                numbers,
            } = done;
            info!(folder = %folder.display(), appends, conjunctions, numbers, "backed up to {}", folder.display());
            BackupReply::Done(done)
        }
        Ok(Err(why)) => {
            warn!(folder = %folder.display(), "no backup in {}: {why}", folder.display());
            BackupReply::Refused(why)
        }
        Err(panic) => BackupReply::Refused(panic.to_string()),
    }
}
