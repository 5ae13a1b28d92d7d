//! The Rust files of this package.

use std::fs;
use std::path::{Path, PathBuf};

/// A file by its path from the root of the package, such as `src/id/mod.rs`.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// A file that a test makes up.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }
}

/// The root of the package.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below these folders of the package, by path.
pub(crate) fn sources(folders: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    let mut left: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .expect("a folder")
                    .map(|entry| entry.expect("an entry").path()),
            );
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let inside = path
                .strip_prefix(root())
                .expect("below the root")
                .to_str()
                .expect("a path in UTF-8");
            found.push(Source::new(
                inside,
                &fs::read_to_string(&path).expect("a file"),
            ));
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The folder of a path, without a slash at its end.
pub(crate) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The last part of a path.
pub(crate) fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}
