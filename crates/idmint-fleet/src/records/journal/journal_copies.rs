//! Reads the journals of one or more nodes, and builds an index of their rows.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::journal_record::{ERA_LEN, JournalRecord};
use super::journalled_commit::{JournalledCommit, RowPlace};
use super::number_copies::NumberCopies;
use super::segments;
use crate::nonce::Nonce;
use crate::records::keys::Keys;
use crate::records::known_fleet::FleetEra;
use crate::records::numbers;
use crate::records::rows::{Commit, commit_of_bytes, is_whole, pair_of_bytes};
use crate::records::shared_store::written_later;
use idmint_core::time::UnixNanos;
use idmint_records::conjunction::{Anchor, Pair};
use idmint_records::ledger::{EventId, EventTime, LedgerId};
use idmint_storage::Namespace;

/// An index of the rows in one or more nodes' journals, by ledger, pair of objects and series. The
/// content of a ledger's rows stays in the files until it is needed.
#[derive(Debug)]
pub struct JournalCopies {
    keys: Keys,
    files: Vec<PathBuf>,
    /// For each given path, the eras of the rows in the journal there, in the order of the rows.
    eras: Vec<(PathBuf, Vec<FleetEra>)>,
    /// The highest number of earlier `fence-restore` commands (run by an operator after a restore)
    /// that any of the journals contains.
    fences: u32,
    pub(super) ledgers: BTreeMap<LedgerId, BTreeMap<EventId, JournalledCommit>>,
    /// The journalled anchors of each pair of objects.
    pub(super) pairs: BTreeMap<(String, Pair), Vec<JournalledAnchor>>,
    pub(super) numbers: NumberCopies,
    /// The journal files with an unreadable end, each with the length of that end in bytes. Usually
    /// the process was killed or the file was copied while a record was being written.
    torn: Vec<(PathBuf, u64)>,
    /// The unreadable parts that are followed by readable records.
    pub(super) damaged: Vec<DamagedPart>,
}

/// A damaged part of a journal file. Its rows cannot be used. An incomplete record at the end of a
/// file does not count as damage, because a killed process leaves one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedPart {
    /// The file.
    pub path: PathBuf,
    /// The position of the part in the file, in bytes.
    pub at: u64,
    /// The length of the part in bytes.
    pub len: u64,
    /// The number of usable rows in the file before the damaged part.
    pub rows_before: u64,
    /// The number of usable rows in the file after the damaged part.
    pub rows_after: u64,
}

/// The facts about a fleet that its nodes' journals (local copies of the fleet's rows) contain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JournalledFleet {
    /// The known names of the fleet. The first one identifies the fleet if the store has none.
    pub names: Vec<Nonce>,
    /// The highest number of earlier `fence-restore` commands that any of the journals contains.
    pub fences: u32,
    /// The latest time at which an event was recorded or a number issued.
    pub newest: Option<UnixNanos>,
    /// `true` if the import left out records because their predecessors are missing. For example,
    /// event 7 is left out if event 6 is missing.
    pub has_gap: bool,
}

/// An anchor from a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JournalledAnchor {
    pub(super) anchor: Anchor,
    /// The latest era in which any node journalled the anchor. An era lasts from one fence to the
    /// next.
    pub(super) era: FleetEra,
    /// Other anchors in the same row that are so close in time that they would normally be the same
    /// conjunction as `anchor`. They are separate, because a report that arrives with an id keeps
    /// that id and becomes an anchor.
    pub(super) beside: Vec<Anchor>,
}

/// The reason why journals cannot be read or imported. No row was written, unless an import had
/// already begun.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The path has no journal, or the journal cannot be read.
    #[error("{}: {error}", .path.display())]
    Unreadable {
        /// The given path.
        path: PathBuf,
        /// The reason.
        #[source]
        error: io::Error,
    },
    /// The journal belongs to another namespace.
    #[error(
        "{}: this is a journal of another namespace ({key}), not of {here}; correct etcd.namespace, or leave the journal out",
        .path.display()
    )]
    OtherNamespace {
        /// The given path.
        path: PathBuf,
        /// A key in the journal.
        key: String,
        /// The expected namespace.
        here: Namespace,
    },
    /// The journal belongs to another fleet.
    #[error(
        "{}: this is a journal of {other}, not of {here}. If a node with an empty folder founded {here} in a wiped etcd, \
         stop that node, wipe etcd again, and fence with all journals. If the node of this journal moved to {other} later, \
         give only its journal files of {here}", .path.display()
    )]
    OtherFleet {
        /// The given path.
        path: PathBuf,
        /// The fleet of the journal.
        other: String,
        /// The expected fleet.
        here: String,
    },
    /// A later version of this program wrote the journal.
    #[error("{}", written_later(&.path.display().to_string()))]
    LaterVersion {
        /// The given path.
        path: PathBuf,
    },
}

