//! Whether every page of a database is what was written, asked before the engine works with the file.
//!
//! Only asked where the first page fits none of its checksums, after a loss of power or a flipped bit, since what that page
//! leads to is then unknown; and of a file without checksums. The engine's own check of the whole file is run over a view that
//! keeps to itself whatever the check writes, so a damaged file is named and stays as it is.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use redb::StorageBackend;
use tracing::warn;

use super::file_view::FileView;
use crate::storage::embedded::block_file::BLOCK_LEN;

/// Where the byte lies whose lowest bit says which of the two commit slots is the present one.
const SLOT_CHOICE_AT: u64 = 9;
const SLOT_BIT: u8 = 1;

/// Where each commit slot keeps the number of its transaction: eight bytes, little-endian.
const TRANSACTION_AT: [u64; 2] = [64 + 104, 64 + 128 + 104];

/// How a file was found whose every page is what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Soundness {
    /// As it should be.
    Sound,
    /// What the engine notes beside its trees is not up to date, as it may be after a crash.
    NotesAreStale,
}

impl Soundness {
    /// Makes the notes anew from the trees, where they are not up to date.
    pub(super) fn settle(
        self,
        engine: &mut redb::Database,
        path: &Path,
    ) -> Result<(), redb::Error> {
        if self == Soundness::NotesAreStale {
            warn!(path = %path.display(), "what {} notes of its free pages is made anew", path.display());
            engine.check_integrity()?;
        }
        Ok(())
    }
}

/// Checks every page of `base`, and changes nothing but this: a later commit that is there whole, and that a crash or a
/// flipped bit keeps from being the present one, becomes it. Either it was acknowledged, or nobody was told its outcome.
///
/// # Errors
/// What the engine finds.
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
    // Where its pages are not whole it was never finished, and the present one is right. The engine may stop over them.
    // Unwind safety: the view and the engine over it are gone.
    let Ok(Ok(of_later)) = catch_unwind(AssertUnwindSafe(|| check_view(builder, view))) else {
        return Ok(found);
    };
    warn!(path = %path.display(), "the last commit of {} is whole but was not the present one; it is now", path.display());
    write_again(&**base)?;
    base.write(SLOT_CHOICE_AT, &[choice])?;
    base.sync_data()?;
    Ok(of_later)
}

/// Writes each page once more, and syncs that. What is read may be in memory alone: if the commit failed because a sync did,
/// no later sync brings those pages to the disk.
///
/// A page that is not what was written is left as it is: the check has read all that the commit leads to, so it is free, and
/// a loss of power came while it was being written.
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

/// The engine's own check, which fails where a page is not what was written.
fn check_view(builder: &redb::Builder, view: FileView) -> Result<Soundness, redb::Error> {
    match builder.create_with_backend(view)?.check_integrity()? {
        true => Ok(Soundness::Sound),
        false => Ok(Soundness::NotesAreStale),
    }
}

/// The byte that would make the later transaction the present one, if the present one is the earlier.
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
    use crate::storage::embedded::database_file::layout::Layout;
    use crate::storage::embedded::database_file::{create, open, open_locked};

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
        let (path, copy) = (
            folder.path().join("idmint.redb"),
            folder.path().join("copy"),
        );
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
                // The pages of the commit before are used again already, and the engine may stop over them.
                Ok(Err(error)) => assert!(
                    matches!(error, redb::Error::Corrupted(_) | redb::Error::Io(_)),
                    "{error}"
                ),
                Err(_) => {}
            }
        }
        assert!(found > 0, "nothing was found again");
    }

    /// The number of the last commit, of a file whose every page that a commit leads to is what was written.
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
        let (path, copy) = (
            folder.path().join("idmint.redb"),
            folder.path().join("copy"),
        );
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
            // As a loss of power leaves a page that was being written: its checksum comes later.
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
                // Of the commit before pages may be used again already: then the file is refused.
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
