//! Files that are replaced in one step: whoever opens one finds all of the old bytes or all of the new ones.
//!
//! The new file is written and synced under another name in the same folder, then renamed, then the folder is synced:
//! without that last sync a loss of power may bring the old name, or no file, back.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Puts other bytes into a file that is there, durable when this returns. Its permissions stay; a symbolic link stays
/// too, and what it points to is replaced.
///
/// # Errors
/// What the system says. The file then has its old bytes, unless only the last step failed, the sync of the folder.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = path.canonicalize()?;
    let permissions = fs::metadata(&path)?.permissions();
    swap_in(&path, bytes, |file| file.set_permissions(permissions))
}

/// Puts bytes into a file that need not be there yet, durable when this returns. Its folder is there.
///
/// # Errors
/// As [`replace_file`].
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
    // Left by an earlier process of the same number, which was killed; in a container each has the number 1.
    let _ = fs::remove_file(&unfinished);
    let written = (|| {
        let mut file = File::create_new(&unfinished)?;
        prepare(&file)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    })();
    if written.is_err() {
        // It is of no use to anybody, and may not be there.
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
    use std::os::unix::fs::{PermissionsExt, symlink};

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
