//! The parts of documents that the code writes: between marks, and held to it by a test.

use std::fs;
use std::path::Path;

/// Compares what stands between two marks of a document with what it should be, or writes it with `UPDATE_DOCS` set.
pub(crate) fn assert_generated(document: &str, part: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = fs::read_to_string(&path).unwrap();
    let [begin, end] = ["begin", "end"].map(|side| format!("<!-- {side}:{part} -->\n"));
    let (before, rest) = text
        .split_once(&begin)
        .unwrap_or_else(|| panic!("{document} has no {begin}"));
    let (found, after) = rest
        .split_once(&end)
        .unwrap_or_else(|| panic!("{document} has no {end}"));
    if found == expected {
        return;
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, [before, &begin, expected, &end, after].concat()).unwrap();
        return;
    }
    let line = found
        .lines()
        .zip(expected.lines())
        .position(|(found, expected)| found != expected);
    let line = line.unwrap_or_else(|| found.lines().count().min(expected.lines().count()));
    panic!(
        "{document}, part {part}, line {}:\n  it says   {:?}\n  should be {:?}\nregenerate: UPDATE_DOCS=1 cargo test",
        line + 1,
        found.lines().nth(line),
        expected.lines().nth(line)
    );
}
