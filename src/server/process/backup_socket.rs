//! The socket in the data folder through which an operator on this machine requests a backup.
//!
//! A client sends the path of a folder, closes its sending side, and reads one line: a
//! [`BackupReply`]. If the client sends [`TO_CLIENT`] instead of a path, the copy follows after
//! this line. A client that sends nothing does not delay other clients.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Mutex;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};

use crate::server::telemetry::{Act, Audit};
use idmint_service::Service;
use idmint_storage::{BackedUp, RecordStore, SentBackup, WithCauses};

/// The name of the socket in the data folder.
pub const BACKUP_SOCKET: &str = "backup.sock";

/// The request that a client sends to receive the backup through the socket, instead of as files in
/// a folder.
pub const TO_CLIENT: &str = "-";

/// The time limit for a client to receive the next part of a backup.
const PART_MAX: Duration = Duration::from_secs(60);

/// The file mode of the socket. Only this user can access the socket, like every file in the data
/// folder.
const MODE: u32 = 0o600;

/// The time limit for a client to send its request: a path for the backup, or [`TO_CLIENT`].
const REQUEST_MAX: Duration = Duration::from_secs(5);

/// The maximum number of connected clients that have not sent their request yet. One more client
/// replaces the client that has been connected longest, as soon as that client has been connected
/// for `UNHEARD_MIN`.
const DETACHED_MAX: usize = 64;

/// The minimum time that each client gets to send its request, even if more than `DETACHED_MAX`
/// clients are connected.
const UNHEARD_MIN: Duration = Duration::from_millis(100);

const PATH_LEN_MAX: u64 = 4_096;

/// The outcome of a backup, sent as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupReply {
    /// The backup is durable in the folder.
    Done(BackedUp),
    /// The database of the backup follows. It has `len` bytes.
    Follows {
        /// The numbers of records in the backup.
        backed_up: BackedUp,
        /// The length of the database in bytes.
        len: u64,
    },
    /// The reason why no backup was made.
    Refused(String),
}

impl BackupReply {
    fn to_line(&self) -> String {
        let counts = |of: &BackedUp| format!("{} {} {}", of.appends, of.conjunctions, of.numbers);
        match self {
            BackupReply::Done(backed_up) => format!("done {}\n", counts(backed_up)),
            BackupReply::Follows { backed_up, len } => {
                format!("follows {} {len}\n", counts(backed_up))
            }
            BackupReply::Refused(why) => format!("refused {}\n", why.replace('\n', " ")),
        }
    }

    /// Parses the line with which the node answers a client. Returns `None` if the line is invalid
    /// or incomplete.
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
        if word == "refused" {
            return Some(BackupReply::Refused(rest.to_owned()));
        }
        let counts: Vec<u64> = rest
            .split(' ')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .ok()?;
        let of = |appends, conjunctions, numbers| BackedUp {
            appends,
            conjunctions,
            numbers,
        };
        match (word, &counts[..]) {
            ("done", &[appends, conjunctions, numbers]) => {
                Some(BackupReply::Done(of(appends, conjunctions, numbers)))
            }
            // A node of an earlier version has no series of numbers, so its reply has only two
            // counts: ledger appends and conjunctions.
            ("done", &[appends, conjunctions]) => {
                Some(BackupReply::Done(of(appends, conjunctions, 0)))
            }
            ("follows", &[appends, conjunctions, numbers, len]) => Some(BackupReply::Follows {
                backed_up: of(appends, conjunctions, numbers),
                len,
            }),
            _ => None,
        }
    }
}

/// The socket. Dropping it removes its file.
pub(in crate::server) struct BackupSocket {
    listener: UnixListener,
    path: PathBuf,
    data_dir: PathBuf,
    /// A lock that is held while a copy is sent. Only one copy is sent at a time, because each copy
    /// needs space in the data folder.
    sending: Arc<Mutex<()>>,
    /// The audit trail, if one is configured. A backup is recorded in it before anything is copied.
    audit: Option<Arc<Audit>>,
}

