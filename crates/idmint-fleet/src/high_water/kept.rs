//! The file that keeps a node's high water across restarts. The high water has the highest values
//! that the coordinator has acknowledged.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use super::high_water::HighWater;
use idmint_core::time::UnixNanos;
use idmint_storage::{CheckedFile, FailureKind, FolderLock, Namespace, StoreError};

/// The minimum interval between two writes of the file while the node only renews its slot. A crash
/// loses the values since the last write. So after a restart the node may not detect that etcd has
/// lost writes of this interval.
pub(crate) const WRITE_EVERY: Duration = Duration::from_secs(30);

/// The high water of a node, stored in a file of its data folder.
///
/// The file is optional. If the folder is not writable or the file is damaged, the node logs a
/// warning. It then detects only losses of data that it has seen since its start.
#[derive(Debug, Default)]
pub struct KeptHighWater {
    /// The file, or `None` if the high water is kept in memory only.
    file: Option<CheckedFile>,
    written: HighWater,
    /// The earliest time at which changed values are written again.
    write_at: UnixNanos,
    has_failed: bool,
    /// Keeps other processes out of the folder while this process may write the file.
    _lock: Option<Arc<FolderLock>>,
}

impl KeptHighWater {
    /// Returns the high-water file of a namespace in this folder.
    pub fn of(folder: &Path, namespace: &Namespace) -> KeptHighWater {
        KeptHighWater::at(&folder.join(format!("high-water-{namespace}")))
    }

    /// Returns the high-water file at this path.
    pub fn at(path: &Path) -> KeptHighWater {
        KeptHighWater {
            file: Some(CheckedFile::at(path)),
            ..KeptHighWater::default()
        }
    }

    /// Adds the lock of the data folder, which is held as long as this value exists.
    #[must_use]
    pub fn locked_by(self, lock: Option<Arc<FolderLock>>) -> KeptHighWater {
        KeptHighWater {
            _lock: lock,
            ..self
        }
    }

