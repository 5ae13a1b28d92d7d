//! The file that holds the horizon in two checksummed copies, and behind them the [mark](CommitMark) of the records.
//!
//! A raise is a *pass*: both copies are overwritten, each synced before the next is touched. So at every moment one
//! copy is whole on the disk, and once `raise` has returned both hold the newest horizon ever used.
//!
//! Passes take turns in which copy they begin with. The copy written last may sit in the page cache without being on
//! the disk, when its sync failed and the process was started anew; beginning with it means that the copy under the
//! pen is never the only one the disk really has.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::commit_mark::{self, CommitMark};
use super::horizon_block::{CopyFault, HorizonRecord};
use super::horizon_error::HorizonError;
use crate::storage::embedded::block_file::BlockFile;
use crate::storage::embedded::file_place::FilePlace;
use crate::storage::embedded::file_system::{MachineFiles, create_file};
use crate::time::UnixNanos;

/// One of the two copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhichCopy {
    /// Block 0.
    A,
    /// Block 1.
    B,
}

use WhichCopy::{A, B};

impl WhichCopy {
    fn index(self) -> u64 {
        match self {
            A => 0,
            B => 1,
        }
    }
}

impl fmt::Display for WhichCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            A => "A (bytes 0 to 4095)",
            B => "B (bytes 4096 to 8191)",
        })
    }
}

/// A copy that was found bad, served from the other one and repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    /// The copy that was bad.
    pub(crate) copy: WhichCopy,
    /// What was wrong with it.
    pub(crate) fault: CopyFault,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "copy {}: {}", self.copy, self.fault)
    }
}

/// The horizon of one slot, durable in two copies.
///
/// Shape: a file of 12 KiB, see [`horizon_block`](super::horizon_block) and [`commit_mark`]; of 8 KiB before there was a mark.
///
/// # Errors
/// After any error of [`raise`](Self::raise) the file is poisoned: a second sync may report success for data that
/// the first one lost, so every later raise is refused with [`HorizonError::Poisoned`].
#[derive(Debug)]
pub(crate) struct HorizonFile<F = File> {
    path: PathBuf,
    file: F,
    /// What both copies hold, unless the file is poisoned.
    newest: HorizonRecord,
    is_poisoned: bool,
}

impl HorizonFile {
    /// Creates the file with both copies as `newest` says and no commit known, durable when it returns.
    ///
    /// It is written whole under another name and renamed, so neither a crash nor a full disk leaves half a file;
    /// a file already there is replaced in one step.
    ///
    /// # Errors
    /// [`HorizonError::NotWritten`]. A file may then be there or not.
    pub(crate) fn create(path: &Path, newest: HorizonRecord) -> Result<HorizonFile, HorizonError> {
        let blocks = [
            newest.to_block(),
            newest.to_block(),
            commit_mark::to_block(0),
        ];
        match create_file(&MachineFiles, path, &blocks.concat()) {
            Ok(file) => Ok(HorizonFile {
                path: path.to_owned(),
                file,
                newest,
                is_poisoned: false,
            }),
            Err(cause) => Err(HorizonError::NotWritten {
                path: path.to_owned(),
                cause,
            }),
        }
    }

    /// Opens the file, and repairs a bad copy from the good one.
    ///
    /// # Errors
    /// As [`read_from`](HorizonFile::read_from), and [`HorizonError::NotOpened`].
    pub(crate) fn open(
        path: &Path,
        slot: u32,
    ) -> Result<(HorizonFile, Option<Damage>), HorizonError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|cause| HorizonError::NotOpened {
                path: path.to_owned(),
                cause,
            })?;
        HorizonFile::read_from(file, path, slot)
    }

    /// Where the file lies.
    ///
    /// # Errors
    /// [`HorizonError::NotOpened`] when the system cannot tell.
    pub(crate) fn place(&self) -> Result<FilePlace, HorizonError> {
        FilePlace::of(&self.file, &self.path).map_err(|cause| self.not_opened(cause))
    }

    /// The last commit of the records, as the file has it.
    ///
    /// # Errors
    /// [`HorizonError::NotOpened`] when the system has no descriptor left.
    pub(crate) fn commit_mark(&self) -> Result<Arc<CommitMark>, HorizonError> {
        let file = self
            .file
            .try_clone()
            .map_err(|cause| self.not_opened(cause))?;
        Ok(Arc::new(CommitMark::read(Arc::new(file))))
    }

    fn not_opened(&self, cause: io::Error) -> HorizonError {
        HorizonError::NotOpened {
            path: self.path.clone(),
            cause,
        }
    }
}

