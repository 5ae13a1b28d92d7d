//! Recognises texts that look like an id but are not one: KSUIDs, ids made with another salt, ids
//! with wrong check digits, and ids with a missing or extra letter.

use std::collections::HashMap;

use super::decode_filter::{DecodeFilter, Liberty};
use super::decoder::DecoderAt;
use super::encoding_groups::Member;
use super::given_text::GivenText;
use super::near_ids::trim;
use crate::id::encoding::{Encoding, EncodingKind, TEXT_LEN_MAX};
use crate::id::format::Format;
use crate::id::rejection::Rejection;

/// The minimum evidence, in bits, for an id that has one letter more or less than the given text.
/// With less, the text is over 16 times likelier as random text, so probably no misspelled id.
const BITS_MIN: f64 = -4.0;

/// The reported name of KSUIDs. A KSUID has 160 bits, more than any format can have, so only its
/// shape is recognised.
pub const KSUID: &str = "ksuid";

/// The greatest KSUID. KSUIDs are numbers in the digits 0-9, A-Z and a-z. These are in ASCII order,
/// so comparing two texts byte by byte compares their numbers.
const KSUID_MAX: &str = "aWgEPTl1tmebfsQzFP4bxwgy80V";

/// A format that a text resembles. The text looks like an id of the format, but is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape<'a> {
    /// The name of the format, or [`KSUID`].
    pub name: &'a str,
    /// `true` if the text may be an id that was made with another salt than the configured one.
    pub has_salt: bool,
}

