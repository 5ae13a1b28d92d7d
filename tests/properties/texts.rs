//! Whatever text comes, no reading of it panics, and what is read spells back to exactly that text.
//!
//! Drawn by hand and not by proptest: ten million texts take seconds. A text is the same in every run, whatever the
//! number of threads; the one that was being read is shown when its reading panics.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{array, panic, thread};

use idmint::id::{DecodeFilter, Decoder, Encoding, Format, FormatDefinition, Rejection};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use regex_lite::Regex;

use crate::NOW;
use crate::any_id::any_id;
use crate::laws::{DECODER, ENCODINGS};

const TEXTS: u64 = 10_000_000;
/// Each begins with its own seed.
const BLOCKS: u64 = 1_000;
/// One text of so many is read in every encoding of every format and held against the pattern, the others only in the
/// encoding they are made for.
const ONE_IN: u32 = 64;
const HUGE_LEN: usize = 200_000;

/// A format with every kind of encoding, also those that no other has.
static EVERY_KIND: LazyLock<Format> = LazyLock::new(|| {
    let grouped =
        r#"{ kind = "hashids", name = "grouped", min_length = 30, groups = [10, 10, 10] }"#;
    let stripped = r#"{ kind = "b32l", name = "stripped", bytes = 20, strip = true }"#;
    let text = format!(
        "summary = 'any'\nrule = 'decode-only'\nfields = [{{ name = 'n', kind = 'object', bits = 122 }}]\n\
         encodings = [{}, {grouped}, {stripped}]",
        ENCODINGS.join(", ")
    );
    FormatDefinition::from_toml("every-kind", &text)
        .unwrap()
        .compile("every-kind")
        .unwrap()
});

/// Characters that look like others, or become them when somebody means well: what changes case by Unicode's rules,
/// digits of other scripts, invisible ones, controls, and the ends of what UTF-8 spells in one to four bytes.
const FOREIGN: &str = "\u{212a}\u{17f}\u{131}\u{130}\u{ff10}\u{ff19}\u{ff21}\u{ff41}\u{660}\u{966}\u{430}\u{41e}\u{3bf}\
    \u{2010}\u{2212}\u{ad}\u{200b}\u{feff}\u{a0}\u{0}\n\r\t -_=%\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}";

/// One encoding of one format, and what texts for it are made of.
pub(crate) struct Target<'a> {
    pub(crate) format: &'a Format,
    pub(crate) encoding: &'a Encoding,
    /// Ids of the format in this encoding.
    valid: [String; 64],
    /// Every letter in those.
    letters: Vec<u8>,
    pattern: Regex,
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

    /// One for each encoding of these formats.
    pub(crate) fn all_of(
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

    /// Writes a text that this encoding has to do with: an id with a few mistakes, or letters in a row, or anything.
    pub(crate) fn draw(&self, random: &mut StdRng, text: &mut String) {
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

    /// One mistake somewhere in the text.
    fn spoil(&self, random: &mut StdRng, text: &mut String) {
        let places = text.char_indices().count();
        let at = text
            .char_indices()
            .nth(random.random_range(0..=places))
            .map(|(at, _)| at);
        let Some(at) = at else {
            // At the end there is nothing to change, only something to add.
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

/// A character that means the same to a person, or that Unicode's rules turn into this one.
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

/// Another case of the letter, where it has one.
fn other_case(letter: char) -> char {
    if letter.is_ascii_lowercase() {
        letter.to_ascii_uppercase()
    } else {
        letter.to_ascii_lowercase()
    }
}

/// Shows the text when its reading panics: the panic cannot know it.
struct Reading<'a>(&'a str);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!(
                "while reading {:?}",
                self.0.chars().take(300).collect::<String>()
            );
        }
    }
}

/// What is read matches the pattern; what has another length or a letter too many does not.
fn assert_pattern(target: &Target<'_>, text: &str) {
    let is_match = target.pattern.is_match(text);
    match target.encoding.read(text) {
        Ok(_) => assert!(is_match, "{} refuses {text:?}", target.pattern),
        Err(Rejection::WrongLength | Rejection::BadAlphabet | Rejection::BadPrefix) => {
            assert!(!is_match, "{} accepts {text:?}", target.pattern);
        }
        Err(_) => {}
    }
}

