//! The file that stores the horizon in two copies with checksums, followed by the [commit
//! mark](CommitMark).
//!
//! Raising the horizon is done in a *pass*, which overwrites both copies. The first copy is synced
//! before the second one is written. So at least one copy is intact on disk at any time. When
//! `raise` returns, both copies have the newest horizon.
//!
//! Passes alternate in which copy they write first. If a sync fails and the process restarts, the
//! copy that was written last may exist only in the page cache. So the next pass begins with that
//! copy, and never overwrites the only copy that is on disk.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::commit_mark::{self, CommitMark};
use super::horizon_block::{CopyFault, HorizonRecord};
use super::horizon_error::HorizonError;
use crate::embedded::block_file::BlockFile;
use crate::embedded::file_place::FilePlace;
use crate::embedded::file_system::{MachineFiles, create_file};
use idmint_core::time::UnixNanos;

/// Identifies one of the two copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhichCopy {
    /// The copy of the horizon in block 0 of the file.
    A,
    /// The copy of the horizon in block 1 of the file.
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

/// A report that one copy of the horizon was bad. The other copy was used, and the bad copy was
/// repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    /// The copy that was bad.
    pub(crate) copy: WhichCopy,
    /// The reason why the copy was bad.
    pub(crate) fault: CopyFault,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "copy {}: {}", self.copy, self.fault)
    }
}

/// The horizon of one slot, stored durably in two copies.
///
/// The file has three blocks of 4 KiB, which [`horizon_block`](super::horizon_block) and
/// [`commit_mark`] describe. Files of earlier versions have two blocks, without the commit mark.
///
/// # Errors
/// Any error of [`raise`](Self::raise) poisons the file. Every later raise then returns
/// [`HorizonError::Poisoned`], because a second sync may report success for data that the first
/// sync lost.
#[derive(Debug)]
pub(crate) struct HorizonFile<F = File> {
    path: PathBuf,
    file: F,
    /// The content of both copies of the horizon if no write has failed.
    newest: HorizonRecord,
    is_poisoned: bool,
}

impl HorizonFile {
    /// Creates the file with `newest` in both copies and without a commit mark. The file is durable
    /// when this function returns.
    ///
    /// The file is written under a temporary name and then renamed. So neither a crash nor a full
    /// disk leaves an incomplete file. An existing file is replaced atomically.
    ///
    /// # Errors
    /// Returns [`HorizonError::NotWritten`] if the disk refuses. It is then unknown whether the
    /// file exists.
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

    /// Opens the file with the horizon, the time up to which ids may be minted. If one copy of the
    /// horizon is bad, it is repaired from the other copy.
    ///
    /// # Errors
    /// Returns the errors of [`read_from`](HorizonFile::read_from), or [`HorizonError::NotOpened`]
    /// if the file cannot be opened.
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

    /// Returns the path and inode of the file, to check later that it was not replaced.
    ///
    /// # Errors
    /// Returns [`HorizonError::NotOpened`] if the system call `statx` fails.
    pub(crate) fn place(&self) -> Result<FilePlace, HorizonError> {
        FilePlace::of(&self.file, &self.path).map_err(|cause| self.not_opened(cause))
    }

    /// Reads the commit mark, the number of the last acknowledged commit, from the file.
    ///
    /// # Errors
    /// Returns [`HorizonError::NotOpened`] if the process cannot open another file descriptor, and
    /// [`HorizonError::UnknownVersion`] if a later version has written the mark.
    pub(crate) fn commit_mark(&self) -> Result<Arc<CommitMark>, HorizonError> {
        let file = self
            .file
            .try_clone()
            .map_err(|cause| self.not_opened(cause))?;
        match CommitMark::read(Arc::new(file)) {
            Ok(mark) => Ok(Arc::new(mark)),
            Err(version) => Err(HorizonError::UnknownVersion {
                path: self.path.clone(),
                version,
            }),
        }
    }

    fn not_opened(&self, cause: io::Error) -> HorizonError {
        HorizonError::NotOpened {
            path: self.path.clone(),
            cause,
        }
    }
}

