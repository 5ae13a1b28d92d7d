//! Who may stand on whom: folders and subfolders import from above only.

use std::collections::BTreeSet;

use crate::plan::{ENTRANCES, FOLDERS, Folder};
use crate::survey::{Import, SURVEY, Survey};

/// Where a file lies: its folder below `src`, and its subfolder if it lies in one.
fn place_of(path: &str) -> Option<(&str, Option<&str>)> {
    let mut parts = path.strip_prefix("src/")?.split('/');
    let folder = parts.next().filter(|first| !ENTRANCES.contains(first))?;
    let inside = parts.next();
    Some((folder, inside.filter(|_| parts.next().is_some())))
}

fn row_of<'a>(plan: &'a [Folder], name: &str) -> Option<(usize, &'a Folder)> {
    plan.iter()
        .enumerate()
        .find(|(_, folder)| folder.name == name)
}

/// Where the folders that there are differ from the plan.
fn compare_folders(plan: &[Folder], survey: &Survey) -> Vec<String> {
    let mut wrong = BTreeSet::new();
    let mut found = BTreeSet::new();
    for (folder, subfolder) in survey
        .files
        .iter()
        .chain(&survey.test_files)
        .filter_map(|path| place_of(path))
    {
        found.insert(folder);
        let Some((_, row)) = row_of(plan, folder) else {
            wrong.insert(format!("src/{folder} is not on the floor plan"));
            continue;
        };
        if row.is_planned {
            wrong.insert(format!("src/{folder} is there, so it is no longer planned"));
        }
        if let Some(subfolder) = subfolder.filter(|name| row.floor_of(name).is_none()) {
            wrong.insert(format!("src/{folder}/{subfolder} is not on the floor plan"));
        }
    }
    let missing = plan
        .iter()
        .filter(|row| !row.is_planned && !found.contains(row.name));
    wrong.extend(missing.map(|row| format!("src/{} is on the floor plan and not there", row.name)));
    wrong.into_iter().collect()
}

/// Why an import is not allowed, if it is not.
fn objection(plan: &[Folder], import: &Import) -> Option<String> {
    let (from, from_sub) = place_of(&import.from)?;
    let Some((to, to_sub)) = place_of(&import.to) else {
        return Some(format!("{from} must not import from an entrance"));
    };
    let (from_floor, row) = row_of(plan, from)?;
    if from != to {
        let (to_floor, _) = row_of(plan, to)?;
        let is_allowed = to_floor < from_floor && !row.denied.contains(&to);
        return (!is_allowed).then(|| format!("{from} must not import from {to}"));
    }
    let (from_sub, to_sub) = (from_sub?, to_sub?);
    let is_allowed = from_sub == to_sub || row.floor_of(to_sub)? < row.floor_of(from_sub)?;
    (!is_allowed).then(|| format!("{from}/{from_sub} must not import from {to}/{to_sub}"))
}

/// The imports that the plan does not allow.
fn wrong_imports(plan: &[Folder], survey: &Survey) -> Vec<String> {
    let wrong = survey
        .imports
        .iter()
        .filter_map(|import| Some((import, objection(plan, import)?)));
    let say = |(import, why): (&Import, String)| {
        format!(
            "{}:{}: {why}: {} of {}",
            import.from, import.line, import.name, import.to
        )
    };
    wrong.map(say).collect()
}

