//! An exclusive lock, with which a process reserves a data folder for itself.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const FILE_MODE: u32 = 0o600;

/// An exclusive lock on a folder, which is held until the value is dropped. The operating system
/// releases the lock even if the process is killed.
#[derive(Debug)]
pub struct FolderLock {
    file: File,
    path: PathBuf,
}

/// The error of a folder that cannot be locked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderLockError {
    /// Another process holds the lock. The folder was not changed.
    #[error(
        "{} is in use by {}; stop that process, or give this one another storage.data_dir",
        .folder.display(), .holder.as_deref().map_or("another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Held {
        /// The path of the locked folder.
        folder: PathBuf,
        /// The process id of the lock's holder, which the holder has written to the lock file.
        /// `None` if it could not be read.
        holder: Option<String>,
    },
    /// The lock file cannot be opened or locked.
    #[error("cannot {step} {}", .path.display())]
    NotLocked {
        /// The path that failed.
        path: PathBuf,
        /// The operation that failed, as a verb.
        step: &'static str,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
}

impl FolderLock {
    /// Locks a folder. The folder must exist.
    ///
    /// # Errors
    /// Returns [`FolderLockError::Held`] if another process holds the lock, or
    /// [`FolderLockError::NotLocked`] if the lock file cannot be opened or locked.
    pub(crate) fn take(folder: &Path) -> Result<FolderLock, FolderLockError> {
        let path = folder.join("lock");
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            .open(&path);
        let mut file = match opened {
            Ok(file) => file,
            Err(cause) => {
                return Err(FolderLockError::NotLocked {
                    path,
                    step: "open the lock file",
                    cause,
                });
            }
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(FolderLockError::Held {
                    folder: folder.to_owned(),
                    holder: noted_process(&mut file),
                });
            }
            Err(TryLockError::Error(cause)) => {
                return Err(FolderLockError::NotLocked {
                    path,
                    step: "lock",
                    cause,
                });
            }
        }
        // Ignore a failed write, for example on a full disk. The process id is only a hint for
        // people, and the lock does not depend on it.
        let _ = note_process(&mut file);
        Ok(FolderLock { file, path })
    }

    /// Returns the open lock file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the path of the lock file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn note_process(lock: &mut File) -> io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    writeln!(lock, "{}", std::process::id())
}

fn noted_process(lock: &mut File) -> Option<String> {
    let mut text = String::new();
    lock.take(16).read_to_string(&mut text).ok()?;
    let pid = text.trim();
    let is_number = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| pid.to_owned())
}
