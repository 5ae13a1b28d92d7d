//! A small file with a checksum, for data that a node keeps outside its store.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::file_replacement::put_file;

/// The mode of a new folder, which lets only the current user access the folder. An existing folder
/// keeps its mode.
const FOLDER_MODE: u32 = 0o700;

/// A file with one line of text, followed by the CRC-32C of the line. The first write creates the
/// file's folder.
///
/// After an interrupted write, a reader gets the new line, the old line, or an error. A reader
/// never gets a part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedFile {
    path: PathBuf,
}

impl CheckedFile {
    /// Returns a handle to the file at `path`. The file need not exist.
    pub fn at(path: impl Into<PathBuf>) -> CheckedFile {
        CheckedFile { path: path.into() }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the line that was written last, or `None` if the file does not exist.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidData`] if the checksum does not match, or any other I/O error of
    /// the file system.
    pub fn read(&self) -> io::Result<Option<String>> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let line = text
            .split_once('\n')
            .map(|(line, _)| line)
            .filter(|line| with_checksum(line) == text);
        let damaged = || {
            io::Error::new(
                ErrorKind::InvalidData,
                "the checksum of the file does not match",
            )
        };
        Ok(Some(line.ok_or_else(damaged)?.to_owned()))
    }

    /// Replaces the content of the file with `line`. The new content is durable when this method
    /// returns.
    ///
    /// # Errors
    /// Returns any I/O error of the file system. The file then still has its old content, unless
    /// only the last step failed, which is the sync of the folder.
    ///
    /// # Panics
    /// Panics if `line` contains a line break.
    pub fn write(&self, line: &str) -> io::Result<()> {
        assert!(!line.contains('\n'), "it is one line");
        if let Some(folder) = self.path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(FOLDER_MODE)
                .create(folder)?;
        }
        put_file(&self.path, with_checksum(line).as_bytes())
    }
}

fn with_checksum(line: &str) -> String {
    format!("{line}\n{:08x}\n", crc32c::crc32c(line.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written_last_and_nothing_else_is() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = CheckedFile::at(folder.path().join("new/file"));
        assert_eq!(file.read().expect("it need not be there"), None);
        for line in ["one", "two", ""] {
            file.write(line).expect("the folder is writable");
            assert_eq!(
                file.read().expect("as it was written").as_deref(),
                Some(line)
            );
        }
        file.write("three").expect("the folder is writable");
        let whole = fs::read(file.path()).expect("it is there");
        for place in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[place] ^= 1;
            for wrong in [&flipped[..], &whole[..place]] {
                fs::write(file.path(), wrong).expect("it is there");
                assert_eq!(
                    file.read().expect_err("damaged").kind(),
                    ErrorKind::InvalidData,
                    "{wrong:?}"
                );
            }
        }
    }

    #[test]
    fn what_an_earlier_process_left_half_written_is_in_nobodys_way() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = CheckedFile::at(folder.path().join("file"));
        fs::write(
            folder
                .path()
                .join(format!("file.idmint-{}", std::process::id())),
            "ha",
        )
        .expect("writable");
        file.write("one")
            .expect("the number of a process comes again");
        assert_eq!(
            file.read().expect("as it was written").as_deref(),
            Some("one")
        );
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}
