//! Checks every page of a database before the engine uses the file.
//!
//! The check runs only if the first page matches neither of its checksums, after a power loss or a
//! flipped bit. In that case it is unknown which pages are in use. The engine checks the whole file
//! through a view that discards all writes. So a damaged file is reported and stays unchanged.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use redb::StorageBackend;
use tracing::warn;

use super::file_view::FileView;
use crate::embedded::block_file::BLOCK_LEN;

/// The offset of a byte in the first page of the engine. The lowest bit of this byte selects which
/// of the two commits in the page is current.
const SLOT_CHOICE_AT: u64 = 9;
const SLOT_BIT: u8 = 1;

/// The offsets of the transaction numbers of the two commits in the first page of a redb file. The
/// commits are described at bytes 64 and 192. Each number has eight bytes, in little-endian order.
const TRANSACTION_AT: [u64; 2] = [64 + 104, 64 + 128 + 104];

/// The result of a check in which every page was intact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Soundness {
    /// The whole file is consistent.
    Sound,
    /// The pages are intact, but the engine's list of free pages is out of date, as it may be after
    /// a crash.
    NotesAreStale,
}

impl Soundness {
    /// Rebuilds the engine's list of free pages if the list is out of date.
    pub(super) fn settle(
        self,
        engine: &mut redb::Database,
        path: &Path,
    ) -> Result<(), redb::Error> {
        if self == Soundness::NotesAreStale {
            warn!(path = %path.display(), "rebuilding the free page list of {}", path.display());
            engine.check_integrity()?;
        }
        Ok(())
    }
}

/// Checks every page of `base`.
///
/// A crash or a flipped bit can leave a file with a complete commit that is later than the current
/// one. The check then makes the later commit the current one. This is safe, because no caller was
/// told that the later commit had failed. In all other cases the file is not changed.
///
/// # Errors
/// Returns the error that the engine's check reports.
pub(super) fn check(
    base: &Arc<dyn StorageBackend>,
    path: &Path,
    builder: &redb::Builder,
) -> Result<Soundness, redb::Error> {
    let found = check_view(builder, FileView::of(Arc::clone(base))?)?;
    let Some(choice) = choice_of_a_later_commit(&**base)? else {
        return Ok(found);
    };
    let view = FileView::of(Arc::clone(base))?;
    view.write(SLOT_CHOICE_AT, &[choice])?;
    // The view makes the later of two commits current. If the later commit's pages are incomplete,
    // it was never finished, and the file's current commit is valid. Reading such pages may panic.
    //
    // Unwind safety: a panic drops the view and its engine.
    let Ok(Ok(of_later)) = catch_unwind(AssertUnwindSafe(|| check_view(builder, view))) else {
        return Ok(found);
    };
    warn!(
        path = %path.display(),
        "the last commit of {} was complete but not marked as current; the mark is repaired",
        path.display()
    );
    write_again(&**base)?;
    base.write(SLOT_CHOICE_AT, &[choice])?;
    base.sync_data()?;
    Ok(of_later)
}

/// Writes every page again, and syncs the file. The write is necessary because pages that were read
/// may exist only in the page cache. If a sync of these pages has failed, no later sync writes them
/// unless they are written again.
///
/// A damaged page is skipped. The check has read every page that the commit uses, so a damaged page
/// is a free one whose write was interrupted by a power loss.
fn write_again(base: &dyn StorageBackend) -> io::Result<()> {
    let mut page = [0; BLOCK_LEN];
    for at in (0..base.len()?).step_by(BLOCK_LEN) {
        match base.read(at, &mut page) {
            Ok(()) => base.write(at, &page)?,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
            Err(error) => return Err(error),
        }
    }
    base.sync_data()
}

/// Runs the engine's own check, which fails if a page in use is damaged.
fn check_view(builder: &redb::Builder, view: FileView) -> Result<Soundness, redb::Error> {
    match builder.create_with_backend(view)?.check_integrity()? {
        true => Ok(Soundness::Sound),
        false => Ok(Soundness::NotesAreStale),
    }
}