impl<F: BlockFile> HorizonFile<F> {
    /// Reads the horizon of `slot` from `file`, which errors call `path`.
    ///
    /// Any good copy serves, of two good ones that of the later pass. A bad copy is repaired and reported; a pass
    /// that was interrupted is completed, and is no damage. Both copies are written anew in any case, so that what
    /// was read is on the disk twice when this returns.
    ///
    /// # Errors
    /// [`HorizonError::BothCopiesDamaged`], [`CopiesDisagree`](HorizonError::CopiesDisagree),
    /// [`OtherSlot`](HorizonError::OtherSlot) and [`UnknownVersion`](HorizonError::UnknownVersion) with nothing
    /// written; [`NotWritten`](HorizonError::NotWritten) when they cannot be written anew.
    pub(crate) fn read_from(
        file: F,
        path: &Path,
        slot: u32,
    ) -> Result<(Self, Option<Damage>), HorizonError> {
        let copies = [A, B].map(|copy| read_copy(&file, copy));
        refuse_what_is_not_ours(&copies, path, slot)?;
        let Choice {
            newest,
            write_first,
            damage,
        } = choose_copy(copies, path)?;
        let mut horizon = HorizonFile {
            path: path.to_owned(),
            file,
            newest,
            is_poisoned: false,
        };
        // Even when both copies look good: what a read shows may not be on the disk.
        let sequence = next_pass_beginning_with(write_first, newest.sequence);
        horizon.write_pass(HorizonRecord { sequence, ..newest })?;
        Ok((horizon, damage))
    }

    /// The first instant that has not been reserved.
    pub(crate) fn horizon(&self) -> UnixNanos {
        self.newest.horizon
    }

    /// The floor that the node began at.
    pub(crate) fn floor(&self) -> Option<UnixNanos> {
        self.newest.floor
    }

    /// Whether the records beside the file were created.
    pub(crate) fn has_records(&self) -> bool {
        self.newest.has_records
    }

    /// Remembers that the records were created.
    ///
    /// # Errors
    /// As [`raise`](Self::raise).
    pub(crate) fn note_records(&mut self) -> Result<(), HorizonError> {
        self.write_pass(HorizonRecord {
            sequence: self.newest.sequence + 1,
            has_records: true,
            ..self.newest
        })
    }

    /// Whether a fleet adopts the node, or has adopted it.
    pub(crate) fn is_adopted(&self) -> bool {
        self.newest.is_adopted
    }

    /// Remembers that a fleet adopts the node: nothing is minted on this horizon from then on.
    ///
    /// # Errors
    /// As [`raise`](Self::raise).
    pub(crate) fn note_adoption(&mut self) -> Result<(), HorizonError> {
        self.write_pass(HorizonRecord {
            sequence: self.newest.sequence + 1,
            is_adopted: true,
            ..self.newest
        })
    }

    /// Whether both copies still are what this process wrote.
    ///
    /// # Errors
    /// [`HorizonError::Changed`].
    pub(crate) fn check_unchanged(&self) -> Result<(), HorizonError> {
        match [A, B]
            .into_iter()
            .all(|copy| read_copy(&self.file, copy) == Ok(self.newest))
        {
            true => Ok(()),
            false => Err(HorizonError::Changed {
                path: self.path.clone(),
            }),
        }
    }

    /// Makes `horizon` durable in both copies. The same value again is written again.
    ///
    /// # Errors
    /// [`HorizonError::NotWritten`] when the disk refuses: the new value may be there or not, the old one or the new
    /// one will be read. [`HorizonError::Poisoned`] ever after.
    ///
    /// # Panics
    /// When `horizon` is below the present one. Its caller is about to mint ids a second time.
    pub(crate) fn raise(&mut self, horizon: UnixNanos) -> Result<(), HorizonError> {
        assert!(
            horizon >= self.newest.horizon,
            "a horizon is never lowered: it is {}, {horizon} was asked for",
            self.newest.horizon
        );
        self.write_pass(HorizonRecord {
            sequence: self.newest.sequence + 1,
            horizon,
            ..self.newest
        })
    }

    fn write_pass(&mut self, record: HorizonRecord) -> Result<(), HorizonError> {
        if self.is_poisoned {
            return Err(HorizonError::Poisoned {
                path: self.path.clone(),
            });
        }
        // Poisoned until proven otherwise, so that no way out of here leaves a half-written file usable.
        self.is_poisoned = true;
        let block = record.to_block();
        for copy in writing_order(record.sequence) {
            let written = self
                .file
                .write_block(copy.index(), &block)
                .and_then(|()| self.file.sync());
            written.map_err(|cause| HorizonError::NotWritten {
                path: self.path.clone(),
                cause,
            })?;
        }
        self.newest = record;
        self.is_poisoned = false;
        Ok(())
    }
}

