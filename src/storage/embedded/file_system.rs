//! How files and folders come to be so that a loss of power neither takes them away nor leaves half of one.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// What was minted and recorded is for this user alone. A folder that is there already keeps the mode it has: whoever made
/// it may have given it to a group on purpose.
const FOLDER_MODE: u32 = 0o700;

/// The mode of every file in it.
pub(super) const FILE_MODE: u32 = 0o600;

/// The little of a file system that a first start needs.
///
/// What was written to a file is certain once the file was synced; that a name leads to it, once the folder that holds the
/// name was. Until then a loss of power may keep either and lose the other.
pub(crate) trait FileSystem {
    /// An open file.
    type File;

    /// Whether a folder is there.
    fn is_folder(&self, path: &Path) -> bool;

    /// Makes a folder in one that is there.
    ///
    /// # Errors
    /// What the system says, [`io::ErrorKind::AlreadyExists`] if the name is taken.
    fn create_folder(&self, path: &Path) -> io::Result<()>;

    /// Makes an empty file, or empties the one that is there.
    ///
    /// # Errors
    /// What the system says.
    fn create_file(&self, path: &Path) -> io::Result<Self::File>;

    /// Writes at the end of what was written to the file.
    ///
    /// # Errors
    /// What the system says.
    fn write(&self, file: &mut Self::File, bytes: &[u8]) -> io::Result<()>;

    /// Returns once what was written to the file would outlast a loss of power.
    ///
    /// # Errors
    /// What the system says.
    fn sync_file(&self, file: &Self::File) -> io::Result<()>;

    /// Gives a file another name, in one step; a file that has the name already is replaced.
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Returns once the names in a folder would outlast a loss of power.
    ///
    /// # Errors
    /// What the system says.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// The file system of the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MachineFiles;

impl FileSystem for MachineFiles {
    type File = File;

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(FOLDER_MODE).create(path)
    }

    fn create_file(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(FILE_MODE)
            .open(path)
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn sync_file(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

/// Makes a file with these bytes, durable when it returns.
///
/// It is written and synced under another name and renamed, so neither a crash nor a full disk leaves half a file; a file
/// that is there is replaced in one step. What an earlier attempt left unfinished is overwritten.
///
/// # Errors
/// What the system says. A file may then be there or not, and if it is there, it is whole.
pub(crate) fn create_file<S: FileSystem>(
    system: &S,
    path: &Path,
    bytes: &[u8],
) -> io::Result<S::File> {
    let unfinished = path.with_extension("new");
    let mut file = system.create_file(&unfinished)?;
    system.write(&mut file, bytes)?;
    system.sync_file(&file)?;
    rename_durably(system, &unfinished, path)?;
    Ok(file)
}

/// Gives a finished and synced file its lasting name in the same folder, durable when this returns. A file that has
/// the name already is replaced.
///
/// # Errors
/// What the system says; the file then has the one name or the other.
pub(crate) fn rename_durably(
    system: &impl FileSystem,
    unfinished: &Path,
    path: &Path,
) -> io::Result<()> {
    system.rename(unfinished, path)?;
    system.sync_folder(folder_of(path))
}

/// Creates a folder and those above it, each durable in the one above.
///
/// # Errors
/// What the system says. Some of them may then be there.
pub(crate) fn create_folder(system: &impl FileSystem, path: &Path) -> io::Result<()> {
    if system.is_folder(path) {
        return Ok(());
    }
    let above = folder_of(path);
    if above != Path::new(".") {
        create_folder(system, above)?;
    }
    match system.create_folder(path) {
        // Two first starts at once: whichever made it, the lock decides who stays.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && system.is_folder(path) => {}
        done => done?,
    }
    // A folder lost with the power would take the horizon in it along, and look like a first start.
    system.sync_folder(above)
}

/// The folder in which a path has its last name.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(above) if above != Path::new("") => above,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::embedded::simulation::{SimulatedFiles, Unsynced};

    const FILE: &str = "/data/horizon";
    const BYTES: &[u8] = b"all of it";

    /// More than any of this takes.
    const STEPS_MAX: u64 = 20;

    /// Does `work`, with the power lost after each number of steps that it takes and every way in which that may end;
    /// `judge` is told whether the work was done.
    fn lose_power_everywhere(
        files: impl Fn() -> SimulatedFiles,
        work: impl Fn(&SimulatedFiles) -> io::Result<()>,
        judge: impl Fn(&SimulatedFiles, bool),
    ) {
        for unsynced in Unsynced::ALL {
            let outcomes: Vec<bool> = (0..STEPS_MAX)
                .map(|steps| {
                    let files = files();
                    files.stop_after(steps);
                    let is_done = work(&files).is_ok();
                    files.lose_power(unsynced);
                    judge(&files, is_done);
                    is_done
                })
                .collect();
            let stopped = outcomes.iter().filter(|is_done| !**is_done).count();
            assert!(
                stopped > 2 && outcomes.last() == Some(&true),
                "{outcomes:?}"
            );
        }
    }

    fn create(files: &SimulatedFiles) -> io::Result<()> {
        create_file(files, Path::new(FILE), BYTES).map(drop)
    }

    #[test]
    fn power_lost_at_any_step_of_a_creation_leaves_no_file_or_a_whole_one() {
        let empty = || SimulatedFiles::with_folder("/data");
        lose_power_everywhere(empty, create, |files, _| {
            let found = files.read(Path::new(FILE));
            assert!(
                found.as_deref().is_none_or(|found| found == BYTES),
                "{found:?}"
            );
        });
    }

    #[test]
    fn power_lost_after_a_creation_takes_nothing_away() {
        let empty = || SimulatedFiles::with_folder("/data");
        lose_power_everywhere(empty, create, |files, is_done| {
            assert!(!is_done || files.read(Path::new(FILE)).as_deref() == Some(BYTES));
        });
    }

    #[test]
    fn power_lost_at_any_step_of_a_replacement_leaves_the_old_file_or_the_new() {
        let with_old = || {
            let files = SimulatedFiles::with_folder("/data");
            create_file(&files, Path::new(FILE), b"old").expect("nothing is in the way");
            files
        };
        lose_power_everywhere(with_old, create, |files, is_done| {
            let found = files.read(Path::new(FILE)).expect("one of them is there");
            assert!(found == BYTES || (!is_done && found == b"old"), "{found:?}");
        });
    }

    #[test]
    fn power_lost_after_a_folder_was_created_takes_none_of_those_above_it() {
        let empty = || SimulatedFiles::with_folder("/");
        let path = Path::new("/a/b/c");
        lose_power_everywhere(
            empty,
            |files| create_folder(files, path),
            |files, is_done| {
                assert!(!is_done || files.is_folder(path));
            },
        );
    }

    #[test]
    fn a_path_of_one_name_lies_in_the_working_folder() {
        for (path, folder) in [
            ("data", "."),
            ("/data", "/"),
            ("a/data", "a"),
            ("./data", "."),
        ] {
            assert_eq!(folder_of(Path::new(path)), Path::new(folder), "{path}");
        }
        let files = SimulatedFiles::with_folder(".");
        create_folder(&files, Path::new("data")).expect("nothing is in the way");
        files.lose_power(Unsynced::Lost);
        assert!(files.is_folder(Path::new("data")));
    }
}
