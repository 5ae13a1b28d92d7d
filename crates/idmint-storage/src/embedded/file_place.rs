//! Remembers the path of an open file, and checks that the file is still at that path.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::path::Arg;

use crate::failure::{FailureKind, StoreError};

/// The path and the inode of an open file. If the file is removed or replaced, writes to the open
/// file still succeed, but the next start of the program would not find the written data.
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

/// The error of an open file that was removed or replaced: its path now has another file, or no
/// file.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} was removed or replaced while in use, so the next start would miss what was written; put the original back \
     before the next start, see docs/OPERATIONS.md", .path.display()
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
    /// Returns the path and inode of the open `file`. The file was opened at `path`.
    ///
    /// # Errors
    /// Returns any error of the system call `statx` on the file.
    pub(crate) fn of(file: &File, path: &Path) -> io::Result<FilePlace> {
        Ok(FilePlace {
            path: path.to_owned(),
            inode: Inode::of(file, "", AtFlags::EMPTY_PATH)?,
        })
    }

    /// Returns the path and inode of the file that is at `path` now.
    ///
    /// # Errors
    /// Returns any error of the system call `statx` on the path.
    pub(crate) fn at(path: &Path) -> io::Result<FilePlace> {
        Ok(FilePlace {
            path: path.to_owned(),
            inode: Inode::at(path)?,
        })
    }

    /// Checks that the file is still at its path.
    ///
    /// # Errors
    /// Returns [`Displaced`] if another file is at the path, or if the path cannot be read.
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

    /// Returns the device and inode number of a file. Does not query the change time of the file,
    /// because that would make the next sync slower. After such a query, Linux records the exact
    /// time of the next write, and the sync must write this new time to disk, too.
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
