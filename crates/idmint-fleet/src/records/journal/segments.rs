//! The files of a journal, which are called segments. They are numbered, and each one is written by
//! a single process. If the journal becomes too large, the oldest segments are removed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use idmint_storage::Namespace;

/// The permissions of the journal's folder. The journal contains records of callers, so only its
/// owner may read it.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The approximate disk space that an empty file uses, in bytes.
const FILE_LEN_MIN: u64 = 4096;

const NAME: &str = "segment-";

/// The size limits of a journal.
#[derive(Debug, Clone, Copy)]
pub(super) struct JournalBounds {
    /// The maximum size of one segment, in bytes.
    pub(super) segment: u64,
    /// The maximum size of all segments together, in bytes.
    pub(super) all: u64,
}

/// One file of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    number: u64,
    pub(super) path: PathBuf,
    len: u64,
}

/// Returns the folder for a namespace's journal in the data folder of a node.
pub(super) fn folder_of(data_dir: &Path, namespace: &Namespace) -> PathBuf {
    data_dir.join(format!("journal-{namespace}"))
}

/// Creates the folder if it does not exist.
///
/// # Errors
/// Returns the I/O error if the folder cannot be created.
pub(super) fn create(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(FOLDER_MODE)
        .create(folder)
}

/// Returns the segments of the journal in a folder, oldest first. Returns an empty list if the
/// folder does not exist.
///
/// # Errors
/// Returns the I/O error if the folder cannot be read.
pub(super) fn list(folder: &Path) -> io::Result<Vec<Segment>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut segments = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix(NAME))
            .and_then(|number| number.parse().ok());
        if let Some(number) = number {
            segments.push(Segment {
                number,
                path: entry.path(),
                len: entry.metadata()?.len(),
            });
        }
    }
    segments.sort_by_key(|segment| segment.number);
    Ok(segments)
}

/// Creates the segment with the next number, and removes the oldest segments to make room for it. A
/// process writes only to segments that it has created. So no record ever follows a record that is
/// incomplete after a kill or a power loss.
///
/// # Errors
/// Returns the I/O error if a segment cannot be removed or created.
pub(super) fn begin(folder: &Path, bounds: JournalBounds) -> io::Result<File> {
    create(folder)?;
    let segments = list(folder)?;
    let last = segments.last().map_or(0, |segment| segment.number);
    remove_oldest(segments, bounds.all.saturating_sub(bounds.segment))?;
    let mut number = last;
    loop {
        number = number.checked_add(1).ok_or(ErrorKind::InvalidData)?;
        let path = folder.join(format!("{NAME}{number:010}"));
        match OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(path)
        {
            // Another process has just created the segment with this number. Try the next number.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            begun => return begun,
        }
    }
}

/// Removes the oldest segments until the remaining ones take at most `most` bytes of disk space.
fn remove_oldest(segments: Vec<Segment>, most: u64) -> io::Result<()> {
    let taken = |segment: &Segment| segment.len.max(FILE_LEN_MIN);
    let mut left: u64 = segments.iter().map(taken).sum();
    for segment in segments {
        if left <= most {
            break;
        }
        left -= taken(&segment);
        match fs::remove_file(&segment.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}