/// The reason why a file cannot be indexed.
enum NotIndexed {
    /// The file contains this key of another namespace.
    Stray(String),
    /// A later version of this program wrote the file.
    LaterVersion,
}

impl JournalCopies {
    /// Reads the journals of nodes at these paths. Each path is the data folder of a node, the
    /// folder of a journal, or a single journal file.
    ///
    /// # Errors
    /// Returns [`JournalError`] if a journal cannot be read or has rows of another etcd namespace.
    pub fn read(paths: &[PathBuf], namespace: &Namespace) -> Result<JournalCopies, JournalError> {
        let mut copies = JournalCopies {
            keys: Keys::of(namespace),
            files: Vec::new(),
            eras: Vec::new(),
            fences: 0,
            ledgers: BTreeMap::new(),
            pairs: BTreeMap::new(),
            numbers: NumberCopies::default(),
            torn: Vec::new(),
            damaged: Vec::new(),
        };
        for path in paths {
            let unreadable = |error| JournalError::Unreadable {
                path: path.clone(),
                error,
            };
            let mut eras = Vec::new();
            for file in files_of(path, namespace).map_err(unreadable)? {
                let bytes = fs::read(&file).map_err(unreadable)?;
                copies
                    .add_file(file, &bytes, &mut eras)
                    .map_err(|refused| match refused {
                        NotIndexed::Stray(key) => JournalError::OtherNamespace {
                            path: path.clone(),
                            key,
                            here: namespace.clone(),
                        },
                        NotIndexed::LaterVersion => {
                            JournalError::LaterVersion { path: path.clone() }
                        }
                    })?;
            }
            copies.eras.push((path.clone(), eras));
        }
        copies.numbers.settle();
        Ok(copies)
    }

    /// Keeps only the rows of the fleet that had one of these names, and returns the facts that the
    /// journals contain about this fleet. If `names` is empty because the store has no fleet any
    /// more, the latest era in which any journal ends determines the fleet. Rows of a fleet that a
    /// node left for this one belong to it if this one was fenced later, as when `fence-restore`
    /// renamed a wiped fleet. Other rows can exist if a node was part of another fleet before.
    ///
    /// # Errors
    /// Returns [`JournalError::OtherFleet`] if a journal ends with rows of another fleet.
    pub fn of_fleet(
        mut self,
        names: &[Nonce],
    ) -> Result<(JournalCopies, JournalledFleet), JournalError> {
        let mut names: Vec<u128> = names.iter().map(|name| name.bits()).collect();
        if names.is_empty() {
            let ends = self.eras.iter().filter_map(|(_, eras)| eras.last());
            names.extend(ends.max().map(|era| era.origin));
        }
        let renamed: Vec<[u128; 2]> = self
            .eras
            .iter()
            .flat_map(|(_, eras)| eras.windows(2))
            .filter(|eras| eras[1].is_later_fence(eras[0]))
            .map(|eras| [eras[0].origin, eras[1].origin])
            .collect();
        while let Some(pair) = renamed
            .iter()
            .find(|[from, to]| names.contains(from) != names.contains(to))
        {
            let new = pair.iter().find(|name| !names.contains(name));
            names.extend(new.copied());
        }
        let is_of = |era: FleetEra| names.contains(&era.origin);
        let other = self.eras.iter().find_map(|(path, eras)| {
            let last = eras.last().filter(|last| !is_of(**last))?;
            Some((path, last.origin))
        });
        if let Some((path, other)) = other {
            let began = |name: u128| format!("the fleet that began as {name:032x}");
            return Err(JournalError::OtherFleet {
                path: path.clone(),
                other: began(other),
                here: names.first().copied().map(began).unwrap_or_default(),
            });
        }
        self.ledgers
            .values_mut()
            .for_each(|commits| commits.retain(|_, commit| is_of(commit.era)));
        self.pairs
            .values_mut()
            .for_each(|anchors| anchors.retain(|anchor| is_of(anchor.era)));
        self.numbers.retain(is_of);
        let recorded = self.recorded().chain(self.numbers.recorded());
        let fleet = JournalledFleet {
            names: names.iter().copied().map(Nonce::new).collect(),
            fences: self.fences,
            newest: recorded
                .max()
                .map(|time| UnixNanos::new(time.micros().saturating_mul(1_000))),
            has_gap: false,
        };
        Ok((self, fleet))
    }

    /// Returns the number of journal files.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    /// Returns the files with an unreadable end, each with the length of that end in bytes. Usually
    /// the process was killed or the file was copied while a record was being written.
    pub fn torn(&self) -> &[(PathBuf, u64)] {
        &self.torn
    }

    /// Returns the recording times of all journalled commits.
    pub(super) fn recorded(&self) -> impl Iterator<Item = EventTime> {
        self.ledgers
            .values()
            .flat_map(BTreeMap::values)
            .map(|commit| commit.recorded)
    }

