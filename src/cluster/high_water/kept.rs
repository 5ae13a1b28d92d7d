//! The file by which what a node knows of its coordinator outlasts the process.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use super::high_water::HighWater;
use crate::storage::{CheckedFile, FolderLock, Namespace};
use crate::time::UnixNanos;

/// How far the file may be behind while the node renews its slot: by so much less a restart finds out what was lost.
pub(in crate::cluster) const WRITE_EVERY: Duration = Duration::from_secs(30);

/// What a node knows of its coordinator, in a file of its data folder.
///
/// It is only ever a help: without a folder that can be written, or with a file that is damaged, the node goes by what it
/// learns while it runs, and says so.
#[derive(Debug, Default)]
pub struct KeptHighWater {
    /// `None` where nothing is to be kept.
    file: Option<CheckedFile>,
    written: HighWater,
    /// When what is new is written next.
    write_at: UnixNanos,
    has_failed: bool,
    /// Keeps other processes out of the folder while this one may write.
    _lock: Option<Arc<FolderLock>>,
}

impl KeptHighWater {
    /// Of this fleet, in this folder.
    pub fn of(folder: &Path, namespace: &Namespace) -> KeptHighWater {
        KeptHighWater::at(&folder.join(format!("high-water-{namespace}")))
    }

    /// At this path.
    pub fn at(path: &Path) -> KeptHighWater {
        KeptHighWater {
            file: Some(CheckedFile::at(path)),
            ..KeptHighWater::default()
        }
    }

    /// The same for a node that writes it, in a folder that is locked so.
    #[must_use]
    pub fn locked_by(self, lock: Option<Arc<FolderLock>>) -> KeptHighWater {
        KeptHighWater {
            _lock: lock,
            ..self
        }
    }

    /// Where it is; `None` where nothing is kept.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(CheckedFile::path)
    }

    /// What was kept; nothing is known where there is no file.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(&self) -> Result<HighWater, String> {
        let Some(file) = &self.file else {
            return Ok(HighWater::default());
        };
        match file.read() {
            Ok(None) => Ok(HighWater::default()),
            Ok(Some(text)) => HighWater::from_text(&text).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
        .map_err(|error| format!("{}: {error}", file.path().display()))
    }

    /// As [`KeptHighWater::read`], for a node that starts.
    pub(in crate::cluster) fn begin(&mut self) -> HighWater {
        self.written = self.read().unwrap_or_else(|error| {
            warn!(
                "{error}; whether etcd was restored or wiped while this node was down is not known, \
                 what is lost from now on is found"
            );
            HighWater::default()
        });
        self.written.clone()
    }

    /// Writes what is known: at once if it is of another fleet than what is written, or of another slot; else now and then.
    pub(in crate::cluster) fn keep(&mut self, now: UnixNanos, known: &HighWater) {
        let slots_of =
            |known: &HighWater| known.slots().map(|(slot, _)| slot).collect::<Vec<u32>>();
        let is_new =
            known.fleet() != self.written.fleet() || slots_of(known) != slots_of(&self.written);
        let is_due = now >= self.write_at || (is_new && !self.has_failed);
        if is_due && *known != self.written {
            self.write_at = now.after(WRITE_EVERY);
            self.write(known);
        }
    }

    /// Writes what is known, of a node that ends.
    pub(in crate::cluster) fn keep_last(&mut self, known: &HighWater) {
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
                    "{path} cannot be written ({error}), and is tried again every {} s: after a restart this node may not \
                     notice that etcd was restored or wiped",
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
    use crate::cluster::nonce::Nonce;
    use crate::storage::{FailureKind, OwnEngine, Revision};

    const NOON: UnixNanos = UnixNanos::from_seconds(1_900_000_000);

    fn known(fleet: u128, revision: u64) -> HighWater {
        let mut known = HighWater::default();
        known.meet(Nonce::new(fleet), NOON, Revision(revision), NOON);
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
            assert_eq!(kept.read(), Ok(known(1, on_disk)), "after {after} s");
        }
        kept.keep(NOON.after(Duration::from_secs(59)), &known(2, 1));
        assert_eq!(kept.read(), Ok(known(2, 1)), "another fleet");
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

    /// It knows the file without knowing this type.
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
        assert_eq!(opened.horizon(), known.highest());
        assert_eq!(opened.horizon(), Some(NOON.after(Duration::from_secs(60))));
    }

    #[test]
    fn what_cannot_be_written_or_read_is_gone_on_without() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "damaged").expect("the folder is writable");
        assert!(
            KeptHighWater::at(&file)
                .read()
                .is_err_and(|error| error.contains("file"))
        );
        assert_eq!(KeptHighWater::at(&file).begin(), HighWater::default());
        // A file where the folder should be.
        let mut kept = KeptHighWater::at(&file.join("below"));
        kept.keep(NOON, &known(1, 5));
        assert!(kept.has_failed);
        std::fs::remove_file(&file).expect("it is there");
        kept.keep(NOON, &known(1, 6));
        assert!(kept.has_failed, "not tried again so soon");
        kept.keep(NOON.after(WRITE_EVERY), &known(1, 7));
        assert_eq!((kept.has_failed, kept.read()), (false, Ok(known(1, 7))));
    }
}
