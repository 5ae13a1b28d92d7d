//! A simulated tree of files and folders for tests. A test chooses which unsynced changes survive a
//! power loss.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{io, iter};

use crate::embedded::file_system::FileSystem;

/// The unsynced changes that survive a simulated power loss.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unsynced {
    /// No unsynced change survives.
    Lost,
    /// Created and renamed files and folders survive the power loss without a sync, but each file
    /// has only its synced bytes.
    NamesLanded,
    /// Unsynced bytes survive, but only synced names do.
    BytesLanded,
}

impl Unsynced {
    /// All outcomes that a power loss can have for unsynced changes.
    pub(crate) const ALL: [Unsynced; 3] =
        [Unsynced::Lost, Unsynced::NamesLanded, Unsynced::BytesLanded];
}

/// A tree of files and folders.
#[derive(Debug)]
pub(crate) struct SimulatedFiles {
    tree: RefCell<Tree>,
}

/// The index of a file in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileNumber(usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Folder,
    File(FileNumber),
}

#[derive(Debug, Default)]
struct Content {
    written: Vec<u8>,
    synced: Vec<u8>,
}

type Names = BTreeMap<PathBuf, Entry>;

#[derive(Debug)]
struct Tree {
    names: Names,
    synced_names: Names,
    files: Vec<Content>,
    /// The number of file system operations that succeed before the process is stopped, or `None`
    /// if no stop is planned.
    steps_left: Option<u64>,
}

impl SimulatedFiles {
    /// Returns a tree in which only this folder and its parents exist. These folders are durable.
    pub(crate) fn with_folder(folder: &str) -> SimulatedFiles {
        let above = iter::successors(Some(Path::new(folder)), |path| parent(path));
        let names: Names = above
            .map(|folder| (folder.to_owned(), Entry::Folder))
            .collect();
        let tree = Tree {
            synced_names: names.clone(),
            names,
            files: Vec::new(),
            steps_left: None,
        };
        SimulatedFiles {
            tree: RefCell::new(tree),
        }
    }

    /// Stops the process after `steps` more file system operations. All later operations fail
    /// without any effect.
    pub(crate) fn stop_after(&self, steps: u64) {
        self.tree.borrow_mut().steps_left = Some(steps);
    }

    /// Cuts the power and restores it.
    pub(crate) fn lose_power(&self, unsynced: Unsynced) {
        let mut tree = self.tree.borrow_mut();
        tree.steps_left = None;
        match unsynced {
            Unsynced::Lost | Unsynced::BytesLanded => tree.names = tree.synced_names.clone(),
            Unsynced::NamesLanded => tree.synced_names = tree.names.clone(),
        }
        for content in &mut tree.files {
            match unsynced {
                Unsynced::Lost | Unsynced::NamesLanded => {
                    content.written.clone_from(&content.synced)
                }
                Unsynced::BytesLanded => content.synced.clone_from(&content.written),
            }
        }
    }

    /// Returns the content of the file at `path`. Returns `None` if the file or one of its parent
    /// folders does not exist.
    pub(crate) fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let tree = self.tree.borrow();
        match tree.entry(path)? {
            Entry::File(number) => Some(tree.files[number.0].written.clone()),
            Entry::Folder => None,
        }
    }

    /// Runs one file system operation, or fails without running it if the process is stopped.
    fn step<T>(&self, step: impl FnOnce(&mut Tree) -> io::Result<T>) -> io::Result<T> {
        let mut tree = self.tree.borrow_mut();
        match &mut tree.steps_left {
            Some(0) => return Err(io::Error::other("the process was stopped")),
            Some(left) => *left -= 1,
            None => {}
        }
        step(&mut tree)
    }
}

impl Tree {
    /// Returns the file or folder at `path`, or `None` if it or one of its parent folders does not
    /// exist.
    fn entry(&self, path: &Path) -> Option<Entry> {
        let entry = *self.names.get(path)?;
        match parent(path) {
            Some(above) if self.entry(above) != Some(Entry::Folder) => None,
            _ => Some(entry),
        }
    }

    fn name(&mut self, path: &Path, entry: Entry) -> io::Result<()> {
        match parent(path) {
            Some(above) if self.entry(above) != Some(Entry::Folder) => {
                Err(io::ErrorKind::NotFound.into())
            }
            _ => {
                self.names.insert(path.to_owned(), entry);
                Ok(())
            }
        }
    }
}

/// Returns the parent folder of a path. A root and the working folder have no parent.
fn parent(path: &Path) -> Option<&Path> {
    match path.parent()? {
        above if above == Path::new("") && path == Path::new(".") => None,
        above if above == Path::new("") => Some(Path::new(".")),
        above => Some(above),
    }
}

impl FileSystem for SimulatedFiles {
    type File = FileNumber;

    fn is_folder(&self, path: &Path) -> bool {
        self.tree.borrow().entry(path) == Some(Entry::Folder)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.step(|tree| match tree.entry(path) {
            Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
            None => tree.name(path, Entry::Folder),
        })
    }

    fn create_file(&self, path: &Path) -> io::Result<FileNumber> {
        self.step(|tree| {
            let number = FileNumber(tree.files.len());
            tree.files.push(Content::default());
            tree.name(path, Entry::File(number))?;
            Ok(number)
        })
    }

    fn write(&self, file: &mut FileNumber, bytes: &[u8]) -> io::Result<()> {
        self.step(|tree| {
            tree.files[file.0].written.extend_from_slice(bytes);
            Ok(())
        })
    }

    fn sync_file(&self, file: &FileNumber) -> io::Result<()> {
        self.step(|tree| {
            let content = &mut tree.files[file.0];
            content.synced.clone_from(&content.written);
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(|tree| {
            let entry = tree.entry(from).ok_or(io::ErrorKind::NotFound)?;
            tree.name(to, entry)?;
            tree.names.remove(from);
            Ok(())
        })
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.step(|tree| {
            let is_inside = |name: &Path| parent(name) == Some(path);
            tree.synced_names.retain(|name, _| !is_inside(name));
            let inside = tree.names.iter().filter(|(name, _)| is_inside(name));
            tree.synced_names
                .extend(inside.map(|(name, entry)| (name.clone(), *entry)));
            Ok(())
        })
    }
}
