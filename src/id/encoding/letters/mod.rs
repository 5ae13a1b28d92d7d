//! The letters that texts are made of: in which order, which of them, in which groups, and as a regular expression.

mod alphabet;
mod letter_groups;
mod letter_set;
mod pattern;
mod places;

pub(super) use alphabet::{Alphabet, Letters};
pub(super) use letter_groups::{grouped_len, spread, ungroup};
pub(in crate::id) use letter_set::LetterSet;
pub(in crate::id) use pattern::escape;
pub(super) use pattern::{letter_class, repeat, repeat_grouped};
pub(super) use places::Places;
