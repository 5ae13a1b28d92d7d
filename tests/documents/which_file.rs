//! The questions of docs/WHICH-FILE.md have their answers where it says.

use std::collections::BTreeSet;

use regex_lite::Regex;

use crate::references::read;

#[test]
fn what_each_question_asks_for_is_defined_in_the_file_that_answers_it() {
    let row = Regex::new(r"(?m)^\| (.+\?) \| \[.+\]\(\.\./(src/.+\.rs)\) \| `(\w+)` \|$").unwrap();
    let page = read("docs/WHICH-FILE.md");
    let mut files = BTreeSet::new();
    for (_, [question, file, item]) in row.captures_iter(&page).map(|row| row.extract()) {
        let defined =
            Regex::new(&format!(r"\b(struct|enum|trait|type|fn|const) {item}\b")).unwrap();
        assert!(
            defined.is_match(&read(file)),
            "{question} {file} does not define {item}"
        );
        assert!(
            files.insert(file.to_owned()),
            "{file} answers two questions"
        );
    }
    println!("{} questions", files.len());
    assert_eq!(files.len(), 30);
}