impl<'a> DecoderAt<'a> {
    /// Returns the formats whose ids this text looks like. Call this function for a text that is
    /// not an id and for which [`near_ids`](DecoderAt::near_ids) has no suggestion.
    ///
    /// A text looks like an id in three cases: it has the hyphenated groups of an id that was made
    /// with another salt, only its check digits are wrong, or it is one letter shorter or longer
    /// than a likely id. The third case counts only if no format fits in the first two. A text that
    /// looks like a KSUID is reported as `KSUID` only, unless the caller named the format or the
    /// encoding.
    pub fn shaped_like(&self, text: &str, filter: DecodeFilter<'_>) -> Vec<Shape<'a>> {
        let text = trim(text);
        if text.len() > TEXT_LEN_MAX {
            return Vec::new();
        }
        if !filter.is_pinned() && is_ksuid(text) {
            return vec![Shape {
                name: KSUID,
                has_salt: false,
            }];
        }
        let joined: String = text
            .chars()
            .filter(|letter| !matches!(letter, '-' | ' ' | '_'))
            .collect();
        let fitting = self.fitting(&[text, &joined], filter);
        if !fitting.is_empty() {
            return fitting;
        }
        // The text may be an id with one letter too few or too many. Formats whose canonical
        // encodings belong to one group share the list of the possible ids.
        let mut a_letter_off: HashMap<usize, Vec<(String, u128)>> = HashMap::new();
        let formats = self.decoder.formats.iter().enumerate();
        formats
            .filter(|(at, format)| {
                let group = self.decoder.groups.of_format(*at)[0];
                let ids = a_letter_off
                    .entry(group)
                    .or_insert_with(|| ids_a_letter_off(text, format.canonical()));
                filter.accepts(format, format.canonical()) && self.is_likely_id(*at, ids)
            })
            .map(|(_, format)| Shape {
                name: &format.name,
                has_salt: false,
            })
            .collect()
    }

    /// `true` if the alphabet, the hyphenated groups and the length of a text fit a format, but the
    /// text was written with another salt or has wrong check digits.
    pub(super) fn has_exact_shape(&self, text: &str, filter: DecodeFilter<'_>) -> bool {
        text.len() <= TEXT_LEN_MAX && !self.fitting(&[text], filter).is_empty()
    }

    /// Returns the formats for which one of `texts` looks like an id with another salt, or for
    /// which only the check digits of the first text are wrong.
    fn fitting(&self, texts: &[&str], filter: DecodeFilter<'_>) -> Vec<Shape<'a>> {
        let shape = |format: &'a Format| {
            let mut accepted = format
                .encodings
                .iter()
                .filter(|encoding| filter.accepts(format, encoding));
            let has_salt = accepted
                .clone()
                .any(|encoding| is_of_another_salt(encoding, texts));
            let is_fitting =
                has_salt || accepted.any(|encoding| fails_its_check(encoding, texts[0]));
            is_fitting.then_some(Shape {
                name: &format.name,
                has_salt,
            })
        };
        let formats = self.decoder.formats.iter();
        formats.filter_map(|format| shape(format)).collect()
    }

    /// `true` if at least one of `ids` is a likely id of this format in its canonical encoding.
    /// Each item of `ids` is a text and its number.
    fn is_likely_id(&self, format: usize, ids: &[(String, u128)]) -> bool {
        let canonical = Member {
            format,
            encoding: 0,
        };
        let filter = DecodeFilter {
            format: Some(&self.decoder.formats[format].name),
            encoding: Some(self.decoder.formats[format].canonical().name()),
            among: None,
            liberty: Liberty::Canonical,
        };
        ids.iter().any(|(text, id)| {
            let found = self.read_as(canonical, *id, GivenText::new(text, filter));
            found.is_ok_and(|found| found.is_plausible() && found.evidence_bits() >= BITS_MIN)
        })
    }
}

/// Returns the ids, each as text and number, that result from removing one letter of `text`, or
/// from inserting a placeholder (the first letter of the text of 0) at any position. Returns no ids
/// unless `text` has both letters and digits and the encoding has a fixed length.
fn ids_a_letter_off(text: &str, encoding: &Encoding) -> Vec<(String, u128)> {
    let has_both = text.bytes().any(|letter| letter.is_ascii_digit())
        && text.bytes().any(|letter| letter.is_ascii_alphabetic());
    let Some(len) = encoding.fixed_len().filter(|_| has_both && text.is_ascii()) else {
        return Vec::new();
    };
    let hyphens = encoding.groups().len().saturating_sub(1);
    let letters: String = if hyphens > 0 {
        text.replace('-', "")
    } else {
        text.to_owned()
    };
    let any = char::from(encoding.to_text(0).as_bytes()[0]);
    let id_of = |candidate: String| {
        #[cfg(test)]
        CANDIDATES.set(CANDIDATES.get() + 1);
        let meant = encoding.lenient_form(&candidate)?;
        let id = encoding.read_unbounded(&meant).ok()?;
        Some((meant, id))
    };
    match (letters.len() + hyphens + 1).checked_sub(len) {
        Some(0) => (0..=letters.len())
            .filter_map(|at| id_of(format!("{}{any}{}", &letters[..at], &letters[at..])))
            .collect(),
        Some(2) => (0..letters.len())
            .filter_map(|at| id_of(format!("{}{}", &letters[..at], &letters[at + 1..])))
            .collect(),
        _ => Vec::new(),
    }
}

/// `true` if the text has the shape of a KSUID. A KSUID must have a digit and letters of both
/// cases, because random KSUIDs almost never lack one of these. Source: the README of
/// segmentio/ksuid.
fn is_ksuid(text: &str) -> bool {
    let has = |is: fn(&u8) -> bool| text.as_bytes().iter().any(is);
    let has_all =
        has(u8::is_ascii_digit) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    text.len() == KSUID_MAX.len()
        && text <= KSUID_MAX
        && text.bytes().all(|letter| letter.is_ascii_alphanumeric())
        && has_all
}

/// `true` if only the check digits of the text are wrong. The text is not corrected, because
/// several ids are one letter away, and one of these may belong to somebody else.
fn fails_its_check(encoding: &Encoding, text: &str) -> bool {
    let form = encoding
        .fixed_len()
        .and_then(|_| encoding.lenient_form(text));
    form.is_some_and(|form| encoding.read_unbounded(&form) == Err(Rejection::WrongCheck))
}

fn is_of_another_salt(encoding: &Encoding, texts: &[&str]) -> bool {
    let is_salted = matches!(
        encoding.definition().kind,
        EncodingKind::Hashids | EncodingKind::Sqids
    );
    let has_form = |text: &&str| {
        let form = encoding.lenient_form(text);
        form.is_some_and(|form| encoding.read_unbounded(&form) == Err(Rejection::NonCanonical))
    };
    is_salted && !encoding.groups().is_empty() && texts.iter().any(has_form)
}

#[cfg(test)]
thread_local! {
    /// The number of candidates that were read on this thread.
    static CANDIDATES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::id::{Decoder, Format, PRESETS};
    use crate::time::UnixNanos;

    #[test]
    fn a_text_of_31_hex_digits_is_completed_once_for_all_formats_of_uuids() {
        let format = |name| Arc::new(Format::built_in(name).expect("a built-in format"));
        let formats = PRESETS.iter().map(|preset| format(preset.name)).collect();
        let decoder = Decoder::new(formats);
        let decoder = decoder.at(UnixNanos::from_seconds(1_800_000_000));
        // The first text is a UUID of version 4 without its last digit. The second text has the
        // bits of the reserved variant, so it resembles the ids of no format.
        for (text, names) in [
            ("f81d4fae7dec41d0a76500a0c91e6bf", ["uuid4"].as_slice()),
            ("f81d4fae7dec01d0076500a0c91e6bf", &[]),
        ] {
            CANDIDATES.set(0);
            let shaped_like = decoder.shaped_like(text, DecodeFilter::default());
            let found: Vec<&str> = shaped_like.iter().map(|shape| shape.name).collect();
            assert_eq!(found, names, "{text}");
            // The missing digit may be at any of 32 places. Each place is tried for two encodings,
            // UUIDs with and without hyphens.
            assert!(CANDIDATES.get() <= 2 * 32, "{}", CANDIDATES.get());
        }
    }
}
