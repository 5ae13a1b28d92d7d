//! The lock by which one process has a data folder to itself.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const FILE_MODE: u32 = 0o600;

/// An exclusive lock on a folder, for as long as the value lives; the system lets go of it however the process ends.
#[derive(Debug)]
pub struct FolderLock {
    file: File,
    path: PathBuf,
}

/// The folder is not this process's.
#[derive(Debug, thiserror::Error)]
pub(in crate::storage) enum FolderLockError {
    /// Another process works in it. Nothing was touched.
    #[error(
        "{} is in use by {}; stop it, or give this one another storage.data_dir",
        .folder.display(), .holder.as_deref().map_or("another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Held {
        /// The folder.
        folder: PathBuf,
        /// The process id that the holder has noted, if it could be read.
        holder: Option<String>,
    },
    /// It cannot be locked.
    #[error("cannot {step} {}", .path.display())]
    NotLocked {
        /// The path that failed.
        path: PathBuf,
        /// What was tried, as a verb.
        step: &'static str,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
}

impl FolderLock {
    /// Locks a folder that is there.
    ///
    /// # Errors
    /// [`FolderLockError`].
    pub(in crate::storage) fn take(folder: &Path) -> Result<FolderLock, FolderLockError> {
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
        // The note is for people; the lock itself does not depend on it, so a full disk may keep it empty.
        let _ = note_process(&mut file);
        Ok(FolderLock { file, path })
    }

    /// The file that is locked.
    pub(in crate::storage) fn file(&self) -> &File {
        &self.file
    }

    /// Where it lies.
    pub(in crate::storage) fn path(&self) -> &Path {
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
