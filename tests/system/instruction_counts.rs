//! Compares the numbers of instructions that `make instructions` has counted with the recorded
//! numbers.

use crate::counts::{Change, Counts};

fn counts(pairs: &[(&str, u64)]) -> Counts {
    let mut counts = Counts::default();
    pairs
        .iter()
        .for_each(|(name, count)| counts.insert(name, *count));
    counts
}

#[test]
fn a_tenth_more_passes_and_one_instruction_above_that_fails() {
    let recorded = counts(&[("spell", 200)]);
    assert_eq!(counts(&[("spell", 220)]).changes_since(&recorded), []);
    let changes = counts(&[("spell", 221)]).changes_since(&recorded);
    assert_eq!(
        changes,
        [Change::Rose {
            name: "spell".to_owned(),
            from: 200,
            to: 221
        }]
    );
    assert!(changes[0].fails());
    assert_eq!(changes[0].to_string(), "spell: 200 -> 221, 10 % more");
}

#[test]
fn what_became_cheaper_is_told_and_passes() {
    let changes = counts(&[("spell", 100)]).changes_since(&counts(&[("spell", 200)]));
    assert_eq!(changes[0].to_string(), "spell: 200 -> 100, 50 % less");
    assert!(!changes[0].fails());
}

#[test]
fn a_subject_on_one_side_only_fails() {
    let changes = counts(&[("new", 1)]).changes_since(&counts(&[("old", 2)]));
    let told: Vec<_> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "new: 1, and no count is recorded",
            "old: recorded, and not counted any more"
        ]
    );
    assert!(changes.iter().all(Change::fails));
}

#[test]
fn counts_are_read_as_they_were_written() {
    let written = counts(&[
        ("POST /ids/snowflake?count=1000", 32_123),
        ("spell flax", 31),
    ]);
    assert_eq!(written.to_string().parse(), Ok(written.clone()));
    assert_eq!(written.len(), 2);
    assert!(
        "spell flax\n"
            .parse::<Counts>()
            .unwrap_err()
            .contains("is not a name and a count")
    );
}
