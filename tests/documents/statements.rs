//! Checks the list `statements.txt` of the requirements in the project's papers. Each requirement
//! must be listed once, with tests that exist.

use std::collections::BTreeSet;

use crate::references::{code_below, read, root};

/// The number of requirements in each paper.
const PAPERS: [(char, usize); 5] = [('C', 45), ('E', 46), ('A', 23), ('F', 21), ('S', 26)];

#[test]
fn every_statement_of_the_papers_has_a_test_that_exists_or_a_reason_why_not() {
    let text = read("tests/documents/statements.txt");
    let code: String = ["src", "crates", "tests"]
        .map(|folder| code_below(&root().join(folder)))
        .concat();
    let (mut numbers, mut tests, mut without) = (BTreeSet::new(), BTreeSet::new(), 0);
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let parts: Vec<&str> = line.split(" | ").collect();
        let [number, statement, held_by] = parts[..] else {
            panic!("not three parts: {line}")
        };
        assert!(statement.ends_with('.'), "a sentence: {line}");
        assert!(numbers.insert(number.to_owned()), "twice: {number}");
        if let Some(reason) = held_by.strip_prefix("none: ") {
            assert!(reason.len() > 10, "a reason: {line}");
            without += 1;
            continue;
        }
        for test in held_by.split(' ') {
            assert!(
                has_test(&code, test),
                "{number} names a test that there is not: {test}"
            );
            tests.insert(test);
        }
    }
    let expected = PAPERS
        .iter()
        .flat_map(|(paper, count)| (1..=*count).map(move |at| format!("{paper}{at}")));
    assert_eq!(numbers, expected.collect());
    println!(
        "{} statements, {} tests, {without} statements without one",
        numbers.len(),
        tests.len()
    );
    assert_eq!(numbers.len(), 161);
    assert!(
        without < 20 && tests.len() > 70,
        "{without} without, {} tests",
        tests.len()
    );
}

/// Returns `true` if `code` has a test called `name`. The function must be inside `proptest!`, or
/// have a test attribute at most a few lines above it.
fn has_test(code: &str, name: &str) -> bool {
    let Some(at) = code.find(&format!("fn {name}(")) else {
        return false;
    };
    let before: Vec<&str> = code[..at].lines().rev().take(8).collect();
    before
        .iter()
        .any(|line| line.contains("test]") || line.contains("tokio::test"))
        || code[..at]
            .rfind("proptest!")
            .is_some_and(|begin| !code[begin..at].contains("\n}\n"))
}
