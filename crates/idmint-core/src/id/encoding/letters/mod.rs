//! Tools for the letters in the text of an id: alphabets, sets of letters, hyphenated groups and
//! regular expressions.

mod alphabet;
mod letter_groups;
mod letter_set;
mod pattern;

pub(super) use alphabet::{Alphabet, Letters, Places};
pub(super) use letter_groups::{grouped_len, spread, ungroup};
pub(in crate::id) use letter_set::LetterSet;
pub(in crate::id) use pattern::escape;
pub(super) use pattern::{letter_class, repeat, repeat_grouped};