/// Returns the byte to write at [`SLOT_CHOICE_AT`] to make the other of the two commits in a redb
/// file current, if that commit is the later one. Otherwise returns `None`.
fn choice_of_a_later_commit(base: &dyn StorageBackend) -> io::Result<Option<u8>> {
    if base.len()? == 0 {
        return Ok(None);
    }
    let mut choice = [0];
    base.read(SLOT_CHOICE_AT, &mut choice)?;
    let mut transactions = [0; 2];
    for (number, at) in transactions.iter_mut().zip(TRANSACTION_AT) {
        let mut bytes = [0; 8];
        base.read(at, &mut bytes)?;
        *number = u64::from_le_bytes(bytes);
    }
    let [choice] = choice;
    let [first, second] = transactions;
    let (present, other) = if choice & SLOT_BIT == 0 {
        (first, second)
    } else {
        (second, first)
    };
    Ok((other > present).then_some(choice ^ SLOT_BIT))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt;

    use redb::{ReadableDatabase, ReadableTable, TableDefinition};

    use super::*;
    use crate::embedded::database_file::layout::Layout;
    use crate::embedded::database_file::{create, open, open_locked};

    const NUMBERS: TableDefinition<'_, u64, u64> = TableDefinition::new("numbers");
    const LOG_LEN: u32 = 4;

    fn write(engine: &redb::Database, number: u64) -> Result<(), redb::Error> {
        let mut transaction = engine.begin_write()?;
        transaction.set_quick_repair(true);
        transaction.open_table(NUMBERS)?.insert(number, number)?;
        Ok(transaction.commit()?)
    }

    fn last(engine: &redb::Database) -> Result<Option<u64>, redb::Error> {
        let numbers = engine.begin_read()?.open_table(NUMBERS)?;
        Ok(numbers.last()?.map(|(number, _)| number.value()))
    }

    fn flip_choice_of_slots(path: &Path) {
        let file = File::options()
            .read(true)
            .write(true)
            .open(path)
            .expect("opens");
        let at = Layout::with_log_of(LOG_LEN).page(0) * 4_096 + SLOT_CHOICE_AT;
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).expect("reads");
        file.write_all_at(&[byte[0] ^ SLOT_BIT], at)
            .expect("writes");
    }

    #[test]
    fn the_last_commit_is_found_again_although_the_choice_of_slots_was_flipped() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("idmint.redb");
        let copy = folder.path().join("copy");
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .expect("made");
        let builder = redb::Builder::new();
        let engine = create(Arc::new(file), LOG_LEN, &builder)
            .expect("the database is created")
            .engine;
        let mut found = 0;
        for number in 0..20 {
            write(&engine, number).expect("the database works");
            fs::copy(&path, &copy).expect("copied");
            flip_choice_of_slots(&copy);
            let file = open_locked(&copy).expect("nobody has it open");
            let opened = catch_unwind(AssertUnwindSafe(|| open(Arc::new(file), &copy, &builder)));
            match opened {
                Ok(Ok(copied)) => {
                    let last = last(&copied.engine).expect("sound");
                    assert_eq!(last, Some(number), "an older commit was taken for the last");
                    found += 1;
                }
                // In the file `copy`, the commit before the last one is marked as current. Pages of
                // that commit may be overwritten already, so the engine may fail or panic.
                Ok(Err(error)) => assert!(
                    matches!(error, redb::Error::Corrupted(_) | redb::Error::Io(_)),
                    "{error}"
                ),
                Err(_) => {}
            }
        }
        assert!(found > 0, "nothing was found again");
    }

    /// Returns the number of the last commit, or `None` if the check finds damage.
    fn last_of_sound(path: &Path) -> Option<u64> {
        let sound = || -> Result<Option<u64>, redb::Error> {
            let mut engine =
                open(Arc::new(open_locked(path)?), path, &redb::Builder::new())?.engine;
            engine.check_integrity()?;
            last(&engine)
        };
        catch_unwind(AssertUnwindSafe(sound)).ok()?.ok()?
    }

    #[test]
    fn a_free_page_that_is_half_written_is_no_hindrance() {
        const COMMITS: u64 = 12;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("idmint.redb");
        let copy = folder.path().join("copy");
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .expect("made");
        let engine = create(Arc::new(file), LOG_LEN, &redb::Builder::new())
            .expect("the database is created")
            .engine;
        let (mut free, mut found) = (0, 0);
        for number in 0..COMMITS {
            write(&engine, number).expect("the database works");
            let whole = fs::read(&path).expect("readable");
            let first =
                usize::try_from(Layout::with_log_of(LOG_LEN).page(1)).expect("small") * 4_096;
            // Overwrite half of a page, so that it does not match its checksum. A power loss can
            // have the same effect, because the checksum is written later than the page.
            for at in (first..whole.len()).step_by(7 * 4_096) {
                let mut spoilt = whole.clone();
                spoilt[at..at + 2_048].fill(7);
                fs::write(&copy, &spoilt).expect("writable");
                if last_of_sound(&copy) != Some(number) {
                    continue;
                }
                free += 1;
                fs::write(&copy, &spoilt).expect("writable");
                flip_choice_of_slots(&copy);
                // The file is refused if pages of the older commit, now current, were overwritten.
                if let Some(last) = last_of_sound(&copy) {
                    assert_eq!(last, number, "an older commit was taken for the last");
                    found += 1;
                }
            }
        }
        println!(
            "{COMMITS} commits, {free} half-written free pages, {found} times the last commit was found"
        );
        assert!(free > 20 && found > 0, "{free}, {found}");
    }
}
