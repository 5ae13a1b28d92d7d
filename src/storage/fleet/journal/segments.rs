//! The files of a journal: numbered, each written by one process alone, the oldest removed where there is too much.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::storage::etcd::Namespace;

/// What was recorded is for this user alone.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// What an empty file takes, about.
const FILE_LEN_MIN: u64 = 4096;

const NAME: &str = "segment-";

/// How much a journal may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct JournalBounds {
    /// Bytes of a segment.
    pub(super) segment: u64,
    /// Bytes of all segments.
    pub(super) all: u64,
}

/// A file of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    number: u64,
    pub(super) path: PathBuf,
    len: u64,
}

/// Where the journal of a namespace is, in the data folder of a node.
pub(super) fn folder_of(data_dir: &Path, namespace: &Namespace) -> PathBuf {
    data_dir.join(format!("journal-{namespace}"))
}

/// Makes the folder, if it is not there.
///
/// # Errors
/// What the system says.
pub(super) fn create(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(FOLDER_MODE)
        .create(folder)
}

/// The segments in a folder, the oldest first; none where there is no folder.
///
/// # Errors
/// What the system says.
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

/// Makes room for a segment, and begins it behind all others. No process writes to a segment that another one has begun: so
/// nothing ever stands behind what a kill or a loss of power has torn.
///
/// # Errors
/// What the system says.
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
            // Another process of this folder was faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            begun => return begun,
        }
    }
}

/// Removes the oldest segments until `most` bytes are left at most.
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
