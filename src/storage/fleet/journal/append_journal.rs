//! The journal as a node writes it.

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
use crate::storage::etcd::Namespace;
use crate::storage::files::FolderLock;
use crate::storage::fleet::known_fleet::FleetEra;

/// What a journal takes of the disk at most.
const BOUNDS: JournalBounds = JournalBounds {
    segment: 16 << 20,
    all: 256 << 20,
};

/// Rows that are known to be in the journal: what was told again and again is written once, about.
const KNOWN_MAX: usize = 200_000;

/// What etcd has committed for this node, and what else its answers rest on, in files of its data folder.
///
/// It is written after the commit and before the answer, without a sync: it is needed only where etcd has lost what it had
/// acknowledged, and is missed only if the machine has crashed, too. It is a help and never an obstacle: where it cannot be
/// written the answer is given all the same, and that is said and counted.
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

/// The segment that is written to.
struct OpenSegment {
    file: File,
    len: u64,
    /// That of its last rows.
    era: Option<FleetEra>,
}

/// The rows that were written last.
#[derive(Default)]
struct KnownRows {
    rows: HashSet<u64>,
    oldest_first: VecDeque<u64>,
}

impl AppendJournal {
    /// The journal of this namespace in this data folder, which need not be there yet. `count_failure` hears of each write that
    /// failed. That there is nothing in it is said by an empty folder, and that it cannot be written before it is needed.
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

    /// The same in a data folder that is locked so.
    #[must_use]
    pub fn locked_by(self, lock: Option<Arc<FolderLock>>) -> AppendJournal {
        AppendJournal {
            _lock: lock,
            ..self
        }
    }

    /// The same that takes no more of the disk than this.
    #[cfg(test)]
    pub(super) fn within(self, bounds: JournalBounds) -> Self {
        AppendJournal { bounds, ..self }
    }

    /// Whether no row of this key is known to be in it.
    pub(in crate::storage::fleet) fn lacks(&self, key: &str) -> bool {
        !self
            .state
            .lock()
            .expect("no holder of this lock panics")
            .known
            .has(name_of(key, None))
    }

    /// Writes rows that are committed, in one write, but those that it has.
    pub(in crate::storage::fleet) fn keep(&self, era: FleetEra, rows: &[(&str, &[u8])]) {
        let mut state = self.state.lock().expect("no holder of this lock panics");
        let is_new = |(key, value): &&(&str, &[u8])| !state.known.has(name_of(key, Some(value)));
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

    /// Says when it cannot be written, and when it can be again.
    fn tell(&self, state: &mut State, written: io::Result<()>) {
        let (folder, has_failed) = (self.folder.display(), written.is_err());
        if has_failed {
            (self.count_failure)();
        }
        match written {
            Err(error) if !state.has_failed => warn!(
                "the journal in {folder} cannot be written ({error}): appends are acknowledged all the same, but those of now \
                 are lost if etcd is restored from a backup; it is tried again with each of them"
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
        // Nothing may stand behind half a record: where it cannot be cut off another segment is begun.
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

/// Short for a row, or for a key whatever is there.
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
