//! Putting other bytes into a file, all of them or none.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Puts other bytes into a file: into a new one beside it, which then takes its name, so that whoever reads meanwhile
/// finds all of the old bytes or all of the new ones, after a power failure too. Durable when it returns.
///
/// Permissions are kept. What a symbolic link points to is replaced, not the link.
///
/// # Errors
/// Those of the file system. The file is then as it was, unless only the folder could not be synced.
pub(super) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = path.canonicalize()?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let mut name = name.to_owned();
    name.push(format!(".idmint-{}", std::process::id()));
    let beside = folder.join(name);
    let replaced = (|| {
        let mut file = File::create_new(&beside)?;
        file.set_permissions(fs::metadata(&path)?.permissions())?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, &path)
    })();
    if replaced.is_err() {
        // It is of no use to anybody, and may not be there.
        let _ = fs::remove_file(&beside);
    }
    replaced?;
    // A rename lasts once the folder does.
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_gets_other_bytes_keeps_its_permissions_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("a.kvn"), folder.path().join("link"));
        fs::write(&path, "old").expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("its permissions");
        symlink(&path, &link).expect("a link");

        replace_file(&link, b"new").expect("replaced");
        assert_eq!(fs::read(&path).expect("the file"), b"new");
        assert_eq!(fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).expect("the link").is_symlink());
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 2);
    }

    #[test]
    fn a_file_that_cannot_be_replaced_stays_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(replace_file(&folder.path().join("nonesuch"), b"new").is_err());
        // A folder does not give way to a file.
        let path = folder.path().join("taken");
        fs::create_dir(&path).expect("a folder");
        assert!(replace_file(&path, b"new").is_err());
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1);
    }
}