#[test]
fn the_folders_are_those_of_the_plan() {
    let wrong = compare_folders(FOLDERS, &SURVEY);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_folder_imports_only_from_folders_above_it() {
    let wrong = wrong_imports(FOLDERS, &SURVEY);
    println!(
        "{} imports, {} of them not allowed",
        SURVEY.imports.len(),
        wrong.len()
    );
    assert!(
        SURVEY.imports.len() > 1000,
        "only {} imports were looked at",
        SURVEY.imports.len()
    );
    assert!(
        wrong.is_empty(),
        "{} imports\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn a_plan_denies_only_what_stands_above() {
    for (floor, row) in FOLDERS.iter().enumerate() {
        for denied in row.denied {
            assert!(
                row_of(FOLDERS, denied).is_some_and(|(above, _)| above < floor),
                "{} denies {denied}",
                row.name
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn survey(files: &[(&str, &str)]) -> Survey {
        let sources: Vec<_> = files
            .iter()
            .map(|(path, text)| Source::new(path, text))
            .collect();
        Survey::of(&sources, &["std"])
    }

    const DECLARED: (&str, &str) = (
        "src/lib.rs",
        "pub mod time; pub mod id; pub mod storage; pub mod wire; pub mod http;",
    );

    fn objections(files: &[(&str, &str)]) -> Vec<String> {
        wrong_imports(FOLDERS, &survey(files))
    }

    #[test]
    fn an_import_from_below_is_seen_however_it_is_written() {
        let found = objections(&[
            DECLARED,
            ("src/time/mod.rs", "mod tick; pub use tick::Tick;"),
            (
                "src/time/tick.rs",
                "/// crate::http\npub struct Tick; use crate::{\n    id::{self,\n    },\n};",
            ),
            (
                "src/id/mod.rs",
                "pub use crate::time::Tick; pub struct Id; fn id() { log!(crate::http::serve) }",
            ),
            (
                "src/http/mod.rs",
                "pub fn serve(_: super::id::Id, _: super::id::Tick, _: crate::time::Tick) {}",
            ),
            ("src/storage/mod.rs", ""),
            ("src/wire/mod.rs", "fn wire(_: crate::storage::Store) {}"),
        ]);
        let expected = [
            "src/id/mod.rs:1: id must not import from http: serve of src/http/mod.rs",
            "src/time/tick.rs:3: time must not import from id: id of src/id/mod.rs",
            "src/wire/mod.rs:1: wire must not import from storage: Store of src/storage/mod.rs",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_name_of_above_may_not_come_through_a_folder_below() {
        let found = objections(&[
            DECLARED,
            ("src/time/mod.rs", "pub struct Tick;"),
            ("src/id/mod.rs", "use crate::http::Tick;"),
            ("src/http/mod.rs", "pub use crate::time::Tick;"),
            ("src/storage/mod.rs", ""),
            ("src/wire/mod.rs", ""),
        ]);
        assert_eq!(
            found,
            ["src/id/mod.rs:1: id must not import from http: Tick of src/http/mod.rs"]
        );
    }

    #[test]
    fn subfolders_have_floors_too() {
        let found = objections(&[
            ("src/lib.rs", "mod storage; const N: u8 = 1;"),
            (
                "src/storage/mod.rs",
                "mod embedded; mod etcd; mod keepers; mod door; pub use keepers::Keeper;",
            ),
            (
                "src/storage/door.rs",
                "use super::{etcd::M, keepers::Keeper}; pub const DOOR: u8 = 1;",
            ),
            ("src/storage/etcd/mod.rs", "mod m; pub use m::M;"),
            (
                "src/storage/etcd/m.rs",
                "pub struct M; use crate::storage::embedded::E;",
            ),
            (
                "src/storage/embedded/mod.rs",
                "pub struct E; use crate::storage::Keeper; fn e() { crate::N; }",
            ),
            (
                "src/storage/keepers/mod.rs",
                "pub struct Keeper(super::embedded::E, [u8; super::door::DOOR]);",
            ),
        ]);
        let expected = [
            "src/storage/embedded/mod.rs:1: storage must not import from an entrance: N of src/lib.rs",
            "src/storage/embedded/mod.rs:1: storage/embedded must not import from storage/keepers: Keeper of src/storage/keepers/mod.rs",
            "src/storage/etcd/m.rs:1: storage/etcd must not import from storage/embedded: E of src/storage/embedded/mod.rs",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_folder_beside_the_plan_is_seen() {
        let survey = survey(&[
            ("src/lib.rs", "mod time; mod shed; mod cluster; mod id;"),
            ("src/time/mod.rs", ""),
            ("src/shed/mod.rs", ""),
            ("src/cluster/mod.rs", ""),
            ("src/id/mod.rs", "mod codec;"),
            ("src/id/codec/mod.rs", ""),
        ]);
        let mut plan = FOLDERS[..7].to_vec();
        plan[6].is_planned = true;
        let wrong = compare_folders(&plan, &survey);
        let missing = |name| format!("src/{name} is on the floor plan and not there");
        let expected = [
            "src/cluster is there, so it is no longer planned".to_owned(),
            missing("conjunction"),
            "src/id/codec is not on the floor plan".to_owned(),
            missing("ledger"),
            missing("minting"),
            "src/shed is not on the floor plan".to_owned(),
            missing("storage"),
        ];
        assert_eq!(wrong, expected);
    }
}
