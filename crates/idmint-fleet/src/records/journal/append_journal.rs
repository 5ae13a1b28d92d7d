//! Writes a node's journal, which is the local copy of the rows that its responses rely on.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tracing::{info, warn};

use super::journal_record::{ERA_LEN, JournalRecord};
use super::segments::{self, JournalBounds};
use crate::records::known_fleet::FleetEra;
use idmint_storage::FolderLock;
use idmint_storage::Namespace;

/// The limits on the disk space of a node's journal.
const BOUNDS: JournalBounds = JournalBounds {
    segment: 16 << 20,
    all: 256 << 20,
};

/// The maximum number of remembered hashes of journalled rows. Each row has two hashes, one of its
/// key and one of its key with its value. Without them, a row would be journalled again each time
/// that it is read.
const KNOWN_MAX: usize = 200_000;

/// The journal of a node, in files of its data folder. It contains the rows that etcd has committed
/// for this node, and other rows that the node's responses rely on.
///
/// A row is journalled after its commit and before the response, without a sync. The journal is
/// needed only if etcd loses acknowledged data. Its last rows are then missing only if this machine
/// crashed as well. The journal never delays a response. If a write fails, the failure is logged
/// and counted, and the response is sent nevertheless.
pub struct AppendJournal {
    folder: PathBuf,
    bounds: JournalBounds,
    count_failure: Box<dyn Fn() + Send + Sync>,
    state: Mutex<State>,
    /// Keeps other processes out of the data folder.
    _lock: Option<Arc<FolderLock>>,
}

#[derive(Default)]
struct State {
    open: Option<OpenSegment>,
    known: KnownRows,
    has_failed: bool,
}

/// The segment file that is currently written.
struct OpenSegment {
    file: File,
    len: u64,
    /// The era in which the last rows of the segment were committed. An era lasts from one fence to
    /// the next.
    era: Option<FleetEra>,
}

/// Hashes of the most recently written rows.
#[derive(Default)]
struct KnownRows {
    /// The era in which the rows were written.
    era: Option<FleetEra>,
    rows: HashSet<u64>,
    oldest_first: VecDeque<u64>,
}

impl AppendJournal {
    /// Opens the journal of a namespace in the data folder `data_dir`, which need not exist yet.
    /// Calls `count_failure` for each failed write.
    ///
    /// The journal's folder is created at once. An empty folder shows that nothing was journalled
    /// yet, and an unwritable one is noticed before the journal is needed.
    pub fn of(
        data_dir: &Path,
        namespace: &Namespace,
        count_failure: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let journal = AppendJournal {
            folder: segments::folder_of(data_dir, namespace),
            bounds: BOUNDS,
            count_failure: Box::new(count_failure),
            state: Mutex::default(),
            _lock: None,
        };
        let created = segments::create(&journal.folder);
        journal.tell(
            &mut journal.state.lock().expect("no holder of this lock panics"),
            created,
        );
        journal
    }

    /// Adds the lock of the data folder, which is held as long as the journal may be written.
    #[must_use]
    pub fn locked_by(self, lock: Option<Arc<FolderLock>>) -> AppendJournal {
        AppendJournal {
            _lock: lock,
            ..self
        }
    }

    /// Sets different limits on the disk space.
    #[cfg(test)]
    pub(super) fn within(self, bounds: JournalBounds) -> Self {
        AppendJournal { bounds, ..self }
    }

    /// `true` if the journal may lack the row under this key that was committed in this era. An era
    /// lasts from one fence to the next.
    pub(in crate::records) fn lacks(&self, era: FleetEra, key: &str) -> bool {
        !self
            .state
            .lock()
            .expect("no holder of this lock panics")
            .known
            .of_era(era)
            .has(name_of(key, None))
    }

