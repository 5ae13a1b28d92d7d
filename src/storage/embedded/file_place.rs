//! Where a file that is open lies, and whether it still lies there.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::path::Arg;

use crate::storage::failure::{FailureKind, StoreError};

/// The path of an open file. What is written to a file that was removed or replaced is durable, and no start finds it.
#[derive(Debug)]
pub(crate) struct FilePlace {
    path: PathBuf,
    inode: Inode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Inode {
    device: (u32, u32),
    number: u64,
}

/// Another file lies where this one was, or none.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} was removed or replaced while this process worked with it, so the next start would not find what was written; \
     put back what was there before the next start, see docs/OPERATIONS.md", .path.display()
)]
pub(crate) struct Displaced {
    path: PathBuf,
    #[source]
    cause: Option<io::Error>,
}

impl From<Displaced> for StoreError {
    fn from(displaced: Displaced) -> StoreError {
        StoreError::new(FailureKind::Damaged, displaced)
    }
}

impl FilePlace {
    /// The place of a file that was opened at `path`.
    ///
    /// # Errors
    /// What the system says about the file.
    pub(crate) fn of(file: &File, path: &Path) -> io::Result<FilePlace> {
        Ok(FilePlace {
            path: path.to_owned(),
            inode: Inode::of(file, "", AtFlags::EMPTY_PATH)?,
        })
    }

    /// The place of whatever file lies at `path`.
    ///
    /// # Errors
    /// What the system says about the path.
    pub(crate) fn at(path: &Path) -> io::Result<FilePlace> {
        Ok(FilePlace {
            path: path.to_owned(),
            inode: Inode::at(path)?,
        })
    }

    /// Whether the path still leads to the file.
    ///
    /// # Errors
    /// [`Displaced`] if it does not, or if that cannot be told.
    pub(crate) fn check(&self) -> Result<(), Displaced> {
        let displaced = |cause| Displaced {
            path: self.path.clone(),
            cause,
        };
        let found = Inode::at(&self.path).map_err(|cause| displaced(Some(cause)))?;
        if found == self.inode {
            Ok(())
        } else {
            Err(displaced(None))
        }
    }
}

impl Inode {
    fn at(path: &Path) -> io::Result<Inode> {
        Inode::of(CWD, path, AtFlags::empty())
    }

    /// Asks for the number alone: after somebody was told when a file was changed, Linux notes the time of the next write at
    /// once instead of with its next tick, and syncing that takes a write more.
    fn of(folder: impl AsFd, path: impl Arg, flags: AtFlags) -> io::Result<Inode> {
        let found = statx(folder, path, flags, StatxFlags::INO)?;
        Ok(Inode {
            device: (found.stx_dev_major, found.stx_dev_minor),
            number: found.stx_ino,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_is_removed_replaced_or_moved_with_its_folder_is_displaced() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let folder = root.path().join("folder");
        let path = folder.join("file");
        for (what, displace) in [
            (
                "removed",
                (|path: &Path| fs::remove_file(path)) as fn(&Path) -> io::Result<()>,
            ),
            ("replaced", |path| {
                fs::write(path.with_extension("new"), "the same")?;
                fs::rename(path.with_extension("new"), path)
            }),
            ("moved", |path| {
                let folder = path.parent().expect("it lies in a folder");
                fs::rename(folder, folder.with_extension("old"))?;
                fs::create_dir(folder)
            }),
        ] {
            fs::create_dir_all(&folder).expect("the folder is made");
            fs::write(&path, "the same").expect("the file is written");
            let file = File::open(&path).expect("the file opens");
            let place = FilePlace::of(&file, &path).expect("the file is there");
            place.check().expect("nothing was done to it");
            displace(&path).expect("it can be displaced");
            assert!(place.check().is_err(), "{what}");
        }
    }
}
