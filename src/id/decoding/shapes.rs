//! What a text looks like that is no id: one of another salt, one whose check is wrong, one with a letter too few or too many, or a
//! KSUID.

use super::decode_filter::DecodeFilter;
use super::decoder::DecoderAt;
use super::near_ids::trim;
use crate::id::encoding::{Encoding, EncodingKind, TEXT_LEN_MAX};
use crate::id::format::Format;
use crate::id::rejection::Rejection;

/// With less evidence it is rather another misspelling.
const BITS_MIN: f64 = -4.0;

/// What KSUIDs are called. They have 160 bits, more than any format here, so that they are known by their shape alone.
pub const KSUID: &str = "ksuid";

/// The greatest KSUID; its letters ascend, so texts compare as numbers do.
const KSUID_MAX: &str = "aWgEPTl1tmebfsQzFP4bxwgy80V";

impl<'a> DecoderAt<'a> {
    /// The names of formats whose ids this text looks like, though it is none of them, nor [near](DecoderAt::near_ids) to one: in groups between hyphens as
    /// ids of another salt are, an id but for its check, or as long as the canonical text but for a letter that is missing, or one too
    /// many.
    pub fn shaped_like(&self, text: &str, filter: DecodeFilter<'_>) -> Vec<&'a str> {
        let text = trim(text);
        if text.len() > TEXT_LEN_MAX {
            return Vec::new();
        }
        let joined: String = text
            .chars()
            .filter(|letter| !matches!(letter, '-' | ' ' | '_'))
            .collect();
        let formats = self.decoder.formats.iter().filter(|format| {
            let is_near = |encoding: &Encoding| {
                let fails_last = is_of_another_salt(encoding, &[text, &joined])
                    || fails_its_check(encoding, text);
                filter.accepts(format, encoding) && fails_last
            };
            format.encodings.iter().any(is_near) || self.is_a_letter_off(text, format, filter)
        });
        let ksuid = (!filter.is_pinned() && is_ksuid(text)).then_some(KSUID);
        formats
            .map(|format| format.name.as_str())
            .chain(ksuid)
            .collect()
    }

    /// Whether the text is one letter away from a likely id of this format in its canonical encoding.
    fn is_a_letter_off(&self, text: &str, format: &Format, filter: DecodeFilter<'_>) -> bool {
        let encoding = format.canonical();
        let has_both = text.bytes().any(|letter| letter.is_ascii_digit())
            && text.bytes().any(|letter| letter.is_ascii_alphabetic());
        let is_tried = has_both && text.is_ascii() && filter.accepts(format, encoding);
        let Some(len) = encoding.fixed_len().filter(|_| is_tried) else {
            return false;
        };
        let hyphens = encoding.groups().len().saturating_sub(1);
        let letters: String = if hyphens > 0 {
            text.replace('-', "")
        } else {
            text.to_owned()
        };
        let any = char::from(encoding.to_text(0).as_bytes()[0]);
        let is_likely = |candidate: &str| {
            let pinned = DecodeFilter {
                format: Some(&format.name),
                encoding: Some(encoding.name()),
                among: filter.among,
                lenient: false,
            };
            let meant = encoding.lenient_text(candidate);
            let first = meant.and_then(|meant| self.first_of(&meant, pinned));
            first.is_some_and(|first| {
                first.best.is_plausible() && first.best.evidence_bits() >= BITS_MIN
            })
        };
        let places = 0..=letters.len();
        match (letters.len() + hyphens + 1).checked_sub(len) {
            Some(0) => places
                .into_iter()
                .any(|at| is_likely(&format!("{}{any}{}", &letters[..at], &letters[at..]))),
            Some(2) => (0..letters.len())
                .any(|at| is_likely(&format!("{}{}", &letters[..at], &letters[at + 1..]))),
            _ => false,
        }
    }
}

/// Source: the README of segmentio/ksuid. 27 letters by chance of one case alone, or without a digit, are hardly ever one.
fn is_ksuid(text: &str) -> bool {
    let has = |is: fn(&u8) -> bool| text.as_bytes().iter().any(is);
    let has_all =
        has(u8::is_ascii_digit) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    text.len() == KSUID_MAX.len()
        && text <= KSUID_MAX
        && text.bytes().all(|letter| letter.is_ascii_alphanumeric())
        && has_all
}

/// Which letter is wrong, nobody can say: several ids are one letter away, and one of them may be somebody else's.
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
