//! Who imports whom, file by file: what every check of the floor plan looks at.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::source::{Source, root, sources};
use crate::tree::{Meaning, ModuleId, Tree};

/// Why a path leads to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// The file defines what the path names.
    Definition,
    /// The path names the file's module, which defines it or re-exports it from elsewhere.
    Passage,
}

/// A path in one file that leads to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import {
    pub(crate) from: String,
    pub(crate) line: usize,
    pub(crate) to: String,
    /// What is imported, by the name it was defined with.
    pub(crate) name: String,
    pub(crate) reach: Reach,
}

/// A path in one file that leads out of this crate.
pub(crate) struct CrateUse {
    pub(crate) from: String,
    pub(crate) line: usize,
    pub(crate) crate_name: String,
}

/// The files of `src` and the paths between them, tests left out.
#[derive(Default)]
pub(crate) struct Survey {
    /// The files that take part, faces too.
    pub(crate) files: BTreeSet<String>,
    /// The files that declare and re-export and define nothing themselves.
    pub(crate) faces: BTreeSet<String>,
    pub(crate) test_files: BTreeSet<String>,
    pub(crate) imports: BTreeSet<Import>,
    pub(crate) crate_uses: Vec<CrateUse>,
    /// Whatever could not be followed: paths to nothing, modules without a file, files that no module declares.
    pub(crate) unresolved: Vec<String>,
}

/// The survey of this package.
pub(crate) static SURVEY: LazyLock<Survey> = LazyLock::new(|| {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let manifest: toml::Table = manifest.parse().expect("a manifest in TOML");
    let crates = crates_of(&manifest);
    let crates: Vec<&str> = crates.iter().map(String::as_str).collect();
    Survey::of(&sources(&["src"]), &crates)
});

/// The crates that code can name: those of the toolchain, and the dependencies of a manifest wherever it lists them.
fn crates_of(manifest: &toml::Table) -> BTreeSet<String> {
    let targets = manifest
        .get("target")
        .and_then(toml::Value::as_table)
        .into_iter()
        .flat_map(toml::Table::values);
    let tables = targets.filter_map(toml::Value::as_table).chain([manifest]);
    let dependencies = tables.filter_map(|table| table.get("dependencies")?.as_table());
    let names = dependencies
        .flat_map(toml::Table::keys)
        .map(|name| name.replace('-', "_"));
    names
        .chain(["std", "core", "alloc"].map(str::to_owned))
        .collect()
}

impl Survey {
    pub(crate) fn of(sources: &[Source], crates: &[&str]) -> Self {
        let tree = Tree::of(sources, "idmint", crates);
        let mut survey = Self {
            test_files: tree.test_files.clone(),
            ..Self::default()
        };
        for (id, module) in tree.modules.iter().enumerate() {
            survey.files.insert(module.file.clone());
            if tree.is_face(id) {
                survey.faces.insert(module.file.clone());
            }
            for used in &module.uses {
                let mut meanings = tree.resolve(id, &used.path);
                if meanings.is_empty() {
                    survey.unresolved.push(format!(
                        "{}:{}: use {}",
                        module.file,
                        used.line,
                        used.path.join("::")
                    ));
                }
                if used.name.is_none() {
                    let all = meanings.iter().filter_map(|meaning| match meaning {
                        Meaning::Module(inner) => Some(tree.all_names(*inner)),
                        Meaning::Item(..) | Meaning::External(_) => None,
                    });
                    let all: Vec<_> = all.flatten().collect();
                    meanings.extend(all);
                }
                survey.add(&tree, id, &used.path, used.line, &meanings);
            }
            for mention in &module.mentions {
                let meanings = tree.resolve(id, &mention.path);
                // A path may begin with a type parameter or a built-in type, but not if it begins like one of a module.
                if meanings.is_empty() && tree.named_module(id, &mention.path).is_some() {
                    survey.unresolved.push(format!(
                        "{}:{}: {}",
                        module.file,
                        mention.line,
                        mention.path.join("::")
                    ));
                }
                survey.add(&tree, id, &mention.path, mention.line, &meanings);
            }
        }
        survey.unresolved.extend(tree.without_file);
        let undeclared = sources.iter().map(|source| &source.path);
        let undeclared = undeclared
            .filter(|path| !survey.files.contains(*path) && !survey.test_files.contains(*path));
        let undeclared: Vec<_> = undeclared
            .map(|path| format!("{path}: no module declares this file"))
            .collect();
        survey.unresolved.extend(undeclared);
        survey
    }