    /// Reads the row of a commit from its file, byte for byte as it was committed.
    ///
    /// # Errors
    /// Returns [`JournalError`] if the file has changed since it was indexed.
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
        commit.ok_or_else(|| {
            unreadable(io::Error::other(
                "the file has changed since it was first read",
            ))
        })
    }

    /// Indexes the rows of a journal file, and adds the eras of these rows to `eras`.
    fn add_file(
        &mut self,
        path: PathBuf,
        bytes: &[u8],
        eras: &mut Vec<FleetEra>,
    ) -> Result<(), NotIndexed> {
        let (mut at, mut era, mut rows) = (0, None, 0);
        // The start of the unusable part of the file at this position, and `true` if that part
        // contains a complete record. `None` if the position is not in such a part.
        let mut unused: Option<(usize, bool)> = None;
        let first_damaged = self.damaged.len();
        let damaged_part = |from: usize, to: usize, rows_before| DamagedPart {
            path: path.clone(),
            at: u64_of(from),
            len: u64_of(to - from),
            rows_before,
            rows_after: 0,
        };
        self.files.push(path.clone());
        while at < bytes.len() {
            let Some((record, len)) = JournalRecord::read_from(&bytes[at..]) else {
                if unused.is_none() && JournalRecord::is_later(&bytes[at..]) {
                    return Err(NotIndexed::LaterVersion);
                }
                unused.get_or_insert((at, false));
                at += 1;
                continue;
            };
            // A damaged part that is too short for a row may have been an era record. So the era of
            // the next rows is unknown.
            if unused.is_some_and(|(from, _)| at - from <= ERA_LEN) {
                era = None;
            }
            let (is_row, is_used) = match (record, era) {
                (JournalRecord::Era(begun), _) => {
                    self.fences = self.fences.max(begun.fences);
                    era = Some(begun);
                    (false, true)
                }
                (JournalRecord::Row { key, .. }, _) if !self.keys.are_above(key) => {
                    return Err(NotIndexed::Stray(key.to_owned()));
                }
                (JournalRecord::Row { key, value }, Some(era)) => {
                    if eras.last() != Some(&era) {
                        eras.push(era);
                    }
                    let place = RowPlace {
                        file: self.files.len() - 1,
                        at: u64_of(at),
                        len,
                    };
                    let is_used = self.add_row(era, key, value, place);
                    if !is_used && is_whole(key, value) {
                        return Err(NotIndexed::LaterVersion);
                    }
                    (true, is_used)
                }
                // The era of this row is unknown, so the row is not used. It may replace other
                // rows, or may itself have been replaced later.
                (JournalRecord::Row { .. }, None) => (true, false),
            };
            if !is_used {
                unused = Some((unused.map_or(at, |(from, _)| from), true));
            } else if let Some((from, _)) = unused.take() {
                self.damaged.push(damaged_part(from, at, rows));
            }
            rows += u64::from(is_row && is_used);
            at += len;
        }
        match unused {
            // The unusable end of the file contains a complete record. A killed process leaves only
            // incomplete ones, so the file is damaged.
            Some((from, true)) => self.damaged.push(damaged_part(from, at, rows)),
            Some((from, false)) => self.torn.push((path, u64_of(bytes.len() - from))),
            None => {}
        }
        for part in &mut self.damaged[first_damaged..] {
            part.rows_after = rows - part.rows_before;
        }
        Ok(())
    }

    /// Adds a row from a journal to the index. Returns `false` if the row cannot be decoded.
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
            // Several journalled rows can have the same events. Keep the one of the latest era.
            // After a restore, the events may have been appended again with another idempotency
            // key.
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
        if let Some((series, from)) = self.keys.form_of(key) {
            let change = numbers::form_of_bytes(key, (&series, from), value);
            return change
                .map(|change| self.numbers.add_form(change, era))
                .is_some();
        }
        if let Some(series) = self.keys.series_of(key) {
            let summary = numbers::series_of_bytes(key, series, value);
            let closed = summary.and_then(|summary| summary.closed);
            return closed
                .map(|closed| self.numbers.add_closed(closed, era))
                .is_some();
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

fn u64_of(len: usize) -> u64 {
    u64::try_from(len).expect("a length in memory")
}

/// Returns the files of a journal, oldest first.
fn files_of(path: &Path, namespace: &Namespace) -> io::Result<Vec<PathBuf>> {
    if fs::metadata(path)?.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let within = segments::folder_of(path, namespace);
    let segments = segments::list(if within.is_dir() { &within } else { path })?;
    // Accept a journal folder without files, because its node may not have journalled any row yet.
    let is_journal = within.is_dir() || path.file_name() == within.file_name();
    if segments.is_empty() && !is_journal {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "there is no journal here; name the data folder of a node, and leave out a node that has never run in this namespace",
        ));
    }
    Ok(segments.into_iter().map(|segment| segment.path).collect())
}
