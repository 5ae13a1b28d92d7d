//! A file of a database, opened or made.

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
use crate::storage::embedded::block_file::BlockFile;

/// A file of a database, before the log is read.
pub(in crate::storage::embedded) struct OpenFile {
    /// The engine, as it last synced.
    pub(in crate::storage::embedded) engine: redb::Database,
    /// What was committed since.
    pub(in crate::storage::embedded) log: CommitLog,
}

/// Opens what `file` holds, which is checked as it is read.
///
/// # Errors
/// What the engine or the disk says.
pub(in crate::storage::embedded) fn open(
    file: Arc<dyn BlockFile>,
    path: &Path,
    builder: &redb::Builder,
) -> Result<OpenFile, redb::Error> {
    let layout = Layout::from_head(&file.read_block(HEAD_BLOCK)?)?;
    let file: Arc<dyn BlockFile> = Arc::new(HaltingFile::new(file));
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
    })
}

/// Makes a database with a log of `log_len` blocks in an empty file, durable when this returns.
///
/// # Errors
/// What the engine or the disk says.
pub(in crate::storage::embedded) fn create(
    file: Arc<dyn BlockFile>,
    log_len: u32,
    builder: &redb::Builder,
) -> Result<OpenFile, redb::Error> {
    let layout = Layout::with_log_of(log_len);
    let file: Arc<dyn BlockFile> = Arc::new(HaltingFile::new(file));
    file.write_block(HEAD_BLOCK, &layout.to_head())?;
    let engine = builder.create_with_backend(CheckedPages::open(Arc::clone(&file), layout)?)?;
    Ok(OpenFile {
        engine,
        log: CommitLog::new(file, layout),
    })
}

/// Opens the file at `path`, which nobody else may have open.
///
/// # Errors
/// [`redb::Error::DatabaseAlreadyOpen`]; what the engine or the disk says.
pub(in crate::storage::embedded) fn open_locked(path: &Path) -> Result<File, redb::Error> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    keep_others_out(&file)?;
    Ok(file)
}

/// Keeps others from opening a file for as long as it is open here.
///
/// # Errors
/// [`redb::Error::DatabaseAlreadyOpen`]; what the system says.
pub(in crate::storage::embedded) fn keep_others_out(file: &File) -> Result<(), redb::Error> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => redb::Error::DatabaseAlreadyOpen,
        TryLockError::Error(error) => error.into(),
    })
}
