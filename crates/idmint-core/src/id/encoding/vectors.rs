//! Shared test helpers for the codecs: published test vectors, and random cases that are
//! reproducible.

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use serde_json::Value;

use super::codec::Codec;

/// Returns the rows of one section of a vector file.
pub(crate) fn rows(file: &str, section: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/vectors")
        .join(file)
        .with_extension("json");
    let text = std::fs::read_to_string(path).expect("the vector file is there");
    let file: Value = serde_json::from_str(&text).expect("the vector file is JSON");
    file[section]
        .as_array()
        .expect("the section is a list")
        .clone()
}

/// Returns the value's text.
pub(crate) fn text_of(codec: &Codec, value: u128) -> String {
    let mut text = vec![0; codec.len(value)];
    codec.write(value, &mut text);
    String::from_utf8(text).expect("texts are ASCII")
}

/// Returns the number in a row of the section `valid` of a file with test vectors. The row has the
/// number as decimal text.
pub(crate) fn number(row: &Value) -> u128 {
    let decimal = row["encodings"]["decimal"]
        .as_str()
        .expect("a decimal text");
    decimal.parse().expect("a number of 128 bits")
}

/// Asserts that a codec writes this value as the published text, and reads the text as this value.
pub(crate) fn check(codec: &Codec, value: u128, text: &str) {
    assert_eq!(text_of(codec, value), text, "text of {value}");
    assert_eq!(codec.read(text), Ok(value), "{text}");
    let pattern = regex_lite::Regex::new(&codec.pattern()).expect("a regular expression");
    assert!(pattern.is_match(text), "{text} does not match {pattern}");
}

/// Checks that `codec` writes and reads the `valid` test vectors of a file, except rows that
/// `chosen` excludes or that have no text in `encoding`. Returns the number of rows checked.
pub(crate) fn check_valid(
    codec: &Codec,
    file: &str,
    encoding: &str,
    chosen: impl Fn(&Value) -> bool,
) -> usize {
    let rows = rows(file, "valid");
    let texts = rows
        .iter()
        .filter(|row| chosen(row))
        .filter_map(|row| Some((row, row["encodings"][encoding].as_str()?)));
    texts
        .map(|(row, text)| check(codec, number(row), text))
        .count()
}

/// Checks that each chosen text is refused for the listed reason. The texts are in the section
/// `invalid` of a file with test vectors. Returns the number of texts checked.
pub(crate) fn check_invalid(codec: &Codec, file: &str, chosen: impl Fn(&Value) -> bool) -> usize {
    let rows = rows(file, "invalid");
    let texts = rows
        .iter()
        .filter(|row| chosen(row))
        .filter_map(|row| Some((row, row["input"].as_str()?)));
    texts
        .map(|(row, text)| {
            let reason = codec.read(text).map_err(|rejection| rejection.code());
            assert_eq!(
                reason.err(),
                row["reason"].as_str(),
                "{}: {text:?}",
                row["name"]
            );
        })
        .count()
}

/// Returns a proptest configuration with a fixed seed, for tests that compare our codecs with other
/// crates. A difference between the crates then shows up in every run, and not only in some.
pub(crate) fn same_cases_every_time() -> Config {
    Config {
        cases: 1_000,
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..Config::default()
    }
}

/// Generates subsets of the letters, in any order, with at least `least` of them.
pub(crate) fn some_letters(letters: &str, least: usize) -> impl Strategy<Value = String> {
    let letters: Vec<char> = letters.chars().collect();
    let count = letters.len();
    proptest::sample::subsequence(letters, least..=count)
        .prop_shuffle()
        .prop_map(String::from_iter)
}
