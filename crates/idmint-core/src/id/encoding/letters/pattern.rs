//! Builds regular expressions for texts, using only syntax that every engine supports.

use std::fmt::Write;

/// Returns a regular expression that matches one of these letters. Consecutive letters are written
/// as ranges.
pub(in crate::id::encoding) fn letter_class(letters: &[u8]) -> String {
    let mut sorted = letters.to_vec();
    sorted.sort_unstable();
    let mut class = String::from("[");
    let mut rest = sorted.as_slice();
    while let Some(first) = rest.first() {
        let run = (*first..)
            .zip(rest)
            .take_while(|(expected, found)| expected == *found)
            .count();
        let (run, after) = rest.split_at(run);
        let (first, last) = (run[0], run[run.len() - 1]);
        push_escaped(&mut class, first);
        if run.len() > 2 {
            class.push('-');
        }
        if run.len() > 1 {
            push_escaped(&mut class, last);
        }
        rest = after;
    }
    class.push(']');
    class
}

/// Returns the part of a regular expression that says how often the preceding letter occurs, such
/// as `{3}` for three times or `{0,3}` for at most three times.
pub(in crate::id::encoding) fn repeat(least: usize, most: usize) -> String {
    if least == most {
        format!("{{{least}}}")
    } else {
        format!("{{{least},{most}}}")
    }
}

/// Returns a regular expression for groups of letters with hyphens between the groups. `class` is a
/// regular expression for one letter.
pub(in crate::id::encoding) fn repeat_grouped(class: &str, groups: &[usize]) -> String {
    let mut pattern = String::new();
    for group in groups {
        if !pattern.is_empty() {
            pattern.push('-');
        }
        write!(pattern, "{class}{{{group}}}").expect("writing to a string never fails");
    }
    pattern
}

/// Returns the text with every special character of regular expressions escaped.
pub(in crate::id) fn escape(text: &str) -> String {
    let mut pattern = String::new();
    for letter in text.chars() {
        if r"\.+*?()|[]{}^$".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

fn push_escaped(class: &mut String, letter: u8) {
    if matches!(letter, b'-' | b']' | b'[' | b'^' | b'\\') {
        class.push('\\');
    }
    class.push(char::from(letter));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_become_ranges_and_special_letters_are_escaped() {
        assert_eq!(letter_class(b"fedcba9876543210"), "[0-9a-f]");
        assert_eq!(letter_class(b"-_ab"), "[\\-_ab]");
        assert_eq!(escape("a.b_(c"), "a\\.b_\\(c");
    }

    #[test]
    fn every_printable_letter_stands_for_itself() {
        let all: Vec<u8> = (b'!'..=b'~').collect();
        for letter in &all {
            let others: Vec<u8> = all
                .iter()
                .copied()
                .filter(|other| other != letter)
                .collect();
            let text = char::from(*letter).to_string();
            let one =
                regex_lite::Regex::new(&format!("^{}$", letter_class(&[*letter]))).expect("valid");
            let rest =
                regex_lite::Regex::new(&format!("^{}$", letter_class(&others))).expect("valid");
            let exact = regex_lite::Regex::new(&format!("^{}$", escape(&text))).expect("valid");
            assert!(
                one.is_match(&text) && exact.is_match(&text) && !rest.is_match(&text),
                "{text}"
            );
        }
    }
}
