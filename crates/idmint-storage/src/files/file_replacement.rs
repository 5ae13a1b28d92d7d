//! Replaces files atomically. A reader sees either all of the old bytes or all of the new bytes.
//!
//! The new content is written to a temporary file in the same folder and synced. Then the file is
//! renamed and the folder is synced. Without the sync of the folder, a power loss could bring back
//! the old file, or leave no file at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Replaces the content of an existing file. The new content is durable when this function returns.
///
/// The permissions of the file are kept. If `path` is a symbolic link, the link is kept and its
/// target is replaced.
///
/// # Errors
/// Returns any I/O error of the file system. The file then still has its old content, unless only
/// the last step failed, which is the sync of the folder.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = path.canonicalize()?;
    let permissions = fs::metadata(&path)?.permissions();
    swap_in(&path, bytes, |file| file.set_permissions(permissions))
}

/// Writes a file, which need not exist yet and which only this user can access afterwards. Its
/// content is durable when this function returns. The folder must exist.
///
/// # Errors
/// Returns the errors of [`replace_file`].
pub(super) fn put_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    swap_in(path, bytes, |_| Ok(()))
}

fn swap_in(
    path: &Path,
    bytes: &[u8],
    prepare: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let mut name = path.file_name().ok_or(ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".idmint-{}", std::process::id()));
    let unfinished = path.with_file_name(name);
    // A killed process with the same process id may have left a temporary file with this name. In a
    // container, the process id is often the same at each start, usually 1.
    let _ = fs::remove_file(&unfinished);
    let written = (|| {
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)?;
        prepare(&file)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    })();
    if written.is_err() {
        // Remove the unfinished temporary file, if it exists.
        let _ = fs::remove_file(&unfinished);
    }
    written.and_then(|()| sync_folder_of(path))
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn names_in(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry"));
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_replaced_file_has_the_new_bytes_and_the_old_permissions_and_links() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (path, link) = (folder.path().join("report"), folder.path().join("link"));
        fs::write(&path, "old").expect("the file is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("its owner may");
        symlink("report", &link).expect("the link is made");
        replace_file(&link, b"new").expect("the folder is writable");
        assert_eq!(fs::read(&path).expect("the file is there"), b"new");
        assert_eq!(
            fs::metadata(&path)
                .expect("the file is there")
                .permissions()
                .mode()
                & 0o777,
            0o640
        );
        assert_eq!(names_in(folder.path()), ["link", "report"]);
        assert!(
            fs::symlink_metadata(&link)
                .expect("it is there")
                .is_symlink()
        );
    }

    #[test]
    fn a_new_file_is_closed_to_other_users() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("mark");
        put_file(&path, b"new").expect("the folder is writable");
        let mode = fs::metadata(&path).expect("it is there").mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_cannot_be_replaced_stays_as_it_was() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("report");
        assert_eq!(
            replace_file(&path, b"new")
                .expect_err("no such file")
                .kind(),
            ErrorKind::NotFound
        );
        fs::create_dir(&path).expect("a folder of that name");
        replace_file(&path, b"new").expect_err("a folder is not replaced by a file");
        assert_eq!(names_in(folder.path()), ["report"]);
    }
}
