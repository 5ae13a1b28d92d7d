//! Opens and creates database files.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;

use redb::StorageBackend;

use super::checked_pages::CheckedPages;
use super::commit_log::CommitLog;
use super::halting_file::HaltingFile;
use super::integrity::{self, Soundness};
use super::layout::{HEAD_BLOCK, Layout};
use crate::embedded::block_file::BlockFile;

/// An open database file whose log has not been read yet.
pub(in crate::embedded) struct OpenFile {
    /// The engine, with the commits that it has synced.
    pub(in crate::embedded) engine: redb::Database,
    /// The log with the commits that the engine has not synced yet.
    pub(in crate::embedded) log: CommitLog,
    /// The file, which remembers the first error of a write or sync.
    pub(in crate::embedded) file: Arc<HaltingFile>,
}

/// Opens a database. Every read of a page then verifies the checksum of the page.
///
/// # Errors
/// Returns any error of the engine or the disk.
pub(in crate::embedded) fn open(
    file: Arc<dyn BlockFile>,
    path: &Path,
    builder: &redb::Builder,
) -> Result<OpenFile, redb::Error> {
    let layout = Layout::from_head(&file.read_block(HEAD_BLOCK)?)?;
    let halting = Arc::new(HaltingFile::new(file));
    let file: Arc<dyn BlockFile> = Arc::clone(&halting) as _;
    let pages = || CheckedPages::open(Arc::clone(&file), layout);
    if pages()?.is_empty() {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    let soundness = match pages()?.is_first_page_sound()? {
        true => Soundness::Sound,
        false => {
            let base: Arc<dyn StorageBackend> = Arc::new(pages()?);
            integrity::check(&base, path, builder)?
        }
    };
    let mut engine = builder.create_with_backend(pages()?)?;
    soundness.settle(&mut engine, path)?;
    Ok(OpenFile {
        engine,
        log: CommitLog::new(file, layout),
        file: halting,
    })
}

/// Creates a database in an empty file. Its log has `log_len` blocks. The database is durable when
/// this function returns.
///
/// # Errors
/// Returns any error of the engine or the disk.
pub(in crate::embedded) fn create(
    file: Arc<dyn BlockFile>,
    log_len: u32,
    builder: &redb::Builder,
) -> Result<OpenFile, redb::Error> {
    let layout = Layout::with_log_of(log_len);
    let halting = Arc::new(HaltingFile::new(file));
    let file: Arc<dyn BlockFile> = Arc::clone(&halting) as _;
    file.write_block(HEAD_BLOCK, &layout.to_head())?;
    let engine = builder.create_with_backend(CheckedPages::open(Arc::clone(&file), layout)?)?;
    Ok(OpenFile {
        engine,
        log: CommitLog::new(file, layout),
        file: halting,
    })
}

/// Opens the file at `path` and locks it against other processes.
///
/// # Errors
/// Returns [`redb::Error::DatabaseAlreadyOpen`] if another process holds the lock, or any other
/// error of the system.
pub(in crate::embedded) fn open_locked(path: &Path) -> Result<File, redb::Error> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    keep_others_out(&file)?;
    Ok(file)
}

/// Locks a file against other processes until the file is closed.
///
/// # Errors
/// Returns [`redb::Error::DatabaseAlreadyOpen`] if another process holds the lock, or any other
/// error of the system.
pub(in crate::embedded) fn keep_others_out(file: &File) -> Result<(), redb::Error> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => redb::Error::DatabaseAlreadyOpen,
        TryLockError::Error(error) => error.into(),
    })
}
