//! Decodes all words of a dictionary. Almost none of them may count as an id.
//! `tests/it/unlikely.rs` covers everyday numbers, with a clock that stands still.

use std::fs;

use idmint_testing::service::{idmint, run};

/// The path of the dictionary in Debian's package wamerican.
const DICTIONARY: &str = "/usr/share/dict/american-english";
const WORDS_MIN: usize = 100_000;

#[test]
fn of_a_thousand_words_of_a_dictionary_at_most_one_is_taken_for_an_id() {
    let words = fs::read_to_string(DICTIONARY)
        .unwrap_or_else(|error| panic!("{DICTIONARY}: {error}; .ci/install-packages installs it"));
    let count = words.lines().count();
    assert!(count >= WORDS_MIN, "{count} words");
    let ended = run(idmint(&[
        "decode", "--csv", "--strict", "--column", "1", DICTIONARY,
    ]));
    ended.assert(1, &[" are not ids of any format"]);
    assert_eq!(ended.out.lines().count(), count);
    let taken: Vec<_> = ended
        .out
        .lines()
        .filter(|line| !line.ends_with(",,,,,"))
        .collect();
    println!(
        "{} of {count} words are taken for ids: {taken:?}",
        taken.len()
    );
    assert!(
        taken.len() * 1_000 <= count,
        "{} of {count} words",
        taken.len()
    );
}
