//! Checks rules of the architecture that Cargo cannot enforce: which crate may depend on which
//! package, rules for every file, and the public names of the published crates.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod files;
mod public_api;
mod walls;

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the root folder of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the text of a file. `path` is relative to the root of the workspace.
fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the names of the crates below `crates/`, sorted.
fn crates() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() > 5, "{names:?}");
    names
}

/// Returns the path of every Rust file below these folders, sorted. Paths are relative to the root
/// of the workspace.
fn rust_files(folders: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let path = path.strip_prefix(root()).unwrap();
                found.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}
