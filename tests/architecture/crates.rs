//! Which crates stay out of which folders.

use std::collections::BTreeSet;

use crate::plan::{CRATE_RULES, CrateRule};
use crate::survey::{CrateUse, SURVEY};

fn is_inside(path: &str, folder: &str) -> bool {
    let inside = path
        .strip_prefix("src/")
        .and_then(|path| path.strip_prefix(folder));
    inside.is_some_and(|rest| folder.is_empty() || rest.starts_with('/') || rest == ".rs")
}

fn is_broken(rule: &CrateRule, used: &CrateUse) -> bool {
    let is_in = |folders: &[&str]| folders.iter().any(|folder| is_inside(&used.from, folder));
    rule.crates.contains(&&*used.crate_name) && is_in(rule.kept_out_of) && !is_in(rule.except)
}

/// The uses of crates that a rule forbids.
fn forbidden_uses<'a>(
    rules: &[CrateRule],
    uses: impl IntoIterator<Item = &'a CrateUse>,
) -> Vec<String> {
    let broken = uses
        .into_iter()
        .filter(|used| rules.iter().any(|rule| is_broken(rule, used)));
    let lines: BTreeSet<_> = broken
        .map(|used| (&used.from, used.line, &used.crate_name))
        .collect();
    lines
        .into_iter()
        .map(|(from, line, crate_name)| format!("{from}:{line}: uses {crate_name}"))
        .collect()
}

#[test]
fn a_folder_names_no_crate_that_is_kept_out_of_it() {
    println!("{} uses of crates", SURVEY.crate_uses.len());
    assert!(
        SURVEY.crate_uses.len() > 500,
        "only {} uses were looked at",
        SURVEY.crate_uses.len()
    );
    let wrong = forbidden_uses(CRATE_RULES, &SURVEY.crate_uses);
    assert!(
        wrong.is_empty(),
        "{} uses\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn a_forbidden_crate_is_seen() {
    use crate::source::Source;
    use crate::survey::Survey;

    let files = [
        (
            "src/lib.rs",
            "mod service; mod storage; mod id; pub use tokio as runtime;",
        ),
        (
            "src/service/mod.rs",
            "use {std::time, axum::{\n    http, body::Body}};\nfn f() -> hyper::Body { tokio::spawn(1) }",
        ),
        (
            "src/storage/mod.rs",
            "mod embedded; #[derive(redb::Value)] struct S; #[cfg(test)] mod t { use redb::X; }",
        ),
        (
            "src/storage/embedded/mod.rs",
            "use redb::Database; fn e() { vec![::redb::Table] }",
        ),
        (
            "src/id/mod.rs",
            "use crate::runtime::spawn; fn i() { let tokio = 1; go!(tracing::warn!(tokio)) }",
        ),
    ];
    let sources: Vec<_> = files
        .iter()
        .map(|(path, text)| Source::new(path, text))
        .collect();
    let survey = Survey::of(
        &sources,
        &["std", "axum", "hyper", "tokio", "redb", "tracing"],
    );
    let expected = [
        "src/id/mod.rs:1: uses tokio",
        "src/id/mod.rs:1: uses tracing",
        "src/service/mod.rs:2: uses axum",
        "src/service/mod.rs:3: uses hyper",
        "src/storage/mod.rs:1: uses redb",
    ];
    assert_eq!(forbidden_uses(CRATE_RULES, &survey.crate_uses), expected);
}
