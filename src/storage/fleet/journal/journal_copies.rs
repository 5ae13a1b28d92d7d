//! The journals of as many nodes as can be had, read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::journal_record::JournalRecord;
use super::journalled_commit::{JournalledCommit, RowPlace};
use super::number_copies::NumberCopies;
use super::segments;
use crate::conjunction::{Anchor, Pair};
use crate::ledger::{EventId, EventTime, LedgerId};
use crate::storage::etcd::Namespace;
use crate::storage::fleet::keys::Keys;
use crate::storage::fleet::known_fleet::FleetEra;
use crate::storage::fleet::numbers;
use crate::storage::fleet::rows::{Commit, commit_of_bytes, pair_of_bytes};

/// Copies of journals: what is in them, by ledgers, pairs and series. The rows of ledgers stay in the files.
#[derive(Debug)]
pub struct JournalCopies {
    keys: Keys,
    files: Vec<PathBuf>,
    /// What each of the paths that were named has rows of: the origins of fleets.
    origins: Vec<(PathBuf, BTreeSet<u128>)>,
    pub(super) ledgers: BTreeMap<LedgerId, BTreeMap<EventId, JournalledCommit>>,
    /// The anchors of each pair.
    pub(super) pairs: BTreeMap<(String, Pair), Vec<JournalledAnchor>>,
    pub(super) numbers: NumberCopies,
    /// Files whose end cannot be read, and how many bytes that is: torn by a kill or by the copy, or damaged.
    unreadable: Vec<(PathBuf, u64)>,
}

/// An anchor as journals have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JournalledAnchor {
    pub(super) anchor: Anchor,
    /// The last era in which it was written.
    pub(super) era: FleetEra,
    /// The anchors within its reach that stood in a row with it: an id that a report kept may be that near to another one.
    pub(super) beside: Vec<Anchor>,
}

/// Why journals are not imported. Nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A path has no journal, or it cannot be read.
    #[error("{}: {error}", .path.display())]
    Unreadable {
        /// What was named.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// It is of another fleet.
    #[error("{}: this is a journal of {other}, not of {here}", .path.display())]
    OtherFleet {
        /// What was named.
        path: PathBuf,
        /// Whose it is.
        other: String,
        /// Whose it should be.
        here: String,
    },
}

