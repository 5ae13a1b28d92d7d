//! A file of the engine alone, as versions before the log have left it: copied page by page into one with checksums.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use redb::StorageBackend;
use tracing::info;

use super::checked_pages::CheckedPages;
use super::file_view::LockedFile;
use super::integrity;
use super::layout::{HEAD_BLOCK, Layout};
use crate::storage::embedded::block_file::BlockFile;
use crate::storage::embedded::file_system::{FILE_MODE, MachineFiles, rename_durably};

/// What a file of the engine begins with.
const MAGIC: [u8; 4] = *b"redb";

/// How much is copied at once.
const PIECE_LEN: usize = 1 << 20;

/// Whether the file is one of the engine alone.
///
/// # Errors
/// What the disk says.
pub(super) fn is_former(file: &File) -> io::Result<bool> {
    let mut start = [0; MAGIC.len()];
    match file.read_exact_at(&mut start, 0) {
        Ok(()) => Ok(start == MAGIC),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Checks every page of the file, and puts in its place a file of today with the same pages and a log of so many blocks.
///
/// # Errors
/// What the engine or the disk says; the file is then as it was.
pub(super) fn copy(file: File, path: &Path, log_len: u32, builder: &redb::Builder) -> Result<(), redb::Error> {
    info!(path = %path.display(), "{} gets a log and checksums", path.display());
    let from: Arc<dyn StorageBackend> = Arc::new(LockedFile(file));
    integrity::check(&from, path, builder)?;
    let unfinished = path.with_extension("new");
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let to = OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(&unfinished)?;
    let (to, layout): (Arc<dyn BlockFile>, _) = (Arc::new(to), Layout::with_log_of(log_len));
    to.write_block(HEAD_BLOCK, &layout.to_head())?;
    let pages = CheckedPages::open(to, layout)?;
    let len = from.len()?;
    pages.set_len(len)?;
    let mut piece = vec![0; PIECE_LEN];
    let mut at = 0;
    while at < len {
        let piece_len = usize::try_from(len - at).map_or(PIECE_LEN, |left| left.min(PIECE_LEN));
        from.read(at, &mut piece[..piece_len])?;
        pages.write(at, &piece[..piece_len])?;
        at += u64::try_from(piece_len).map_err(io::Error::other)?;
    }
    pages.sync_data()?;
    Ok(rename_durably(&MachineFiles, &unfinished, path)?)
}

#[cfg(test)]
mod tests {
    use redb::{ReadableDatabase, ReadableTableMetadata, TableDefinition};

    use super::*;
    use crate::storage::embedded::database_file::{open, open_locked};

    const NUMBERS: TableDefinition<'_, u64, u64> = TableDefinition::new("numbers");
    const LOG_LEN: u32 = 4;

    /// A file of the engine alone: as a killed process leaves it, and one that has ended well.
    fn former_files(folder: &Path) -> [std::path::PathBuf; 2] {
        let [killed, closed] = ["killed", "closed"].map(|name| folder.join(name));
        let engine = redb::Builder::new().create(&closed).expect("made");
        for number in 0..500 {
            let mut transaction = engine.begin_write().expect("begins");
            transaction.set_quick_repair(true);
            transaction.open_table(NUMBERS).expect("opens").insert(number, number).expect("inserts");
            transaction.commit().expect("commits");
        }
        fs::copy(&closed, &killed).expect("copied");
        drop(engine);
        [killed, closed]
    }

    #[test]
    fn a_file_of_the_engine_alone_gets_a_log_and_checksums_and_keeps_every_row() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let builder = redb::Builder::new();
        for path in former_files(folder.path()) {
            assert!(is_former(&File::open(&path).expect("opens")).expect("reads"));
            // What an earlier attempt has left.
            fs::write(path.with_extension("new"), "half").expect("written");
            let file = open_locked(&path, LOG_LEN, &builder).expect("it is moved in");
            assert!(!is_former(&file).expect("reads") && !path.with_extension("new").exists());
            let opened = open(Arc::new(file), &path, &builder).expect("it opens");
            let numbers = opened.engine.begin_read().expect("begins").open_table(NUMBERS).expect("it is there");
            assert_eq!(numbers.len().expect("known"), 500, "{}", path.display());
            assert!((0..500).all(|number| numbers.get(number).expect("reads").expect("there").value() == number));
        }
    }

    #[test]
    fn a_damaged_file_of_the_engine_alone_stays_as_it_is() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [killed, _] = former_files(folder.path());
        let mut bytes = fs::read(&killed).expect("readable");
        for bytes in bytes[2 * 4_096..].chunks_mut(4_096) {
            bytes[100] ^= 1;
        }
        fs::write(&killed, &bytes).expect("writable");
        let moved = std::panic::catch_unwind(|| open_locked(&killed, LOG_LEN, &redb::Builder::new()).is_ok());
        assert!(!matches!(moved, Ok(true)), "damage was moved in");
        assert!(fs::read(&killed).expect("readable") == bytes, "the file was changed");
    }
}
