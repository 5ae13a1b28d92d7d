//! What somebody may have meant who copied an id with a quote, in the other case, or without its hyphens.

use crate::id::encoding::TEXT_LEN_MAX;

/// What may stand around an id in a sentence, a log line or a line of code.
const AROUND: [char; 14] = ['"', '\'', '`', '<', '>', '(', ')', '[', ']', '{', '}', ',', ';', '.'];
const SEPARATORS: [char; 6] = ['-', '_', ' ', ':', '.', ','];

/// The texts near to this one, the nearest first, itself left out. `shapes`: the lengths of the groups between hyphens
/// that some encoding has.
pub(super) fn near_texts(text: &str, shapes: &[Vec<usize>]) -> Vec<String> {
    if text.len() > TEXT_LEN_MAX {
        return Vec::new();
    }
    let trimmed = text.trim_matches(|letter: char| letter.is_whitespace() || AROUND.contains(&letter));
    let joined: String = trimmed.chars().filter(|letter| !SEPARATORS.contains(letter)).collect();
    let mut bases = vec![trimmed.to_owned(), joined.clone()];
    bases.extend(shapes.iter().filter_map(|shape| group(&joined, shape)));
    let mut near: Vec<String> = Vec::new();
    for base in bases {
        for candidate in [base.to_ascii_lowercase(), base.to_ascii_uppercase(), base] {
            if candidate != text && !near.contains(&candidate) {
                near.push(candidate);
            }
        }
    }
    near
}

/// The letters with hyphens between groups; `None` if there are more or fewer letters, or other than ASCII.
fn group(letters: &str, shape: &[usize]) -> Option<String> {
    if !letters.is_ascii() || letters.len() != shape.iter().sum::<usize>() {
        return None;
    }
    let mut rest = letters;
    let groups = shape.iter().map(|len| {
        let (group, behind) = rest.split_at(*len);
        rest = behind;
        group
    });
    Some(groups.collect::<Vec<_>>().join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_case_and_separators_are_mended() {
        let shapes = [vec![2, 1]];
        assert_eq!(near_texts(" AbC, ", &shapes), ["abc", "ABC", "AbC", "ab-c", "AB-C", "Ab-C"]);
        assert_eq!(near_texts("1 234", &shapes), ["1234"]);
        assert_eq!(near_texts("a_b_c", &[]), ["A_B_C", "abc", "ABC"]);
        assert!(!near_texts("abc", &shapes).contains(&"abc".to_owned()), "the text itself");
    }

    #[test]
    fn nothing_is_near_to_what_is_no_text_of_an_id() {
        assert!(near_texts("", &[]).is_empty());
        assert!(near_texts(&"a".repeat(256), &[]).is_empty());
        assert_eq!(near_texts("é", &[vec![2]]), Vec::<String>::new());
    }
}
