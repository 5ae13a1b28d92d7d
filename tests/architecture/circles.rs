//! No file needs a file that needs it in turn, however long the way round.

use std::collections::{BTreeMap, BTreeSet};

use crate::survey::{SURVEY, Survey};

/// The files that each file needs.
type Needs<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// The circles among the files, each with the imports that tie it, as lines of text.
fn circles(survey: &Survey) -> Vec<String> {
    let mut needs = Needs::new();
    for need in survey.needs() {
        needs.entry(&need.from).or_default().insert(&need.to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = needs
        .keys()
        .map(|file| (*file, reach(&needs, file)))
        .collect();
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for (file, far) in reached.iter().filter(|(file, far)| far.contains(*file)) {
        // Whoever is reached and reaches back stands in the same circle.
        let circle: BTreeSet<&str> = far
            .iter()
            .copied()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(file)))
            .collect();
        if seen.insert(circle.clone()) {
            circles.push(describe(survey, &circle));
        }
    }
    circles
}

/// Every file that can be reached from this one.
fn reach<'a>(needs: &Needs<'a>, file: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut left: Vec<&str> = needs.get(file).into_iter().flatten().copied().collect();
    while let Some(file) = left.pop() {
        if reached.insert(file) {
            left.extend(needs.get(file).into_iter().flatten());
        }
    }
    reached
}

fn describe(survey: &Survey, circle: &BTreeSet<&str>) -> String {
    let mut ties: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for need in survey
        .needs()
        .filter(|need| circle.contains(&*need.from) && circle.contains(&*need.to))
    {
        ties.entry((&need.from, &need.to))
            .or_default()
            .insert(&need.name);
    }
    let names = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join(", ");
    let ties = ties
        .into_iter()
        .map(|((from, to), tied)| format!("    {from} needs {} of {to}", names(tied)));
    format!(
        "circle of {} files:\n{}",
        circle.len(),
        ties.collect::<Vec<_>>().join("\n")
    )
}

#[test]
fn no_files_need_each_other_in_a_circle() {
    let arrows: BTreeSet<_> = SURVEY.needs().map(|need| (&need.from, &need.to)).collect();
    let files = SURVEY.files.len() - SURVEY.faces.len();
    println!("{files} files and {} arrows between them", arrows.len());
    assert!(
        files > 200 && arrows.len() > 500,
        "too little was looked at"
    );
    let circles = circles(&SURVEY);
    assert!(
        circles.is_empty(),
        "{} circles\n{}",
        circles.len(),
        circles.join("\n")
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<_> = files
            .iter()
            .map(|(path, text)| Source::new(path, text))
            .collect();
        let survey = Survey::of(&sources, &["std"]);
        assert_eq!(survey.unresolved, Vec::<String>::new());
        circles(&survey)
    }

    #[test]
    fn a_circle_is_found_through_re_exports_and_macros() {
        let found = circles_of(&[
            ("src/lib.rs", "mod id; mod z;"),
            (
                "src/id/mod.rs",
                "mod a; mod b; mod c; pub use {a::A, b::B, c::C};",
            ),
            ("src/id/a.rs", "use super::B; pub struct A;"),
            (
                "src/id/b.rs",
                "pub struct B; fn b() { vec![crate::id::C]; }",
            ),
            ("src/id/c.rs", "pub struct C; fn c(_: crate::id::a::A) {}"),
            ("src/z.rs", "use crate::id::{A, B};"),
        ]);
        let expected = "circle of 3 files:\n    src/id/a.rs needs B of src/id/b.rs\n    \
                        src/id/b.rs needs C of src/id/c.rs\n    src/id/c.rs needs A of src/id/a.rs";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn two_circles_are_two() {
        let found = circles_of(&[
            ("src/lib.rs", "mod a; mod b; mod room; mod d;"),
            ("src/a.rs", "pub struct A; fn a() -> super::b::B {}"),
            ("src/b.rs", "pub struct B; use crate::{a::A, d::D};"),
            ("src/d.rs", "pub struct D;"),
            (
                "src/room/mod.rs",
                "mod c; pub use c::C; pub const MAX: u8 = 1;",
            ),
            ("src/room/c.rs", "pub struct C([u8; super::MAX]);"),
        ]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[1].contains("src/room/c.rs needs MAX of src/room/mod.rs"),
            "{}",
            found[1]
        );
    }

    #[test]
    fn a_diamond_a_face_and_a_test_make_no_circle() {
        let found = circles_of(&[
            ("src/lib.rs", "mod id;"),
            (
                "src/id/mod.rs",
                "mod a; mod b; mod c; mod d; pub use {a::A, b::B, c::C, d::D};",
            ),
            ("src/id/a.rs", "use super::{B, C}; pub struct A;"),
            ("src/id/b.rs", "use super::D; pub struct B;"),
            ("src/id/c.rs", "use crate::id::D; pub struct C;"),
            (
                "src/id/d.rs",
                "pub struct D; #[cfg(test)] mod tests { use crate::id::A; }",
            ),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }
}