impl BackupSocket {
    /// Binds the socket through which clients request backups, in the data folder of this node. The
    /// folder is locked, so an existing socket file was left by a process that has ended.
    ///
    /// Returns `None` and logs a warning if binding fails. The node then works, but cannot make
    /// backups.
    pub(in crate::server) fn bind(
        data_dir: &Path,
        audit: Option<Arc<Audit>>,
    ) -> Option<BackupSocket> {
        let path = data_dir.join(BACKUP_SOCKET);
        if let Err(error) = SentBackup::remove_unfinished(data_dir) {
            warn!("cannot remove an unfinished backup: {error}");
        }
        match listen(&path) {
            Ok(listener) => Some(BackupSocket {
                listener,
                path,
                data_dir: data_dir.to_owned(),
                sending: Arc::default(),
                audit,
            }),
            Err(error) => {
                warn!(path = %path.display(), "backups are unavailable: cannot listen on {}: {error}", path.display());
                None
            }
        }
    }

    /// Accepts clients and makes the requested backups, one after another.
    pub(in crate::server) async fn answer(&self, service: &Arc<Service>) {
        let (mut hearing, mut detached) = (JoinSet::new(), VecDeque::new());
        loop {
            let next = async {
                wait_for_room(&mut detached).await;
                self.listener.accept().await
            };
            let ended = tokio::select! {
                // Handle clients that have sent their request before accepting new clients.
                // Otherwise a client that waits for its reply could be disconnected to make room.
                biased;
                Some(heard) = hearing.join_next() => match heard {
                    Ok(Ok((stream, asked))) => self.reply(stream, asked, service).await,
                    Ok(Err(error)) => Err(error),
                    Err(_) => Err(io::Error::other("the client sent no request while other clients waited")),
                },
                accepted = next => match accepted {
                    Ok((stream, _)) => {
                        if detached.len() == DETACHED_MAX && let Some((_, silent)) = detached.pop_front() {
                            silent.abort();
                        }
                        detached.push_back((Instant::now(), hearing.spawn(hear(stream))));
                        Ok(())
                    }
                    Err(error) => {
                        sleep(Duration::from_secs(1)).await;
                        Err(error)
                    }
                },
            };
            if let Err(error) = ended {
                warn!("the backup socket received an incomplete request: {error}");
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
            Asked::For(folder) if folder == Path::new(TO_CLIENT) => {
                match self.copy_to_send(service).await {
                    Ok(send) => return send(stream),
                    Err(why) => BackupReply::Refused(why),
                }
            }
            Asked::For(folder) => back_up(folder, service, self.audit.as_deref()).await,
            Asked::InVain(why) => BackupReply::Refused(why),
        };
        stream.write_all(reply.to_line().as_bytes()).await?;
        stream.shutdown().await
    }

    /// Copies the node's records to a temporary file in the data folder. Returns a function that
    /// sends the copy on a separate thread, so that a slow client does not delay others.
    async fn copy_to_send(
        &self,
        service: &Arc<Service>,
    ) -> Result<impl FnOnce(UnixStream) -> io::Result<()> + use<>, String> {
        let sending = Arc::clone(&self.sending)
            .try_lock_owned()
            .map_err(|_| "another backup is being sent; wait for it, or end it".to_owned())?;
        let data_dir = self.data_dir.clone();
        let folder = Path::new(TO_CLIENT);
        let copy = copy_records(folder, service, self.audit.as_deref(), move |records| {
            SentBackup::of(records, &data_dir).map_err(|error| WithCauses(&error).to_string())
        });
        let SentBackup {
            backed_up,
            database,
            len,
        } = copy.await?;
        Ok(move |stream: UnixStream| {
            let mut stream = stream.into_std()?;
            stream.set_nonblocking(false)?;
            stream.set_write_timeout(Some(PART_MAX))?;
            tokio::task::spawn_blocking(move || {
                let _sending = sending;
                let line = BackupReply::Follows { backed_up, len }.to_line();
                let sent = stream
                    .write_all(line.as_bytes())
                    .and_then(|()| io::copy(&mut &database, &mut stream));
                match sent {
                    Ok(_) => info!(len, "a backup was sent"),
                    Err(error) => warn!("the backup was not sent completely: {error}"),
                }
            });
            Ok(())
        })
    }
}

/// A client's request.
enum Asked {
    For(PathBuf),
    /// The request is refused for this reason.
    InVain(String),
}

/// Removes from the list all clients that have sent their request or have disconnected. If the list
/// is still full, waits until the client that has been connected longest may be disconnected.
async fn wait_for_room(detached: &mut VecDeque<(Instant, AbortHandle)>) {
    detached.retain(|(_, caller)| !caller.is_finished());
    if detached.len() == DETACHED_MAX {
        sleep_until(detached[0].0 + UNHEARD_MIN).await;
    }
}

impl Drop for BackupSocket {
    #[expect(clippy::disallowed_methods, reason = "a socket holds no state")]
    fn drop(&mut self) {
        // Ignore an error, because the next start replaces a socket that was left behind.
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

/// Reads the request of a client.
async fn hear(mut stream: UnixStream) -> io::Result<(UnixStream, Asked)> {
    // Check the user id of the client, because any user with access to the folder could have
    // connected before the mode of the socket was set.
    let caller = stream.peer_cred()?.uid();
    let own = rustix::process::geteuid().as_raw();
    if caller != own && caller != 0 {
        let why = format!(
            "user {caller} may not ask for a backup, because this process runs as user {own}"
        );
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

/// Copies the records to a folder.
async fn back_up(folder: PathBuf, service: &Arc<Service>, audit: Option<&Audit>) -> BackupReply {
    if !folder.is_absolute() {
        return BackupReply::Refused(format!("{} is not an absolute path", folder.display()));
    }
    let to = folder.clone();
    let copied = copy_records(&folder, service, audit, move |records| {
        check_backup_folder(&to)?;
        records
            .back_up(&to)
            .map_err(|error| WithCauses(&error).to_string())
    });
    match copied.await {
        Ok(done) => {
            let (appends, conjunctions, numbers) = (done.appends, done.conjunctions, done.numbers);
            info!(folder = %folder.display(), appends, conjunctions, numbers, "backed up to {}", folder.display());
            BackupReply::Done(done)
        }
        Err(why) => BackupReply::Refused(why),
    }
}

/// Checks that the folder for a backup has no files. The folder need not exist.
///
/// # Errors
/// Returns the reason why no backup is written to the folder.
pub fn check_backup_folder(folder: &Path) -> Result<(), String> {
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        let folder = folder.display();
        return Err(format!(
            "{folder} is not empty: name an empty folder, or a new one"
        ));
    }
    Ok(())
}

/// Records the backup in the audit trail. Then runs `copy` on a thread for blocking work.
async fn copy_records<T: Send + 'static>(
    folder: &Path,
    service: &Arc<Service>,
    audit: Option<&Audit>,
    copy: impl FnOnce(&dyn RecordStore) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    if let Some(audit) = audit {
        let act = Act::Backup {
            folder: folder.to_owned(),
        };
        audit
            .tell(&act)
            .map_err(|error| WithCauses(&error).to_string())?;
    }
    let service = Arc::clone(service);
    let copied = tokio::task::spawn_blocking(move || {
        let writer = service
            .record_writer_handle()
            .ok_or_else(|| "the node is still starting; try again in a few seconds".to_owned())?;
        copy(writer.records())
    });
    let copied = copied.await.unwrap_or_else(|panic| Err(panic.to_string()));
    if let Err(why) = &copied {
        warn!(folder = %folder.display(), "no backup was written to {}: {why}", folder.display());
    }
    copied
}
