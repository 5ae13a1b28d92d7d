//! Checks generated documents. A test compares a document, or the part between two marks in it,
//! with the text that the code generates.

use std::fs;
use std::path::Path;

use crate::ROOT;

/// Asserts that the text between two marks of a document is `expected`. If `UPDATE_DOCS` is set,
/// writes it to the document instead.
pub fn assert_generated(document: &str, part: &str, expected: &str) {
    let path = Path::new(ROOT).join(document);
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
    panic_at_first_difference(&format!("{document}, part {part}"), found, expected);
}

/// Asserts that a whole document is `expected`. If `UPDATE_DOCS` is set, writes the document
/// instead.
pub fn assert_page(document: &str, expected: &str) {
    let path = Path::new(ROOT).join(document);
    let found = fs::read_to_string(&path).unwrap_or_default();
    if found == expected {
        return;
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(path.parent().expect("a document lies in a folder")).unwrap();
        fs::write(path, expected).unwrap();
        return;
    }
    panic_at_first_difference(document, &found, expected);
}

fn panic_at_first_difference(what: &str, found: &str, expected: &str) -> ! {
    let line = found
        .lines()
        .zip(expected.lines())
        .position(|(found, expected)| found != expected);
    let line = line.unwrap_or_else(|| found.lines().count().min(expected.lines().count()));
    panic!(
        "{what}, line {}:\n  it says   {:?}\n  should be {:?}\nregenerate: UPDATE_DOCS=1 cargo test",
        line + 1,
        found.lines().nth(line),
        expected.lines().nth(line)
    );
}