impl JournalCopies {
    /// Reads the journals at these paths: each a data folder of a node, the folder of a journal, or a file of one.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn read(paths: &[PathBuf], namespace: &Namespace) -> Result<JournalCopies, JournalError> {
        let mut copies = JournalCopies {
            keys: Keys::of(namespace),
            files: Vec::new(),
            origins: Vec::new(),
            ledgers: BTreeMap::new(),
            pairs: BTreeMap::new(),
            numbers: NumberCopies::default(),
            unreadable: Vec::new(),
        };
        for path in paths {
            let unreadable = |error| JournalError::Unreadable {
                path: path.clone(),
                error,
            };
            let mut origins = BTreeSet::new();
            for file in files_of(path, namespace).map_err(unreadable)? {
                let bytes = fs::read(&file).map_err(unreadable)?;
                let stray = copies.add_file(file, &bytes, &mut origins);
                if let Some(other) = stray {
                    return Err(JournalError::OtherFleet {
                        path: path.clone(),
                        other: format!("another namespace ({other})"),
                        here: format!("namespace {namespace}"),
                    });
                }
            }
            copies.origins.push((path.clone(), origins));
        }
        copies.numbers.settle();
        Ok(copies)
    }

    /// Which fleet they are of: `here`, if there still is a fleet, else the one fleet that all of them are of; `None` where
    /// nothing is in them.
    ///
    /// # Errors
    /// [`JournalError::OtherFleet`]: one has nothing of it, and something of another fleet.
    pub fn origin(&self, here: Option<u128>) -> Result<Option<u128>, JournalError> {
        let first = self
            .origins
            .iter()
            .find_map(|(_, origins)| origins.last().copied());
        let Some(origin) = here.or(first) else {
            return Ok(None);
        };
        match self
            .origins
            .iter()
            .find(|(_, origins)| !origins.is_empty() && !origins.contains(&origin))
        {
            None => Ok(Some(origin)),
            Some((path, origins)) => Err(JournalError::OtherFleet {
                path: path.clone(),
                other: format!(
                    "the fleet that began as {:032x}",
                    origins.last().copied().unwrap_or_default()
                ),
                here: format!("the one that began as {origin:032x}"),
            }),
        }
    }

    /// Leaves out what is of other fleets: a node may have been part of one before.
    #[must_use]
    pub fn of_origin(mut self, origin: u128) -> JournalCopies {
        self.ledgers
            .values_mut()
            .for_each(|commits| commits.retain(|_, commit| commit.era.origin == origin));
        self.pairs
            .values_mut()
            .for_each(|anchors| anchors.retain(|anchor| anchor.era.origin == origin));
        self.numbers.retain_origin(origin);
        self
    }

    /// How many files there are.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    /// Files whose end cannot be read, and how many bytes that is: torn by a kill or by the copy, or damaged.
    pub fn unreadable(&self) -> &[(PathBuf, u64)] {
        &self.unreadable
    }

    /// When commits were recorded.
    pub(super) fn recorded(&self) -> impl Iterator<Item = EventTime> {
        self.ledgers
            .values()
            .flat_map(BTreeMap::values)
            .map(|commit| commit.recorded)
    }

    /// The row of a commit, as it was committed.
    ///
    /// # Errors
    /// [`JournalError`]: the file is not what it was a moment ago.
    pub(super) fn row(
        &self,
        last: EventId,
        RowPlace { file, at, len }: RowPlace,
    ) -> Result<(Commit, Vec<u8>), JournalError> {
        let path = &self.files[file];
        let unreadable = |error| JournalError::Unreadable {
            path: path.clone(),
            error,
        };
        let mut bytes = vec![0; len];
        File::open(path)
            .and_then(|file| file.read_exact_at(&mut bytes, at))
            .map_err(unreadable)?;
        let commit = match JournalRecord::read_from(&bytes) {
            Some((JournalRecord::Row { value, .. }, _)) => {
                commit_of_bytes(last, value).map(|commit| (commit, value.to_vec()))
            }
            Some((JournalRecord::Era(_), _)) | None => None,
        };
        commit.ok_or_else(|| unreadable(io::Error::other("it has changed since it was read first")))
    }

    /// Takes in a file; returns the first key that is none of this namespace.
    fn add_file(
        &mut self,
        path: PathBuf,
        bytes: &[u8],
        origins: &mut BTreeSet<u128>,
    ) -> Option<String> {
        let (mut at, mut era) = (0, None);
        self.files.push(path.clone());
        while let Some((record, len)) = JournalRecord::read_from(&bytes[at..]) {
            match (record, era) {
                (JournalRecord::Era(begun), _) => era = Some(begun),
                (JournalRecord::Row { key, .. }, _) if !self.keys.are_above(key) => {
                    return Some(key.to_owned());
                }
                (JournalRecord::Row { key, value }, Some(era)) => {
                    origins.insert(era.origin);
                    let place = RowPlace {
                        file: self.files.len() - 1,
                        at: u64::try_from(at).expect("a length"),
                        len,
                    };
                    if !self.add_row(era, key, value, place) {
                        break;
                    }
                }
                // Every segment begins with an era.
                (JournalRecord::Row { .. }, None) => break,
            }
            at += len;
        }
        if at < bytes.len() {
            self.unreadable
                .push((path, u64::try_from(bytes.len() - at).expect("a length")));
        }
        None
    }

    /// Takes in a row; returns whether it is one that a node writes.
    fn add_row(&mut self, era: FleetEra, key: &str, value: &[u8], place: RowPlace) -> bool {
        if let Some(last) = self.keys.event_of(key) {
            let Some(commit) = commit_of_bytes(last, value) else {
                return false;
            };
            let commit = JournalledCommit::of(&commit, era, place);
            let known = self
                .ledgers
                .entry(last.ledger())
                .or_default()
                .entry(last)
                .or_insert(commit);
            // Of two that wrote the same events the later era is right about the request they came with.
            if known.era < era {
                *known = commit;
            }
            return true;
        }
        if let Some((series, last)) = self.keys.numbers_of(key) {
            let commit = numbers::commit_of_bytes(key, &series, last, value);
            return commit
                .map(|commit| self.numbers.add_commit(commit, era))
                .is_some();
        }
        if let Some((series, number)) = self.keys.void_of(key) {
            let void = numbers::void_of_bytes(key, (&series, number), value);
            return void.map(|void| self.numbers.add_void(void, era)).is_some();
        }
        let (Some(of), Some(anchors)) = (self.keys.pair_of(key), pair_of_bytes(key, value)) else {
            return false;
        };
        let known = self.pairs.entry(of).or_default();
        for anchor in &anchors {
            let reach = anchor.tca.reach();
            let beside = anchors
                .iter()
                .filter(|other| *other != anchor && reach.contains(&other.tca))
                .copied();
            match known
                .iter_mut()
                .find(|known| known.anchor.tca == anchor.tca)
            {
                Some(known) => {
                    known.era = known.era.max(era);
                    beside.for_each(|other| {
                        if !known.beside.contains(&other) {
                            known.beside.push(other)
                        }
                    });
                }
                None => known.push(JournalledAnchor {
                    anchor: *anchor,
                    era,
                    beside: beside.collect(),
                }),
            }
        }
        true
    }
}

/// The files of a journal, the oldest first.
fn files_of(path: &Path, namespace: &Namespace) -> io::Result<Vec<PathBuf>> {
    if fs::metadata(path)?.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let within = segments::folder_of(path, namespace);
    let segments = segments::list(if within.is_dir() { &within } else { path })?;
    // That of a node which has appended nothing is empty.
    let is_journal = within.is_dir() || path.file_name() == within.file_name();
    if segments.is_empty() && !is_journal {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "there is no journal",
        ));
    }
    Ok(segments.into_iter().map(|segment| segment.path).collect())
}
