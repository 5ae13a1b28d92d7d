//! `clippy.toml` forbids the wall clock and the writing of files; the library must have that lint switched on.

use std::fs;

use crate::source::root;

/// What `src/lib.rs` and `src/main.rs` must begin with: `Cargo.toml` switches the lint off, for tests and benchmarks.
const SWITCHED_ON: &str = "#![cfg_attr(not(test), warn(clippy::disallowed_methods))]";

/// The methods that must be among the disallowed ones.
const METHODS: [&str; 4] = [
    "std::time::SystemTime::now",
    "jiff::Timestamp::now",
    "std::fs::write",
    "std::fs::OpenOptions::open",
];

/// The methods that a `clippy.toml` disallows.
fn disallowed_methods(text: &str) -> Vec<String> {
    let table: toml::Table = text.parse().expect("a file in TOML");
    let rows = table
        .get("disallowed-methods")
        .and_then(toml::Value::as_array)
        .cloned()
        .unwrap_or_default();
    let path = |row: toml::Value| Some(row.get("path")?.as_str()?.to_owned());
    rows.into_iter().filter_map(path).collect()
}

fn is_switched_on(text: &str) -> bool {
    text.lines().any(|line| line == SWITCHED_ON)
}

#[test]
fn the_lint_of_the_clock_and_of_files_is_switched_on() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("a file");
    let disallowed = disallowed_methods(&read("clippy.toml"));
    println!("{} disallowed methods", disallowed.len());
    let missing: Vec<_> = METHODS
        .iter()
        .filter(|method| !disallowed.iter().any(|path| path == *method))
        .collect();
    assert!(missing.is_empty(), "clippy.toml does not name {missing:?}");
    for path in ["src/lib.rs", "src/main.rs"] {
        assert!(
            is_switched_on(&read(path)),
            "{path} does not say {SWITCHED_ON}"
        );
    }
}

#[test]
fn a_lint_that_is_off_is_seen() {
    assert!(!is_switched_on(&format!("// {SWITCHED_ON}\n")));
    let text = "disallowed-methods = [{ path = \"std::fs::write\", reason = \"..\" }]\n# { path = \"std::fs::rename\" }";
    assert_eq!(disallowed_methods(text), ["std::fs::write"]);
}