    fn add(
        &mut self,
        tree: &Tree,
        id: ModuleId,
        path: &[String],
        line: usize,
        meanings: &BTreeSet<Meaning>,
    ) {
        let from = &tree.modules[id].file;
        let mut reached = Vec::new();
        for meaning in meanings {
            match meaning {
                Meaning::External(crate_name) => {
                    let crate_name = crate_name.clone();
                    self.crate_uses.push(CrateUse {
                        from: from.clone(),
                        line,
                        crate_name,
                    });
                }
                Meaning::Item(module, name) => {
                    reached.push((*module, name.clone(), Reach::Definition))
                }
                Meaning::Module(module) => {
                    reached.push((
                        *module,
                        tree.modules[*module].name.clone(),
                        Reach::Definition,
                    ));
                }
            }
        }
        if let Some(module) = tree.named_module(id, path) {
            let name = path.last().cloned().unwrap_or_default();
            if !reached
                .iter()
                .any(|(other, ..)| tree.modules[*other].file == tree.modules[module].file)
            {
                reached.push((module, name, Reach::Passage));
            }
        }
        for (module, name, reach) in reached {
            let to = tree.modules[module].file.clone();
            if to != *from {
                self.imports.insert(Import {
                    from: from.clone(),
                    line,
                    to,
                    name,
                    reach,
                });
            }
        }
    }

    /// The imports between files that define something: what a file needs another one for.
    pub(crate) fn needs(&self) -> impl Iterator<Item = &Import> {
        let is_room = |file: &String| !self.faces.contains(file);
        let is_need = move |import: &&Import| {
            import.reach == Reach::Definition && is_room(&import.from) && is_room(&import.to)
        };
        self.imports.iter().filter(is_need)
    }
}

