//! Checks docs/internals/WHICH-FILE.md: the files that it names must answer the questions in it.

use std::collections::BTreeSet;

use regex_lite::Regex;

use crate::references::read;

#[test]
fn what_each_question_asks_for_is_defined_in_the_file_that_answers_it() {
    let row =
        Regex::new(r"(?m)^\| (.+\?) \| \[.+\]\(\.\./\.\./((?:src|crates)/.+\.rs)\) \| `(\w+)` \|$")
            .unwrap();
    let page = read("docs/internals/WHICH-FILE.md");
    let (mut files, mut questions) = (BTreeSet::new(), 0);
    for (_, [question, file, item]) in row.captures_iter(&page).map(|row| row.extract()) {
        let defined =
            Regex::new(&format!(r"\b(struct|enum|trait|type|fn|const) {item}\b")).unwrap();
        assert!(
            defined.is_match(&read(file)),
            "{question} {file} does not define {item}"
        );
        files.insert(file.to_owned());
        questions += 1;
    }
    println!("{questions} questions, {} files", files.len());
    assert_eq!(questions, 30);
    assert!(
        files.len() > 25,
        "a few files answer most questions: {files:?}"
    );
}
