//! How a file and a folder must look: a purpose, a length one can read, a name that says something.

use std::collections::BTreeMap;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use syn::Item;

use crate::plan::{EMPTY_NAMES, ENTRANCES, LISTED_MAX, SOURCE_LINES_MAX, TEST_LINES_MAX};
use crate::source::{Source, sources};
use crate::survey::SURVEY;
use crate::test_only::is_test_only;

const ALL: [&str; 3] = ["src", "tests", "benches"];

/// The lines of a file without its inline test modules.
fn lines_beside_tests(source: &Source) -> usize {
    let file =
        syn::parse_file(&source.text).unwrap_or_else(|error| panic!("{}: {error}", source.path));
    source.text.lines().count() - file.items.iter().map(lines_of_tests).sum::<usize>()
}

/// The lines of an item that is an inline test module, from its first attribute to its last brace.
fn lines_of_tests(item: &Item) -> usize {
    let Item::Mod(module) = item else { return 0 };
    match (&module.content, module.attrs.first()) {
        (Some((brace, _)), Some(first)) if is_test_only(&module.attrs) => {
            brace.span.close().end().line - first.pound_token.span.start().line + 1
        }
        _ => 0,
    }
}

/// Why a file is too long, if it is.
fn length_objection(source: &Source, is_test: bool) -> Option<String> {
    let (lines, max) = if is_test {
        (source.text.lines().count(), TEST_LINES_MAX)
    } else {
        (lines_beside_tests(source), SOURCE_LINES_MAX)
    };
    (lines > max).then(|| format!("{}: {lines} lines, at most {max}", source.path))
}

/// The folders that list too many names, by the paths of all files below them.
fn crowded_folders<'a>(paths: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut listed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for mut path in paths {
        while let Some((folder, name)) = path.rsplit_once('/') {
            let names = listed.entry(folder).or_default();
            if name != "mod.rs"
                && !(folder == "src" && ENTRANCES.contains(&name))
                && !names.contains(&name)
            {
                names.push(name);
            }
            path = folder;
        }
    }
    let crowded = listed
        .into_iter()
        .filter(|(_, names)| names.len() > LISTED_MAX);
    crowded
        .map(|(folder, names)| {
            format!("{folder} lists {} names, at most {LISTED_MAX}", names.len())
        })
        .collect()
}

/// The lines in which a path goes up twice.
fn climbing_lines(tokens: TokenStream) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut last_super = None;
    for (at, token) in tokens.into_iter().enumerate() {
        match token {
            TokenTree::Group(group) => lines.extend(climbing_lines(group.stream())),
            TokenTree::Ident(ident) if ident == "super" => {
                // Two colons stand between.
                if last_super.is_some_and(|last| last + 3 == at) {
                    lines.push(ident.span().start().line);
                }
                last_super = Some(at);
            }
            _ => {}
        }
    }
    lines
}

fn has_empty_name(path: &str) -> bool {
    let mut parts = Path::new(path)
        .components()
        .filter_map(|part| Path::new(part.as_os_str()).file_stem());
    parts.any(|part| EMPTY_NAMES.iter().any(|name| part == *name))
}

#[test]
fn no_file_is_longer_than_one_can_read() {
    let sources = sources(&ALL);
    println!("{} files", sources.len());
    let is_test = |path: &String| !path.starts_with("src/") || SURVEY.test_files.contains(path);
    let wrong: Vec<_> = sources
        .iter()
        .filter_map(|source| length_objection(source, is_test(&source.path)))
        .collect();
    assert!(
        sources.len() > 300,
        "only {} files were looked at",
        sources.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_that_is_too_long_is_seen() {
    let tests = format!(
        "/// Tests.\n#[cfg(test)]\nmod tests {{\n{}}}\n",
        "fn f() {}\n".repeat(500)
    );
    let source =
        |lines: usize| Source::new("src/a.rs", &("const _: u8 = 1;\n".repeat(lines) + &tests));
    assert_eq!(lines_beside_tests(&source(3)), 3);
    assert_eq!(length_objection(&source(400), false), None);
    assert_eq!(
        length_objection(&source(401), false),
        Some("src/a.rs: 401 lines, at most 400".to_owned())
    );
    assert!(
        length_objection(&source(0), true)
            .is_some_and(|why| why.contains("504 lines, at most 500"))
    );
}

#[test]
fn a_folder_lists_about_a_dozen_names() {
    let sources = sources(&["src"]);
    assert!(
        sources.len() > 200,
        "only {} files were looked at",
        sources.len()
    );
    let wrong = crowded_folders(sources.iter().map(|source| &*source.path));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_crowded_folder_is_seen() {
    let paths = |count: usize| {
        (0..count)
            .map(|at| format!("src/id/f{}/a{at}.rs", at % 2))
            .collect::<Vec<_>>()
    };
    let crowded = |paths: &[String]| crowded_folders(paths.iter().map(String::as_str));
    let face = [
        "src/id/mod.rs".to_owned(),
        "src/id/f0/mod.rs".to_owned(),
        "src/main.rs".to_owned(),
    ];
    assert_eq!(
        crowded(&[paths(28), face.to_vec()].concat()),
        Vec::<String>::new()
    );
    assert_eq!(
        crowded(&paths(29)),
        ["src/id/f0 lists 15 names, at most 14"]
    );
}

#[test]
fn no_path_climbs_to_the_root_by_super() {
    let sources = sources(&["src"]);
    let lines = |source: &Source| climbing_lines(source.text.parse().expect("tokens"));
    let wrong = sources.iter().flat_map(|source| {
        lines(source)
            .into_iter()
            .map(move |line| (&source.path, line))
    });
    let wrong: Vec<_> = wrong
        .map(|(path, line)| format!("{path}:{line}: write crate:: instead"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        sources.len() > 200,
        "only {} files were looked at",
        sources.len()
    );
}

#[test]
fn a_path_that_climbs_is_seen() {
    let text = "// super::super::a\nuse super::b;\nuse super::super::c;\nfn d() { e!([super\n::super::f]) }\nuse super::{h, i};";
    assert_eq!(climbing_lines(text.parse().expect("tokens")), [3, 5]);
}

#[test]
fn every_file_opens_with_its_purpose() {
    let sources = sources(&ALL);
    let wrong = sources
        .iter()
        .filter(|source| !says_its_purpose(&source.text));
    let wrong: Vec<_> = wrong
        .map(|source| format!("{}:1: no //! line", source.path))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        sources.len() > 300,
        "only {} files were looked at",
        sources.len()
    );
}

fn says_its_purpose(text: &str) -> bool {
    text.lines()
        .next()
        .and_then(|line| line.strip_prefix("//! "))
        .is_some_and(|purpose| !purpose.trim().is_empty())
}

#[test]
fn a_file_without_purpose_is_seen() {
    assert!(says_its_purpose("//! What it is for.\n"));
    for text in [
        "",
        "use std::fs;\n//! Too late.",
        "// Not of the file.",
        "//! \n",
        "\n//! After a line.",
    ] {
        assert!(!says_its_purpose(text), "{text:?}");
    }
}

#[test]
fn every_name_says_what_is_inside() {
    let sources = sources(&ALL);
    let wrong: Vec<_> = sources
        .iter()
        .filter(|source| has_empty_name(&source.path))
        .map(|source| &*source.path)
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        sources.len() > 300,
        "only {} files were looked at",
        sources.len()
    );
}

#[test]
fn a_name_that_says_nothing_is_seen() {
    assert!(has_empty_name("src/id/utils.rs") && has_empty_name("tests/common/mod.rs"));
    assert!(!has_empty_name("src/id/uncommon.rs"));
}