    /// Returns the path of the file, or `None` if the high water is kept in memory only.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(CheckedFile::path)
    }

    /// Reads the stored high water. Returns an empty one if no file exists.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the file cannot be read. Its kind is [`FailureKind::Disagrees`] if
    /// a later version of this program has written the file.
    pub fn read(&self) -> Result<HighWater, StoreError> {
        let Some(file) = &self.file else {
            return Ok(HighWater::default());
        };
        let (kind, error) = match file.read() {
            Ok(None) => return Ok(HighWater::default()),
            Ok(Some(text)) => match HighWater::from_text(&text) {
                Ok(known) => return Ok(known),
                Err(error) => (error.failure_kind(), error.to_string()),
            },
            Err(error) => (FailureKind::Damaged, error.to_string()),
        };
        let text = format!("{}: {error}", file.path().display());
        Err(StoreError::new(kind, text))
    }

    /// Checks that no later version of this program has written the file, because this version
    /// would overwrite it.
    ///
    /// # Errors
    /// Returns [`StoreError`] if a later version has written the file.
    pub fn check_version(&self) -> Result<(), StoreError> {
        match self.read() {
            Err(error) if error.failure_kind() == FailureKind::Disagrees => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Reads the high water at the start of a node. Unlike [`KeptHighWater::read`], logs a warning
    /// and returns an empty high water if the file is unreadable.
    pub(crate) fn begin(&mut self) -> HighWater {
        self.written = self.read().unwrap_or_else(|error| {
            warn!(
                "{error}; this start cannot detect whether etcd was restored or wiped while this node was \
                 down; if so, run `idmint fleet fence-restore`"
            );
            HighWater::default()
        });
        self.written.clone()
    }

    /// Writes the high water to its file if a write is due. A change of the fleet, of its adoptions
    /// or of the set of slots is written at once. Other changes are written every [`WRITE_EVERY`].
    pub(crate) fn keep(&mut self, now: UnixNanos, known: &HighWater) {
        let slots_of =
            |known: &HighWater| known.slots().map(|(slot, _)| slot).collect::<Vec<u32>>();
        let is_new = known.fleet() != self.written.fleet()
            || known.least() != self.written.least()
            || known.adoptions().ne(self.written.adoptions())
            || slots_of(known) != slots_of(&self.written);
        let is_due = now >= self.write_at || (is_new && !self.has_failed);
        if is_due && *known != self.written {
            self.write_at = now.after(WRITE_EVERY);
            self.write(known);
        }
    }

    /// Writes the high water to its file when the node ends. Does nothing if the file is up to
    /// date.
    pub(crate) fn keep_last(&mut self, known: &HighWater) {
        if *known != self.written {
            self.write(known);
        }
    }

    fn write(&mut self, known: &HighWater) {
        let (Some(file), Some(text)) = (&self.file, known.to_text()) else {
            return;
        };
        match file.write(&text) {
            Ok(()) => {
                self.written = known.clone();
                self.has_failed = false;
            }
            Err(error) if !self.has_failed => {
                self.has_failed = true;
                let path = file.path().display();
                warn!(
                    "{path} cannot be written ({error}), so after a restart this node may not notice that \
                     etcd was restored or wiped; check the disk; retrying every {} s",
                    WRITE_EVERY.as_secs()
                );
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nonce::Nonce;
    use crate::{FleetEra, Revision};
    use idmint_storage::OwnEngine;

    const NOON: UnixNanos = UnixNanos::from_seconds(1_900_000_000);

    fn known(fleet: u128, revision: u64) -> HighWater {
        let mut known = HighWater::default();
        known.meet(
            Nonce::new(fleet),
            FleetEra::first(Nonce::new(fleet), NOON),
            Revision(revision),
            NOON,
        );
        known
    }

    #[test]
    fn a_fleet_is_written_at_once_and_what_is_new_of_it_every_half_minute() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("data");
        let mut kept = KeptHighWater::of(&path, &Namespace::default());
        assert_eq!(kept.begin(), HighWater::default());
        kept.keep(NOON, &HighWater::default());
        assert!(!path.exists(), "nothing is known");
        for (after, revision, on_disk) in [(0, 5, 5), (29, 6, 5), (30, 7, 7), (59, 8, 7)] {
            kept.keep(NOON.after(Duration::from_secs(after)), &known(1, revision));
            let read = kept.read().expect("it is whole");
            assert_eq!(read, known(1, on_disk), "after {after} s");
        }
        kept.keep(NOON.after(Duration::from_secs(59)), &known(2, 1));
        assert_eq!(kept.read().expect("whole"), known(2, 1), "another fleet");
        kept.keep_last(&known(2, 3));
        assert_eq!(
            KeptHighWater::of(&path, &Namespace::default()).begin(),
            known(2, 3)
        );
        let other = Namespace::parse("other").expect("a name");
        assert_eq!(
            KeptHighWater::of(&path, &other).begin(),
            HighWater::default(),
            "each namespace has its own"
        );
    }

    #[test]
    fn a_file_of_a_later_version_is_told_from_a_damaged_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let kept = KeptHighWater::of(folder.path(), &Namespace::default());
        let text = known(1, 5).to_text().expect("something is known");
        let later = text.replace("\"v\":1", "\"v\":3,\"more\":0");
        let path = kept.path().expect("it is in a folder");
        CheckedFile::at(path).write(&later).expect("writable");
        let error = kept.check_version().expect_err("it has version 2");
        assert_eq!(error.failure_kind(), FailureKind::Disagrees);
        let text = error.to_string();
        assert!(
            text.contains("a later version") && text.contains("high-water"),
            "{text}"
        );

        let mut flipped = std::fs::read(path).expect("it is there");
        flipped[9] ^= 1;
        std::fs::write(path, flipped).expect("writable");
        let error = kept.read().expect_err("a bit is flipped");
        assert_eq!(error.failure_kind(), FailureKind::Damaged);
        kept.check_version().expect("a damaged file is replaced");
    }

    /// Tests the format of the file, because a node outside of a fleet parses it with separate
    /// code.
    #[test]
    fn a_single_node_that_finds_it_begins_above_all_that_it_says() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut kept = KeptHighWater::of(folder.path(), &Namespace::default());
        let mut known = known(1, 5);
        for (slot, after) in [(1, 60), (2, 30)] {
            known.acknowledge(
                slot,
                NOON.after(Duration::from_secs(after)),
                Revision(6),
                NOON,
            );
        }
        kept.keep(NOON, &known);
        let engine = OwnEngine::Embedded {
            data_dir: folder.path().to_owned(),
        };
        let refused = engine.open(0, None).err().expect("there was a fleet");
        assert_eq!(refused.failure_kind(), FailureKind::Disagrees);
        let opened = engine.open(0, Some(NOON)).expect("above a floor");
        let highest = NOON.after(Duration::from_secs(60));
        assert_eq!(known.highest(), Some(highest));
        let horizon = opened.horizon().expect("the floor was written");
        assert!(horizon > highest && horizon < highest.after(Duration::from_millis(1)));
    }

    #[test]
    fn what_cannot_be_written_or_read_is_gone_on_without() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "damaged").expect("the folder is writable");
        let error = KeptHighWater::at(&file).read().expect_err("damaged");
        assert_eq!(error.failure_kind(), FailureKind::Damaged);
        assert!(error.to_string().contains("file"), "{error}");
        KeptHighWater::at(&file)
            .check_version()
            .expect("it has no version");
        assert_eq!(KeptHighWater::at(&file).begin(), HighWater::default());
        // A file at the path of the folder makes every write fail.
        let mut kept = KeptHighWater::at(&file.join("below"));
        kept.keep(NOON, &known(1, 5));
        assert!(kept.has_failed);
        std::fs::remove_file(&file).expect("it is there");
        kept.keep(NOON, &known(1, 6));
        assert!(kept.has_failed, "not tried again so soon");
        kept.keep(NOON.after(WRITE_EVERY), &known(1, 7));
        assert!(!kept.has_failed);
        assert_eq!(kept.read().expect("whole"), known(1, 7));
    }
}
