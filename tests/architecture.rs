//! The floor plan, as data: who may use whom, and how a file must look.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders of `src`, floor by floor: code uses what stands above it, and nothing beside or below.
const FLOORS: [&[&str]; 14] = [
    &["time"],
    &["id"],
    &["minting"],
    &["ledger"],
    &["conjunction"],
    &["storage"],
    &["cluster"],
    &["wire"],
    &["service"],
    &["http"],
    &["net"],
    &["client"],
    &["server"],
    &["cli"],
];

/// The files beside the folders: they put the floors together.
const ENTRANCES: [&str; 2] = ["lib.rs", "main.rs"];

const CODE_LINES_MAX: usize = 500;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 7] = ["utils", "util", "helpers", "helper", "common", "misc", "shared"];

/// A file by its path from the root of the package.
struct Source {
    path: PathBuf,
    text: String,
}

/// Every Rust file below these folders.
fn sources(folders: &[&str]) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut left: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a file");
            found.push(Source { path: path.strip_prefix(root).expect("below the root").to_owned(), text });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn floor_of(folder: &str) -> Option<usize> {
    FLOORS.iter().position(|folders| folders.contains(&folder))
}

/// The code of a line, without its comment.
fn code_of(line: &str) -> &str {
    line.split("//").next().unwrap_or_default().trim()
}

/// What a file uses of other folders: the line, and the name after `crate::`, each name of a list in braces.
fn used_by(text: &str) -> Vec<(usize, String)> {
    let mut used = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for after in code_of(line).split("crate::").skip(1) {
            let names = after.strip_prefix('{').map_or(vec![after], |list| list.split(',').map(str::trim).collect());
            let name_of = |name: &&str| name.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            used.extend(names.iter().map(name_of).map(|name: String| (at + 1, name)));
        }
    }
    used
}

/// The uses in a file of `folder` that the floor plan does not allow.
fn wrong_uses(folder: &str, text: &str) -> Vec<String> {
    let floor = floor_of(folder);
    let is_wrong =
        |name: &str| name != folder && floor_of(name).is_some_and(|used| floor.is_some_and(|own| used >= own));
    let wrong = used_by(text).into_iter().filter(|(_, name)| is_wrong(name));
    wrong.map(|(line, name)| format!("{line}: {folder} must not use {name}")).collect()
}

#[test]
fn a_folder_uses_only_what_stands_above_it() {
    let mut wrong = Vec::new();
    for Source { path, text } in sources(&["src"]) {
        let inside = path.strip_prefix("src").expect("below src");
        let folder = inside.components().next().expect("a name").as_os_str().to_str().expect("a name in UTF-8");
        if ENTRANCES.contains(&folder) {
            continue;
        }
        match floor_of(folder) {
            None => wrong.push(format!("{}: {folder} is not on the floor plan", path.display())),
            Some(_) => {
                wrong.extend(wrong_uses(folder, &text).iter().map(|wrong| format!("{}:{wrong}", path.display())))
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_use_of_what_stands_beside_or_below_is_seen() {
    let text = "use crate::time::Tick;\nuse crate::storage::Store; // crate::server\n/// crate::cli\nuse crate::{id::Id, http};\nlet a = crate::wire::A;";
    assert_eq!(wrong_uses("storage", text), ["4: storage must not use http", "5: storage must not use wire"]);
    assert_eq!(wrong_uses("server", text), Vec::<String>::new());
    assert_eq!(wrong_uses("time", "use crate::id::Id;"), ["1: time must not use id"]);
}

#[test]
fn no_path_climbs_to_the_root_by_super() {
    let climbing = |text: &str| text.lines().position(|line| code_of(line).contains("super::super::"));
    let sources = sources(&["src"]);
    let wrong = sources.iter().filter_map(|source| Some((source.path.display(), climbing(&source.text)? + 1)));
    let wrong: Vec<_> = wrong.map(|(path, line)| format!("{path}:{line}: write crate:: instead")).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_opens_with_its_purpose() {
    let sources = sources(&["src", "tests"]);
    let wrong = sources.iter().filter(|source| !source.text.starts_with("//! "));
    let wrong: Vec<_> = wrong.map(|source| format!("{}:1: no //! line", source.path.display())).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(sources.len() > 100, "only {} files were looked at", sources.len());
}

#[test]
fn no_file_is_longer_than_one_can_read() {
    let len = |source: &Source| source.text.lines().filter(|line| !code_of(line).is_empty()).count();
    let sources = sources(&["src", "tests"]);
    let wrong = sources.iter().filter(|source| len(source) > CODE_LINES_MAX);
    let wrong: Vec<_> =
        wrong.map(|source| format!("{}: {} lines of code", source.path.display(), len(source))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_name_says_what_is_inside() {
    let sources = sources(&["src", "tests"]);
    let is_empty = |source: &&Source| {
        let mut parts = source.path.components().filter_map(|part| Path::new(part.as_os_str()).file_stem());
        parts.any(|part| EMPTY_NAMES.iter().any(|name| part == *name))
    };
    let wrong: Vec<_> = sources.iter().filter(is_empty).map(|source| source.path.display().to_string()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