/// The highest horizon that any good copy in the file holds, of whichever slot; for starting above a stated floor.
///
/// `None` when nothing in it can be read.
pub(crate) fn highest_readable(path: &Path) -> Option<UnixNanos> {
    readable_copies(path)
        .into_iter()
        .map(|record| record.horizon)
        .max()
}

/// The slot that the file is of, as far as it can be read; for a command that is not told one.
///
/// `None` when nothing in it can be read.
pub(crate) fn kept_slot(path: &Path) -> Option<u32> {
    readable_copies(path).first().map(|record| record.slot)
}

/// Whether a good copy in the file says that a fleet adopts the node, or has.
pub(crate) fn is_noted_as_adopted(path: &Path) -> bool {
    readable_copies(path).iter().any(|record| record.is_adopted)
}

fn readable_copies(path: &Path) -> Vec<HorizonRecord> {
    let Ok(file) = File::open(path) else {
        return Vec::new();
    };
    [A, B]
        .into_iter()
        .filter_map(|copy| read_copy(&file, copy).ok())
        .collect()
}

/// What the two copies say together: the horizon, and the copy to repair if one is bad.
struct Choice {
    newest: HorizonRecord,
    /// The copy to write first, because the disk is sure to hold the other one.
    write_first: WhichCopy,
    damage: Option<Damage>,
}

fn choose_copy(
    copies: [Result<HorizonRecord, CopyFault>; 2],
    path: &Path,
) -> Result<Choice, HorizonError> {
    let (a, b) = match copies {
        [Ok(a), Ok(b)] => (a, b),
        [Ok(a), Err(fault)] => return Ok(serve_from(a, B, fault)),
        [Err(fault), Ok(b)] => return Ok(serve_from(b, A, fault)),
        [Err(a), Err(b)] => {
            return Err(HorizonError::BothCopiesDamaged {
                path: path.to_owned(),
                a,
                b,
            });
        }
    };
    if a == b {
        let [_, written_last] = writing_order(a.sequence);
        return Ok(Choice {
            newest: a,
            write_first: written_last,
            damage: None,
        });
    }
    let (newer, newer_copy, older, older_copy) = if a.sequence > b.sequence {
        (a, A, b, B)
    } else {
        (b, B, a, A)
    };
    if newer.sequence == older.sequence || newer.horizon < older.horizon {
        return Err(HorizonError::CopiesDisagree {
            path: path.to_owned(),
        });
    }
    let [begun_with, _] = writing_order(newer.sequence);
    if newer_copy == begun_with {
        // The pass ended between its two copies, as a crash does at any time.
        return Ok(Choice {
            newest: newer,
            write_first: newer_copy,
            damage: None,
        });
    }
    // The pass wrote the older copy first and was told that it is on the disk. It is not.
    let fault = CopyFault::WriteLost {
        expected: newer.sequence,
        found: older.sequence,
    };
    Ok(serve_from(newer, older_copy, fault))
}

fn serve_from(newest: HorizonRecord, bad: WhichCopy, fault: CopyFault) -> Choice {
    Choice {
        newest,
        write_first: bad,
        damage: Some(Damage { copy: bad, fault }),
    }
}

fn refuse_what_is_not_ours(
    copies: &[Result<HorizonRecord, CopyFault>; 2],
    path: &Path,
    asked: u32,
) -> Result<(), HorizonError> {
    for copy in copies {
        match copy {
            Err(CopyFault::UnknownVersion(version)) => {
                return Err(HorizonError::UnknownVersion {
                    path: path.to_owned(),
                    version: *version,
                });
            }
            Ok(record) if record.slot != asked => {
                return Err(HorizonError::OtherSlot {
                    path: path.to_owned(),
                    kept: record.slot,
                    asked,
                });
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

fn read_copy(file: &impl BlockFile, copy: WhichCopy) -> Result<HorizonRecord, CopyFault> {
    match file.read_block(copy.index()) {
        Ok(block) => HorizonRecord::from_block(&block),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(CopyFault::CutOff),
        Err(error) => Err(CopyFault::Unreadable(error.to_string())),
    }
}

/// The two copies as pass `sequence` writes them: even passes begin with A, odd ones with B.
fn writing_order(sequence: u64) -> [WhichCopy; 2] {
    if sequence.is_multiple_of(2) {
        [A, B]
    } else {
        [B, A]
    }
}

/// The next pass after `sequence` that begins with `copy`.
fn next_pass_beginning_with(copy: WhichCopy, sequence: u64) -> u64 {
    let next = sequence + 1;
    if writing_order(next)[0] == copy {
        next
    } else {
        next + 1
    }
}

#[cfg(test)]
#[path = "horizon_file_tests.rs"]
mod tests;
