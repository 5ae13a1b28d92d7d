//! The audit trail, which is a file with one JSON object per line. It records the requests that
//! mint, the requests that are refused, and the actions of operators.
//!
//! A request is recorded after its response, through a queue, so recording never delays it. If the
//! queue is full, the line for the request is dropped and counted. An operator's action is recorded
//! before it is done. If recording fails, the action is not done.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::OFlags;
use serde::Serialize;
use tracing::error;
use tracing_appender::non_blocking::NonBlocking;

use super::output::Output;
use super::whole_lines::WholeLines;
use idmint_core::time::Clock;
use idmint_http::Auditor;
use idmint_storage::WithCauses;

/// The file mode: readable only by this user.
const FILE_MODE: u32 = 0o600;

/// An action of an operator, or its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub(in crate::server) enum Act {
    /// The process starts to serve.
    Start {
        /// The version of the program.
        version: &'static str,
        /// The address.
        listen: String,
        /// The slot. `None` if no slot is leased yet.
        slot: Option<u32>,
        /// The stored horizon, which is the end of the time that earlier runs reserved. `None` if
        /// the store has no horizon, or if the process is a node of a fleet.
        horizon: Option<String>,
        /// The time that the operator gave with `--floor`, if any.
        floor: Option<String>,
        /// `true` if minting may begin ahead of the clock.
        run_ahead: bool,
        /// `true` if the operator allows callers without credentials from other machines.
        insecure_public: bool,
    },
    /// The configuration, tokens and certificates are about to be reread.
    Reload,
    /// The settings after a reload.
    Reloaded {
        /// `true` if the configuration was valid.
        configuration: bool,
        /// The number of tokens, if tokens are required.
        tokens: Option<usize>,
        /// The number of certificate names, if certificates are accepted.
        certificates: Option<usize>,
        /// The settings whose files or values were invalid, so that the previous content stays in
        /// use. Empty if everything was reloaded.
        kept: Vec<&'static str>,
    },
    /// The records of the node are about to be copied.
    Backup {
        /// The destination.
        folder: PathBuf,
    },
    /// The process was told to shut down.
    End,
}

/// An audit trail.
pub(in crate::server) struct Audit {
    path: PathBuf,
    file: SharedFile,
    clock: Arc<Clock>,
    /// The queue of request lines for the file.
    lines: NonBlocking,
    lines_dropped: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// The thread that writes the queued request `lines` to the file. `None` after `close`.
    requests: Mutex<Option<Output>>,
}

/// The error if the audit trail cannot be opened or written. An action that must be recorded before
/// it is done is then refused.
#[derive(Debug, thiserror::Error)]
#[error("the audit trail {} cannot be written; actions that it must record are refused", .path.display())]
pub struct AuditError {
    /// The file.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub cause: io::Error,
}

impl AuditError {
    fn of(path: &Path, cause: io::Error) -> AuditError {
        let path = path.to_owned();
        AuditError { path, cause }
    }
}

#[derive(Serialize)]
struct Line<'a, T: Serialize> {
    at: String,
    #[serde(flatten)]
    what: &'a T,
}

impl Audit {
    /// Opens the file of the audit trail for appending, and creates it if it does not exist. The
    /// file may also be a named pipe that has a reader.
    ///
    /// # Errors
    /// Returns [`AuditError`] if the file cannot be opened.
    pub(in crate::server) fn open(path: &Path, clock: Arc<Clock>) -> Result<Audit, AuditError> {
        let file = open(path).map_err(|cause| AuditError::of(path, cause))?;
        let file = SharedFile(Arc::new(Mutex::new(file)));
        let requests = Output::to(file.clone(), "audit");
        let (lines, lines_dropped) = (requests.lines(), Arc::new(requests.lines_dropped()));
        Ok(Audit {
            path: path.to_owned(),
            file,
            clock,
            lines,
            lines_dropped,
            requests: Mutex::new(Some(requests)),
        })
    }

    /// Records an action that is about to be done. Do the action only if this method succeeds. In a
    /// regular file, the line is synced to disk before this method returns.
    ///
    /// # Errors
    /// Returns [`AuditError`] if the action cannot be recorded.
    pub(in crate::server) fn tell(&self, act: &Act) -> Result<(), AuditError> {
        let line = line(&self.clock, act);
        let written = self.file.write_durably(&line);
        written.map_err(|cause| AuditError::of(&self.path, cause))
    }

    /// Records in the audit trail an action that is already done. A failure is only logged.
    pub(in crate::server) fn tell_after(&self, act: &Act) {
        if let Err(error) = self.tell(act) {
            error!("{}: {act:?}", WithCauses(&error));
        }
    }

    /// Opens the file of the audit trail again, because log rotation may have renamed the open
    /// file.
    ///
    /// # Errors
    /// Returns [`AuditError`] if the file cannot be opened. After an error, lines are still written
    /// to the previous file.
    pub(in crate::server) fn reopen(&self) -> Result<(), AuditError> {
        *self.file.lock() = open(&self.path).map_err(|cause| AuditError::of(&self.path, cause))?;
        Ok(())
    }

    /// Returns the function that records requests.
    pub(in crate::server) fn auditor(&self) -> Auditor {
        let (lines, clock) = (self.lines.clone(), Arc::clone(&self.clock));
        Arc::new(move |request| {
            // If the queue is full, this call counts the line as dropped, and returns no error.
            let _ = lines.clone().write_all(&line(&clock, request));
        })
    }