impl<F: BlockFile> HorizonFile<F> {
    /// Reads the horizon of `slot` from `file`. `path` is only used in errors.
    ///
    /// One intact copy is enough. If both are intact, the copy of the later pass is used. A bad
    /// copy is repaired and reported. An interrupted pass is completed, and is not reported as
    /// damage. Both copies are always written again, so that both are on disk when this function
    /// returns.
    ///
    /// # Errors
    /// Returns [`HorizonError::BothCopiesDamaged`],
    /// [`CopiesDisagree`](HorizonError::CopiesDisagree), [`OtherSlot`](HorizonError::OtherSlot) or
    /// [`UnknownVersion`](HorizonError::UnknownVersion) if the horizon cannot be used. The file was
    /// not changed in these cases. Returns [`NotWritten`](HorizonError::NotWritten) if the copies
    /// cannot be written again.
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
        // Write both copies of the horizon even if they look intact, because they may have been
        // read from the page cache and not from the disk.
        let sequence = next_pass_beginning_with(write_first, newest.sequence);
        horizon.write_pass(HorizonRecord { sequence, ..newest })?;
        Ok((horizon, damage))
    }

    /// Returns the horizon: the first instant for which no ids are reserved.
    pub(crate) fn horizon(&self) -> UnixNanos {
        self.newest.horizon
    }

    /// Returns the floor, which is the time from which the node began to mint ids, or `None` if the
    /// floor is not known.
    pub(crate) fn floor(&self) -> Option<UnixNanos> {
        self.newest.floor
    }

    /// Returns the floor that an operator has set, if the horizon was not raised above this floor
    /// yet. Returns `None` after a first start, which writes a horizon above the floor.
    pub(crate) fn stated_floor(&self) -> Option<UnixNanos> {
        self.floor().filter(|floor| *floor == self.horizon())
    }

    /// `true` if the database next to this file was created.
    pub(crate) fn has_records(&self) -> bool {
        self.newest.has_records
    }

    /// Marks in both copies of the horizon that the database next to this file was created.
    ///
    /// # Errors
    /// Returns the errors of [`raise`](Self::raise).
    pub(crate) fn note_records(&mut self) -> Result<(), HorizonError> {
        self.write_pass(HorizonRecord {
            sequence: self.newest.sequence + 1,
            has_records: true,
            ..self.newest
        })
    }

    /// `true` if a fleet is adopting the node, or has adopted it.
    pub(crate) fn is_adopted(&self) -> bool {
        self.newest.is_adopted
    }

    /// Records in both copies of the horizon in the file that a fleet is adopting the node. From
    /// then on, the single node may mint no ids.
    ///
    /// # Errors
    /// Returns the errors of [`raise`](Self::raise).
    pub(crate) fn note_adoption(&mut self) -> Result<(), HorizonError> {
        self.write_pass(HorizonRecord {
            sequence: self.newest.sequence + 1,
            is_adopted: true,
            ..self.newest
        })
    }

    /// Checks that both copies of the horizon in the file are still as this process wrote them.
    ///
    /// # Errors
    /// Returns [`HorizonError::Changed`] if a copy differs or cannot be read.
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

    /// Writes and syncs `horizon` in both copies, even if the value has not changed.
    ///
    /// # Errors
    /// Returns [`HorizonError::NotWritten`] if the disk refuses. The next read then returns either
    /// the old value or the new one, and every later call returns [`HorizonError::Poisoned`].
    ///
    /// # Panics
    /// Panics if `horizon` is below the current one, because the caller would then mint ids twice.
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
        // Refuse all further writes until both copies of the horizon are synced, so that an early
        // return cannot leave a half-written file in use.
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

/// Returns the highest horizon in any intact copy of the file, whichever slot the copy belongs to.
/// If an operator's floor for a new horizon is lower, the start must use the returned time instead.
///
/// Returns `None` if no copy can be read.
pub(crate) fn highest_readable(path: &Path) -> Option<UnixNanos> {
    readable_copies(path)
        .into_iter()
        .map(|record| record.horizon)
        .max()
}

/// Returns the slot that is stored in the file, for commands that do not know the slot.
///
/// Returns `None` if no copy can be read.
pub(crate) fn kept_slot(path: &Path) -> Option<u32> {
    readable_copies(path).first().map(|record| record.slot)
}

/// Returns `true` if an intact copy of the horizon in the file says that a fleet is adopting the
/// node, or has adopted it.
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

/// The result of comparing the two copies of the horizon, the time up to which ids may be minted.
/// It has the newest horizon, the copy to write first, and the damage if one copy is bad.
struct Choice {
    newest: HorizonRecord,
    /// The copy to write first. If this write fails, the other copy is still intact, because the
    /// other copy is certainly on disk.
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
        // A crash interrupted the newest pass after its first copy. This is no damage, because a
        // crash can happen at any time.
        return Ok(Choice {
            newest: newer,
            write_first: newer_copy,
            damage: None,
        });
    }
    // The newest pass has written its second copy, so the sync of its first copy had reported
    // success. But the first copy is still from an earlier pass, so its last write was lost.
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

/// Returns the order in which a pass overwrites the copies. Passes with an even number `sequence`
/// begin with copy A, and all others with copy B.
fn writing_order(sequence: u64) -> [WhichCopy; 2] {
    if sequence.is_multiple_of(2) {
        [A, B]
    } else {
        [B, A]
    }
}

/// Returns the first number above `sequence` of a pass that writes `copy` first. A pass writes both
/// copies of the horizon, and begins with copy A if its number is even.
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