    /// Appends rows that were committed in `era` to the journal, in a single write. Leaves out rows
    /// that the journal certainly has.
    pub(in crate::records) fn keep(&self, era: FleetEra, rows: &[(&str, &[u8])]) {
        let mut state = self.state.lock().expect("no holder of this lock panics");
        let known = state.known.of_era(era);
        let is_new = |(key, value): &&(&str, &[u8])| !known.has(name_of(key, Some(value)));
        let rows: Vec<&(&str, &[u8])> = rows.iter().filter(is_new).collect();
        if rows.is_empty() {
            return;
        }
        let mut bytes = Vec::new();
        rows.iter()
            .for_each(|(key, value)| JournalRecord::Row { key, value }.write_to(&mut bytes));
        let written = state.write(&self.folder, self.bounds, era, &bytes);
        if written.is_ok() {
            rows.iter()
                .for_each(|(key, value)| state.known.add(key, value));
        }
        self.tell(&mut state, written);
    }

    /// Logs when writing to the journal fails, and when it works again.
    fn tell(&self, state: &mut State, written: io::Result<()>) {
        let (folder, has_failed) = (self.folder.display(), written.is_err());
        if has_failed {
            (self.count_failure)();
        }
        match written {
            Err(error) if !state.has_failed => warn!(
                "the journal in {folder} cannot be written ({error}): appends are still acknowledged, but are lost if \
                 etcd is restored from a backup; retrying with each append"
            ),
            Ok(()) if state.has_failed => info!("the journal in {folder} is written again"),
            Ok(()) | Err(_) => {}
        }
        state.has_failed = has_failed;
    }
}

impl State {
    fn write(
        &mut self,
        folder: &Path,
        bounds: JournalBounds,
        era: FleetEra,
        rows: &[u8],
    ) -> io::Result<()> {
        let fits =
            |open: &OpenSegment| open.len + len_of(rows) + len_of(&[0; ERA_LEN]) <= bounds.segment;
        let mut open = match self.open.take().filter(fits) {
            Some(open) => open,
            None => OpenSegment {
                file: segments::begin(folder, bounds)?,
                len: 0,
                era: None,
            },
        };
        let mut bytes = Vec::new();
        if open.era != Some(era) {
            JournalRecord::Era(era).write_to(&mut bytes);
        }
        bytes.extend(rows);
        let written = open.append(&bytes);
        if written.is_ok() {
            open.era = Some(era);
        }
        // No record may follow an incomplete one in a segment. If the incomplete record cannot be
        // cut off, the next write begins a new segment.
        if written.is_ok() || open.file.set_len(open.len).is_ok() {
            self.open = Some(open);
        }
        written
    }
}

impl OpenSegment {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.len += len_of(bytes);
        Ok(())
    }
}

impl KnownRows {
    /// Returns the hashes of the last rows that were journalled in this era, and discards the
    /// hashes of other eras. In a later era, the same key can have another value. For example, a
    /// number that a restore lost may be issued again.
    fn of_era(&mut self, era: FleetEra) -> &mut KnownRows {
        if self.era != Some(era) {
            *self = KnownRows {
                era: Some(era),
                ..KnownRows::default()
            };
        }
        self
    }

    fn has(&self, name: u64) -> bool {
        self.rows.contains(&name)
    }

    fn add(&mut self, key: &str, value: &[u8]) {
        for name in [name_of(key, None), name_of(key, Some(value))] {
            if self.rows.insert(name) {
                self.oldest_first.push_back(name);
            }
        }
        while self.oldest_first.len() > KNOWN_MAX {
            let oldest = self
                .oldest_first
                .pop_front()
                .expect("there are more than none");
            self.rows.remove(&oldest);
        }
    }
}

/// Returns a hash of a row, or of its key if `value` is `None`.
fn name_of(key: &str, value: Option<&[u8]>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, value).hash(&mut hasher);
    hasher.finish()
}

fn len_of(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).expect("bytes in memory")
}

impl fmt::Debug for AppendJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppendJournal")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}