    /// Returns a function that returns the number of requests missing from the audit file, because
    /// the queue was full or a write failed.
    pub(in crate::server) fn lines_dropped(&self) -> Arc<dyn Fn() -> u64 + Send + Sync> {
        Arc::clone(&self.lines_dropped)
    }

    /// Writes the queued lines, which takes at most a second. Requests after this call are not
    /// recorded any more.
    pub(in crate::server) fn close(&self) {
        let requests = self
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        requests.into_iter().for_each(Output::close);
    }
}

/// The file of the audit trail, shared by several writers. Each writer writes only whole lines.
#[derive(Clone)]
struct SharedFile(Arc<Mutex<WholeLines<File>>>);

impl SharedFile {
    fn lock(&self) -> MutexGuard<'_, WholeLines<File>> {
        // A thread that panicked while it held the lock has written its line completely or not at
        // all, so the file is still usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_durably(&self, line: &[u8]) -> io::Result<()> {
        let mut file = self.lock();
        file.write(line)?;
        let file = file.stream();
        // A pipe cannot be synced.
        if file.metadata()?.is_file() {
            file.sync_data()
        } else {
            Ok(())
        }
    }
}

impl Write for SharedFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.lock().write(line).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "an audit trail is a log, and holds no state"
)]
fn open(path: &Path) -> io::Result<WholeLines<File>> {
    // If the file is a pipe whose reader has stalled, this flag makes a write fail instead of
    // blocking the writer.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(FILE_MODE)
        .custom_flags(flags)
        .open(path)?;
    let is_torn = file.metadata()?.is_file() && is_torn(path);
    Ok(WholeLines::new(file, is_torn))
}

/// Returns `true` if the last line of this file lacks its newline. Also returns `true` if the file
/// cannot be read, because an extra newline does no harm.
fn is_torn(path: &Path) -> bool {
    let last = File::open(path).and_then(|mut file| {
        if file.seek(SeekFrom::End(0))? == 0 {
            return Ok(b'\n');
        }
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last).map(|()| last[0])
    });
    last.map_or(true, |last| last != b'\n')
}

fn line(clock: &Clock, what: &impl Serialize) -> Vec<u8> {
    let line = Line {
        at: clock.now().to_string(),
        what,
    };
    let mut json = serde_json::to_vec(&line).expect("texts and numbers always serialize");
    json.push(b'\n');
    json
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::{IpAddr, Ipv4Addr};

    use serde_json::{Value, json};

    use super::*;
    use idmint_core::time::{ManualClock, UnixNanos};
    use idmint_http::Audited;

    fn clock() -> Arc<Clock> {
        Arc::new(ManualClock::at(UnixNanos::from_seconds(1_900_000_000)).clock())
    }

    fn lines(path: &Path) -> Vec<Value> {
        let text = fs::read_to_string(path).expect("readable");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }

    #[test]
    fn acts_and_requests_are_lines_of_one_file_and_go_on_in_a_new_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (path, moved) = (folder.path().join("audit"), folder.path().join("audit.1"));
        let audit = Audit::open(&path, clock()).expect("opens");
        audit
            .tell(&Act::Backup {
                folder: "/copy".into(),
            })
            .expect("told");
        fs::rename(&path, &moved).expect("moved");
        audit.reopen().expect("opens");
        audit.tell(&Act::Reload).expect("told");
        audit.auditor()(&Audited {
            request_id: "a-1",
            traceparent: None,
            caller: IpAddr::V4(Ipv4Addr::LOCALHOST),
            shown: Some("the token `billing`"),
            method: "POST",
            path: "/ids/payment",
            ledger: None,
            count: Some(3),
            is_replayed: false,
            status: 200,
            is_answered: true,
        });
        let dropped = audit.lines_dropped();
        audit.close();
        assert_eq!(dropped(), 0);
        let at = "2030-03-17T17:46:40.000Z";
        assert_eq!(
            lines(&moved),
            [json!({ "at": at, "act": "backup", "folder": "/copy" })]
        );
        let minted = json!({
            "at": at, "request": "a-1", "caller": "127.0.0.1", "shown": "the token `billing`", "method": "POST",
            "path": "/ids/payment", "count": 3, "status": 200
        });
        assert_eq!(lines(&path), [json!({ "at": at, "act": "reload" }), minted]);
    }

    #[test]
    fn a_torn_last_line_is_closed_by_whoever_opens_the_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("audit");
        let told = "{\"at\":\"2030-03-17T17:46:40.000Z\",\"act\":\"reload\"}\n";
        for (left, then) in [
            ("", ""),
            ("{}\n", "{}\n"),
            ("{\"at\":\"20", "{\"at\":\"20\n"),
        ] {
            fs::write(&path, left).expect("written");
            let audit = Audit::open(&path, clock()).expect("opens");
            audit.tell(&Act::Reload).expect("told");
            assert_eq!(
                fs::read_to_string(&path).expect("readable"),
                format!("{then}{told}"),
                "opened: {left:?}"
            );
            fs::write(&path, left).expect("written");
            audit.reopen().expect("opens");
            audit.tell(&Act::Reload).expect("told");
            assert_eq!(
                fs::read_to_string(&path).expect("readable"),
                format!("{then}{told}"),
                "opened anew: {left:?}"
            );
        }
    }

    #[test]
    fn what_cannot_be_told_is_an_error_and_of_requests_a_number() {
        let audit = Audit::open(Path::new("/dev/full"), clock()).expect("opens");
        let error = audit.tell(&Act::Reload).expect_err("there is no room");
        assert!(error.to_string().contains("/dev/full"), "{error}");
        let full = io::Error::from(error.cause.kind());
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    }
}