#[test]
fn every_path_of_this_package_is_followed() {
    let Survey {
        files,
        faces,
        test_files,
        imports,
        crate_uses,
        unresolved,
        ..
    } = &*SURVEY;
    println!(
        "{} files, {} of them faces, and {} of tests",
        files.len(),
        faces.len(),
        test_files.len()
    );
    println!(
        "{} imports, {} uses of crates, {} unresolved",
        imports.len(),
        crate_uses.len(),
        unresolved.len()
    );
    assert!(unresolved.is_empty(), "{}", unresolved.join("\n"));
    assert!(
        files.len() > 200 && faces.len() > 5 && test_files.len() > 5,
        "too few files were looked at"
    );
    assert!(
        imports.len() > 1000 && crate_uses.len() > 500,
        "too few imports were looked at"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(files: &[(&str, &str)]) -> Survey {
        let sources: Vec<_> = files
            .iter()
            .map(|(path, text)| Source::new(path, text))
            .collect();
        Survey::of(&sources, &["std", "redb"])
    }

    /// Which names a file needs of which file, as `a.rs: Name of b.rs`.
    fn needs(survey: &Survey) -> Vec<String> {
        let short = |path: &str| path.trim_start_matches("src/").to_owned();
        survey
            .needs()
            .map(|need| {
                format!(
                    "{}: {} of {}",
                    short(&need.from),
                    need.name,
                    short(&need.to)
                )
            })
            .collect()
    }

    #[test]
    fn a_re_export_leads_to_the_file_that_defines_the_name() {
        let survey = survey(&[
            ("src/lib.rs", "pub mod id; mod http;"),
            (
                "src/id/mod.rs",
                "mod format; mod layout;\npub use {format::{Format as Shape, format}, layout::*};",
            ),
            ("src/id/format.rs", "pub struct Format; pub fn format() {}"),
            ("src/id/layout.rs", "pub enum Layout { Packed }"),
            (
                "src/http.rs",
                "use crate::id::{\n    Shape,\n    format,\n};\nfn a() { crate::id::Layout::Packed; }",
            ),
        ]);
        assert_eq!(survey.unresolved, Vec::<String>::new());
        assert_eq!(
            survey.faces,
            ["src/id/mod.rs", "src/lib.rs"].map(str::to_owned).into()
        );
        let expected = [
            "http.rs: Format of id/format.rs",
            "http.rs: format of id/format.rs",
            "http.rs: Layout of id/layout.rs",
        ];
        assert_eq!(needs(&survey), expected);
    }

    #[test]
    fn a_module_that_defines_something_is_a_room_and_a_name_passed_on_by_it_is_not_its_own() {
        let survey = survey(&[
            ("src/lib.rs", "pub mod codec;"),
            (
                "src/codec/mod.rs",
                "mod a; mod b;\npub use a::A; pub enum Codec { A(A) } pub const MAX: u8 = 1;",
            ),
            ("src/codec/a.rs", "pub struct A;"),
            (
                "src/codec/b.rs",
                "use super::A; fn b() -> u8 { super::MAX }",
            ),
        ]);
        assert_eq!(survey.unresolved, Vec::<String>::new());
        let expected = [
            "codec/b.rs: A of codec/a.rs",
            "codec/b.rs: MAX of codec/mod.rs",
            "codec/mod.rs: A of codec/a.rs",
        ];
        assert_eq!(needs(&survey), expected);
    }

    #[test]
    fn an_imported_module_is_seen_through() {
        let survey = survey(&[
            ("src/lib.rs", "mod a; mod b; mod face;"),
            ("src/face/mod.rs", "pub mod deep { pub use crate::b::B; }"),
            ("src/b.rs", "pub struct B;"),
            (
                "src/a.rs",
                "use crate::face as f; mod inner { pub fn g() { super::f::deep::B; h!(super::super::b::B) } }",
            ),
        ]);
        assert_eq!(survey.unresolved, Vec::<String>::new());
        assert!(
            needs(&survey).contains(&"a.rs: B of b.rs".to_owned()),
            "{:?}",
            needs(&survey)
        );
    }

    #[test]
    fn a_name_that_the_call_of_a_macro_defines_is_known() {
        let survey = survey(&[
            ("src/lib.rs", "mod a; mod b;"),
            (
                "src/a.rs",
                "pin_project! { #[derive(Debug)] pub struct Body<B> { #[pin] inner: crate::b::B } }",
            ),
            ("src/b.rs", "pub struct B; use super::a::Body;"),
        ]);
        assert_eq!(survey.unresolved, Vec::<String>::new());
        assert_eq!(needs(&survey), ["a.rs: B of b.rs", "b.rs: Body of a.rs"]);
    }

    #[test]
    fn files_of_tests_take_no_part() {
        let survey = survey(&[
            ("src/lib.rs", "mod a; mod b; #[cfg(test)] mod samples;"),
            (
                "src/a.rs",
                "#[cfg(test)]\n#[path = \"a_tests.rs\"]\nmod tests;",
            ),
            ("src/a_tests.rs", "use crate::b::B;"),
            (
                "src/b.rs",
                "pub struct B; #[cfg(test)] mod tests { use crate::a; }",
            ),
            ("src/samples/mod.rs", "mod one; use crate::nowhere::N;"),
            ("src/samples/one.rs", "use super::super::b::B;"),
        ]);
        assert_eq!(survey.unresolved, Vec::<String>::new());
        assert_eq!(survey.imports.len(), 0);
        assert_eq!(survey.test_files.len(), 3);
    }

    #[test]
    fn what_cannot_be_followed_is_said() {
        let survey = survey(&[
            ("src/lib.rs", "mod a; mod gone;"),
            (
                "src/a.rs",
                "use crate::b::B;\nuse serde::Serialize;\nfn f() { self::g(); T::new(); u8::MAX; }",
            ),
            ("src/lost.rs", ""),
        ]);
        let expected = [
            "src/a.rs:1: use crate::b::B",
            "src/a.rs:2: use serde::Serialize",
            "src/a.rs:3: self::g",
            "src/lib.rs: mod gone has no file",
            "src/lost.rs: no module declares this file",
        ];
        assert_eq!(survey.unresolved, expected);
    }

    #[test]
    fn names_that_import_each_other_end() {
        let survey = survey(&[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", "pub use crate::b::{X, *}; pub mod a {}"),
            ("src/b.rs", "pub use crate::a::{X, *}; use crate::a::a;"),
        ]);
        assert_eq!(
            survey.unresolved,
            ["src/a.rs:1: use crate::b::X", "src/b.rs:1: use crate::a::X"]
        );
    }

    #[test]
    fn the_program_sees_the_library_by_its_name() {
        let survey = survey(&[
            ("src/lib.rs", "pub mod cli;"),
            (
                "src/cli.rs",
                "pub fn run() { redb::open(); ::std::mem::drop(1); }",
            ),
            ("src/main.rs", "fn main() { idmint::cli::run() }"),
        ]);
        assert_eq!(survey.unresolved, Vec::<String>::new());
        assert_eq!(needs(&survey), ["main.rs: run of cli.rs"]);
        let crates: Vec<_> = survey
            .crate_uses
            .iter()
            .map(|used| &*used.crate_name)
            .collect();
        assert_eq!(crates, ["redb", "std"]);
    }
}
