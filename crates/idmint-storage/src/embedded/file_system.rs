//! Creates files and folders in a way that survives a power loss. A file is either complete or
//! absent.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The mode of new folders, which lets only the current user read ids and records. An existing
/// folder keeps its mode, because its creator may have shared it with a group on purpose.
pub(super) const FOLDER_MODE: u32 = 0o700;

/// The mode of every file in the data folder.
pub(super) const FILE_MODE: u32 = 0o600;

/// The file system operations that a first start needs.
///
/// The content of a file is durable once the file is synced. The name of a file is durable once its
/// folder is synced. Before both syncs, a power loss may keep the name and lose the content, or the
/// other way round.
pub(crate) trait FileSystem {
    /// An open file.
    type File;

    /// Returns `true` if `path` is a folder.
    fn is_folder(&self, path: &Path) -> bool;

    /// Creates a folder. The parent folder must exist.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::AlreadyExists`] if the name is taken, or any other error of the
    /// file system.
    fn create_folder(&self, path: &Path) -> io::Result<()>;

    /// Creates an empty file, or truncates an existing one.
    ///
    /// # Errors
    /// Returns any error of the file system.
    fn create_file(&self, path: &Path) -> io::Result<Self::File>;

    /// Appends bytes to the file. They are durable only after [`sync_file`](Self::sync_file).
    ///
    /// # Errors
    /// Returns any error of the file system. A part of the bytes may then have been appended.
    fn write(&self, file: &mut Self::File, bytes: &[u8]) -> io::Result<()>;

    /// Syncs the content of a file, so that it survives a power loss.
    ///
    /// # Errors
    /// Returns any error of the file system.
    fn sync_file(&self, file: &Self::File) -> io::Result<()>;

    /// Renames a file atomically. If a file with the new name exists, it is replaced.
    ///
    /// # Errors
    /// Returns any error of the file system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Syncs a folder, so that the names in it survive a power loss.
    ///
    /// # Errors
    /// Returns any error of the file system.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// The real file system of this machine.
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

/// Creates a file with these bytes. The file is durable when this function returns.
///
/// The file is written and synced under a temporary name and then renamed. So neither a crash nor a
/// full disk leaves an incomplete file. An existing file is replaced atomically. If an earlier
/// attempt left an unfinished file, it is overwritten.
///
/// # Errors
/// Returns any error of the file system. The file may then exist or not. If it exists, its content
/// is complete.
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

/// Renames a finished and synced file within its folder. The new name is durable when this function
/// returns. An existing file with that name is replaced.
///
/// # Errors
/// Returns any error of the file system. The file then has either the old or the new name.
pub(crate) fn rename_durably(
    system: &impl FileSystem,
    unfinished: &Path,
    path: &Path,
) -> io::Result<()> {
    system.rename(unfinished, path)?;
    system.sync_folder(folder_of(path))
}

/// Creates a folder and its missing parents. Each new name is synced in its parent folder.
///
/// # Errors
/// Returns any error of the file system. Some of the folders may then exist.
pub(crate) fn create_folder(system: &impl FileSystem, path: &Path) -> io::Result<()> {
    if system.is_folder(path) {
        return Ok(());
    }
    let above = folder_of(path);
    if above != Path::new(".") {
        create_folder(system, above)?;
    }
    match system.create_folder(path) {
        // Two processes may start for the first time at once. Either process may create the folder,
        // because only the one that gets the lock continues.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && system.is_folder(path) => {}
        done => done?,
    }
    // Sync the parent folder, or a power loss could remove the new folder with the horizon, and the
    // next start would look like a first start.
    system.sync_folder(above)
}

/// Returns the folder that contains the last component of the path.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(above) if above != Path::new("") => above,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::simulation::{SimulatedFiles, Unsynced};

    const FILE: &str = "/data/horizon";
    const BYTES: &[u8] = b"all of it";

    /// An upper bound on the file system operations that creating a file or folder takes.
    const STEPS_MAX: u64 = 20;

    /// Runs `work` once for every combination of a step at which the power can fail and a member of
    /// [`Unsynced::ALL`], which says what unsynced changes survive. `judge` checks each result. Its
    /// second argument is `true` if `work` had finished.
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