/// Whether this encoding of this format reads the text; what it reads must spell back.
fn is_read(format: &Format, encoding: &Encoding, text: &str) -> bool {
    let Ok(id) = encoding.read(text) else {
        return false;
    };
    assert_eq!(
        encoding.to_text(id),
        text,
        "{} of {}",
        encoding.name(),
        format.name
    );
    format.split(id).is_ok()
}

/// The same with every encoding of every format; how many of them read it.
fn readings(decoder: &Decoder, text: &str) -> usize {
    let decoder = decoder.at(NOW);
    let decoded = decoder.decode(text, DecodeFilter::default());
    for found in &decoded.matches {
        let (encoding, prefix) = (found.encoding(), &text[..found.prefix_len()]);
        assert_eq!(
            format!("{prefix}{}", encoding.to_text(found.id())),
            text,
            "{} of {}",
            encoding.name(),
            found.format().name
        );
        assert_eq!(found.format().split(found.id()), Ok(found.parts()));
    }
    decoded.matches.len()
}

/// Reads the texts of one block: how many came, and how many were ids.
fn read_block(targets: &[Target<'_>], block: u64) -> (u64, u64) {
    let (mut random, mut text, mut read) = (StdRng::seed_from_u64(block), String::new(), 0);
    for _ in 0..TEXTS / BLOCKS {
        let target = &targets[random.random_range(0..targets.len())];
        target.draw(&mut random, &mut text);
        let _shown = Reading(&text);
        read += u64::from(is_read(target.format, target.encoding, &text));
        if random.random_ratio(1, ONE_IN) {
            readings(&DECODER, &text);
            assert_pattern(target, &text);
        }
    }
    (TEXTS / BLOCKS, read)
}

#[test]
fn ten_million_texts_are_read_or_refused_without_a_panic() {
    let formats = DECODER
        .formats()
        .iter()
        .map(|format| &**format)
        .chain([&*EVERY_KIND]);
    let (targets, next) = (
        Target::all_of(formats, &mut StdRng::seed_from_u64(0)),
        AtomicU64::new(0),
    );
    let read_blocks = || {
        // Relaxed: each number is taken once, and nothing else is passed on by it.
        let blocks = std::iter::from_fn(|| {
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|block| *block < BLOCKS)
        });
        blocks
            .map(|block| read_block(&targets, block))
            .fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
    };
    let counts = thread::scope(|scope| {
        let threads = [scope.spawn(read_blocks), scope.spawn(read_blocks)];
        threads.map(|thread| {
            thread
                .join()
                .unwrap_or_else(|panicked| panic::resume_unwind(panicked))
        })
    });
    let [texts, read] = [counts[0].0 + counts[1].0, counts[0].1 + counts[1].1];
    assert_eq!(texts, TEXTS);
    // Not all are nonsense, and not all are right.
    assert!(
        (TEXTS / 10..TEXTS / 2).contains(&read),
        "{read} of {texts} were ids"
    );
    println!(
        "{texts} texts in {} encodings, {read} of them ids",
        targets.len()
    );
}

#[test]
fn every_text_of_up_to_two_bytes_is_read_or_refused_without_a_panic() {
    let ascii = || (0..128_u8).map(char::from);
    let pairs = ascii().flat_map(|first| ascii().map(move |second| format!("{first}{second}")));
    let in_two_bytes = ('\u{80}'..='\u{7ff}').map(String::from);
    let texts = [String::new()]
        .into_iter()
        .chain(ascii().map(String::from))
        .chain(pairs)
        .chain(in_two_bytes);
    let mut ids = 0;
    let count = texts
        .map(|text| {
            let _shown = Reading(&text);
            ids += readings(&DECODER, &text);
            ids += EVERY_KIND
                .encodings
                .iter()
                .filter(|encoding| is_read(&EVERY_KIND, encoding, &text))
                .count();
        })
        .count();
    assert_eq!(count, 1 + 128 + 128 * 128 + 1_920);
    assert!(ids > 1_000, "small numbers are ids in some encoding: {ids}");
}
