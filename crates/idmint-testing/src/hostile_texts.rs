//! Generates texts that are almost ids. Some letters are wrong, missing, or replaced by similar
//! ones.

use std::array;

use idmint_core::id::{Encoding, Format};
use rand::RngExt;
use rand::rngs::StdRng;
use regex_lite::Regex;

use crate::any_id::any_id;

/// Characters that look like other characters, or are easily converted to them.
///
/// The list includes case mappings of Unicode, digits of other scripts, invisible characters,
/// control characters, and the boundaries of UTF-8 sequences of one to four bytes.
const FOREIGN: &str = "\u{212a}\u{17f}\u{131}\u{130}\u{ff10}\u{ff19}\u{ff21}\u{ff41}\u{660}\u{966}\u{430}\u{41e}\u{3bf}\
    \u{2010}\u{2212}\u{ad}\u{200b}\u{feff}\u{a0}\u{0}\n\r\t -_=%\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}";

const HUGE_LEN: usize = 200_000;

/// An encoding of a format. Texts that are almost ids are generated from its valid texts and its
/// letters.
pub struct Target<'a> {
    pub format: &'a Format,
    pub encoding: &'a Encoding,
    /// Valid texts in this encoding.
    valid: [String; 64],
    /// All letters that occur in these texts.
    letters: Vec<u8>,
    /// The pattern that idmint publishes for this encoding.
    pub pattern: Regex,
}

impl<'a> Target<'a> {
    fn new(format: &'a Format, encoding: &'a Encoding, random: &mut StdRng) -> Target<'a> {
        let valid: [String; 64] = array::from_fn(|_| encoding.to_text(any_id(format, random)));
        let mut letters: Vec<u8> = valid.iter().flat_map(|text| text.bytes()).collect();
        letters.sort_unstable();
        letters.dedup();
        Target {
            format,
            encoding,
            valid,
            letters,
            pattern: Regex::new(&encoding.pattern()).unwrap(),
        }
    }

    /// Returns a target for each encoding of these formats.
    pub fn all_of(
        formats: impl Iterator<Item = &'a Format>,
        random: &mut StdRng,
    ) -> Vec<Target<'a>> {
        let encodings = formats.flat_map(|format| {
            format
                .encodings
                .iter()
                .map(move |encoding| (format, encoding))
        });
        encodings
            .map(|(format, encoding)| Target::new(format, encoding, random))
            .collect()
    }

    fn letter(&self, random: &mut StdRng) -> char {
        char::from(self.letters[random.random_range(0..self.letters.len())])
    }

    /// Generates a text: an id with a few mistakes, a sequence of letters of the encoding, or any
    /// other text.
    pub fn draw(&self, random: &mut StdRng, text: &mut String) {
        text.clear();
        let valid = &self.valid[random.random_range(0..self.valid.len())];
        match random.random_range(0..100) {
            0..10 => {
                let len = (valid.len() + random.random_range(0..5)).saturating_sub(2);
                text.extend((0..len).map(|_| self.letter(random)));
            }
            10..20 => text.extend((0..random.random_range(0..40)).map(|_| random.random::<char>())),
            20..25 => {
                text.extend(
                    (0..random.random_range(0..60))
                        .map(|_| char::from(random.random_range(b' '..=b'~'))),
                );
            }
            _ => {
                text.push_str(valid);
                for _ in 0..random.random_range(0..3) {
                    self.spoil(random, text);
                }
            }
        }
        if random.random_ratio(1, 100_000) {
            let piece = if text.is_empty() {
                "0".to_owned()
            } else {
                text.clone()
            };
            while text.len() < HUGE_LEN {
                text.push_str(&piece);
            }
        }
    }

    /// Makes one mistake at a random position in the text.
    fn spoil(&self, random: &mut StdRng, text: &mut String) {
        let places = text.char_indices().count();
        let at = text
            .char_indices()
            .nth(random.random_range(0..=places))
            .map(|(at, _)| at);
        let Some(at) = at else {
            // At the end of the text, a mistake can only add a character.
            return text.push(if random.random() {
                self.letter(random)
            } else {
                foreign(random)
            });
        };
        let there = text[at..].chars().next().expect("a character begins here");
        let replacement = match random.random_range(0..9) {
            0 => return text.insert(at, self.letter(random)),
            1 => return text.insert(at, there),
            2 => return text.insert(at, foreign(random)),
            3 => {
                text.remove(at);
                return;
            }
            4 => return text.truncate(at),
            5 => other_case(there),
            6 => lookalike(there),
            7 => foreign(random),
            _ => self.letter(random),
        };
        text.replace_range(
            at..at + there.len_utf8(),
            replacement.encode_utf8(&mut [0; 4]),
        );
    }
}

fn foreign(random: &mut StdRng) -> char {
    FOREIGN
        .chars()
        .nth(random.random_range(0..FOREIGN.chars().count()))
        .expect("within")
}

/// Returns a character that looks like this one to people, or that Unicode maps to it.
fn lookalike(letter: char) -> char {
    match letter {
        'K' | 'k' => '\u{212a}',
        'S' | 's' => '\u{17f}',
        'I' | 'i' => '\u{131}',
        '!'..='~' => char::from_u32(u32::from(letter) + 0xfee0)
            .expect("the full-width forms stand in one row"),
        _ => '0',
    }
}

/// Converts lower-case ASCII letters to upper case, and other letters to lower case.
fn other_case(letter: char) -> char {
    if letter.is_ascii_lowercase() {
        letter.to_ascii_uppercase()
    } else {
        letter.to_ascii_lowercase()
    }
}
