//! Checks that the README is short, and that it links directly to the answers of the most common
//! first questions.

use crate::references::{anchor_of, read};

/// The most common first questions of new users, each with the page and heading that answers it.
/// Another test checks that all links are valid.
const ASKED_FIRST: [(&str, &str); 6] = [
    ("which format do I take", "docs/FORMATS.md#which-one"),
    ("how do I run it without etcd", "docs/START.md#run-it"),
    (
        "how do I make `inv_…` ids",
        "docs/CUSTOM-FORMATS.md#a-prefix-as-stripes-ids-have",
    ),
    (
        "what if the clock jumps",
        "docs/OPERATIONS.md#when-the-clock-jumps",
    ),
    (
        "how do I move from an old Snowflake",
        "docs/CUSTOM-FORMATS.md#beside-an-old-generator",
    ),
    (
        "how do I rotate a token",
        "docs/OPERATIONS.md#to-rotate-a-token",
    ),
];

#[test]
fn the_first_page_has_two_screens_and_links_what_is_asked_first() {
    let page = read("README.md");
    let (lines, words) = (page.lines().count(), page.split_whitespace().count());
    println!("README.md: {lines} lines, {words} words");
    assert!(lines <= 120 && words <= 900, "{lines} lines, {words} words");
    for (question, answer) in ASKED_FIRST {
        assert!(
            page.contains(&format!("({answer})")),
            "{question}? README.md has no link to {answer}"
        );
    }
}

/// The number of lines that fit on one screen.
const SCREEN: usize = 60;

/// Returns the number of lines of the section with this heading.
fn lines_of_section(page: &str, heading: &str) -> usize {
    let page = read(page);
    let mut lines = page.lines().skip_while(|line| {
        !line.starts_with('#') || anchor_of(line.trim_start_matches('#')) != heading
    });
    let level = lines
        .next()
        .expect("the heading is there")
        .chars()
        .take_while(|letter| *letter == '#')
        .count();
    let is_next = |line: &&str| {
        (1..=level).any(|hashes| line.starts_with(&format!("{} ", "#".repeat(hashes))))
    };
    1 + lines.take_while(|line| !is_next(line)).count()
}

#[test]
fn what_is_asked_first_is_as_many_screens_away_as_the_decision_says() {
    let (front, decision) = (
        read("README.md"),
        read("docs/internals/decisions/front-page.md"),
    );
    for (question, answer) in ASKED_FIRST {
        let line = front
            .lines()
            .position(|line| line.contains(&format!("({answer})")))
            .expect("it is linked");
        let (page, heading) = answer.split_once('#').expect("a page and a heading");
        let section = lines_of_section(page, heading);
        let screens = line / SCREEN + 1 + section.div_ceil(SCREEN);
        println!("{question}: {screens} screens, the last of {section} lines");
        let row = decision
            .lines()
            .find(|row| row.starts_with(&format!("| {question} |")))
            .expect("it has a row");
        assert!(
            row.ends_with(&format!("| {screens} |")),
            "{screens} screens: {row}"
        );
    }
}
