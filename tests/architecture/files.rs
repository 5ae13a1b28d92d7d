//! Checks rules for every Rust file. Each file must state its purpose on its first line and must
//! have a meaningful name. Each crate must enable the lints that guard the clock and the disk.

use std::path::Path;

use crate::{crates, read, rust_files};

const ALL: [&str; 4] = ["src", "crates", "tests", "benches"];

/// File and folder names that say nothing about the content.
const EMPTY_NAMES: [&str; 7] = [
    "utils", "util", "helpers", "helper", "common", "misc", "shared",
];

/// The lint that reports code which reads the wall clock or writes files.
const LINT: &str = "clippy::disallowed_methods";

fn states_its_purpose(text: &str) -> bool {
    text.strip_prefix("//! ")
        .and_then(|rest| rest.lines().next())
        .is_some_and(|purpose| !purpose.trim().is_empty())
}

fn has_empty_name(path: &str) -> bool {
    let mut parts = Path::new(path)
        .components()
        .filter_map(|part| Path::new(part.as_os_str()).file_stem());
    parts.any(|part| EMPTY_NAMES.iter().any(|name| part == *name))
}

#[test]
fn every_file_states_its_purpose_and_has_a_name_that_says_something() {
    let files = rust_files(&ALL);
    println!("{} files", files.len());
    assert!(files.len() > 500, "only {} files were found", files.len());
    let wrong: Vec<_> = files
        .iter()
        .filter(|path| has_empty_name(path) || !states_its_purpose(&read(path)))
        .collect();
    assert!(
        wrong.is_empty(),
        "no //! line, or an empty name: {wrong:#?}"
    );
}

#[test]
fn no_path_climbs_twice_by_super() {
    let files = rust_files(&["src", "crates"]);
    let climbs = |path: &&String| read(path).contains(concat!("super::", "super::"));
    let wrong: Vec<_> = files.iter().filter(climbs).collect();
    assert!(wrong.is_empty(), "write crate:: instead: {wrong:#?}");
}

#[test]
fn every_crate_is_guarded_against_the_wall_clock_and_the_disk() {
    let disallowed = read("clippy.toml");
    for method in [
        "std::time::SystemTime::now",
        "jiff::Timestamp::now",
        "std::fs::write",
    ] {
        assert!(
            disallowed.contains(&format!("path = \"{method}\"")),
            "{method}"
        );
    }
    let libraries = crates()
        .into_iter()
        .map(|name| format!("crates/{name}/src/lib.rs"));
    for path in libraries.chain(["src/lib.rs".to_owned(), "src/main.rs".to_owned()]) {
        let expected = match path.as_str() {
            // This crate writes files, so it turns the lint off with `expect`. It must leave
            // reading the clock to idmint-core, like every other crate.
            "crates/idmint-storage/src/lib.rs" => "expect",
            // Only tests use this crate, so it may read the clock and write files.
            "crates/idmint-testing/src/lib.rs" => continue,
            _ => "#![cfg_attr(not(test), warn(clippy::disallowed_methods))]",
        };
        let text = read(&path);
        assert!(
            text.contains(LINT) && text.contains(expected),
            "{path} lacks {expected}"
        );
    }
}

#[test]
fn a_file_without_purpose_or_name_is_found() {
    assert!(states_its_purpose("//! The clock of the program.\n"));
    for text in [
        "",
        "use std::fs;\n//! Too late.",
        "// A comment.",
        "//! \n",
        "\n//! Late.",
    ] {
        assert!(!states_its_purpose(text), "{text:?}");
    }
    assert!(has_empty_name("src/id/utils.rs") && has_empty_name("tests/common/mod.rs"));
    assert!(!has_empty_name("src/id/uncommon.rs"));
}
