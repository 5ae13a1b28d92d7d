//! Finds the ids that a caller may have meant by a text that has quotes, letters in the wrong case,
//! or no hyphens.
//!
//! Lenient reading and suggestions share one search. Each encoding derives at most one text from
//! the given text ([`Encoding::lenient_text`](crate::id::Encoding)), and these texts are ranked
//! like readings. If that search finds no id, suggestions also remove the characters that surround
//! an id in a sentence, and then the separators within the id.

use std::borrow::Cow;

use super::decode_filter::{DecodeFilter, Liberty};
use super::decoder::{AMBIGUOUS_BITS, DecoderAt, Match};
use super::encoding_groups::Member;
use super::evidence::bits_of_text;
use super::first_match::FirstMatch;
use super::spelling::BITS_OF_OTHER_ENCODING;
use crate::id::encoding::{EncodingKind, LetterSet, TEXT_LEN_MAX};
use crate::id::format::{Format, Rule};

/// The minimum evidence, in bits, for a suggested text whose letters differ from the given text.
/// With less evidence, the given text is probably not a misspelled id. The minimum does not apply
/// to negative numbers, or if only characters around the id, such as quotes, were removed.
const BITS_MIN_OF_OTHER_LETTERS: f64 = -4.0;

/// The lead, in bits, that a suggested id needs over an id with another number. With a smaller or
/// equal lead, the caller may have meant either id. The lead includes the evidence against a
/// non-canonical encoding, so an uncommon encoding alone does not rule out the other id.
const BITS_OF_OTHER_NUMBER: f64 = AMBIGUOUS_BITS + BITS_OF_OTHER_ENCODING;

/// The maximum number of suggestions.
const SUGGESTED_MAX: usize = 4;

/// The quotes and braces that lenient reading removes around an id.
const QUOTES: [char; 11] = [
    '"', '\'', '`', '\u{201c}', '\u{201d}', '\u{201e}', '\u{2018}', '\u{2019}', '\u{201a}', '{',
    '}',
];

/// Characters that may surround an id in a sentence, a log line or a line of code. The search for
/// suggestions removes them.
const AROUND: [char; 9] = ['<', '>', '(', ')', '[', ']', ',', ';', '.'];
const BRACKETS: [char; 8] = ['<', '>', '(', ')', '[', ']', ',', ';'];

/// The minimum length of a Crockford or hexadecimal id that mixes upper and lower case. A shorter
/// text that mixes both cases is more likely an id in base 62.
const MIXED_LEN_MIN: usize = 20;

/// The minimum number of hexadecimal digits that must follow `0x`, `\x` or `X'` in a text that is
/// read as an id.
const HEX_LEN_MIN: usize = 8;
const SEPARATORS: [char; 6] = ['-', '_', ' ', ':', '.', ','];

/// An id that the caller may have meant.
#[derive(Debug)]
pub struct NearId<'a> {
    /// The text that the caller may have meant.
    pub text: String,
    /// The best reading of `text`.
    pub found: Match<'a>,
    /// How improbable this id is, in bits. The suggestion with the smallest number is the
    /// likeliest.
    id_bits: f64,
}

impl NearId<'_> {
    /// `true` if the caller may have meant `id` instead of this suggested id. The numbers then
    /// differ, and `id` is at most [`BITS_OF_OTHER_NUMBER`] bits less likely. `id_bits` is the
    /// evidence against `id`.
    fn has_rival(&self, id: u128, id_bits: f64) -> bool {
        id != self.found.id() && id_bits - self.id_bits <= BITS_OF_OTHER_NUMBER
    }
}

impl<'a> DecoderAt<'a> {
    /// Returns the ids that the caller may have meant. Call this function for a text that is not an
    /// id, or only an unlikely one.
    ///
    /// The result has at most four ids, the likeliest first. Their texts differ from `text` only in
    /// the ways that [`lenient_text`](DecoderAt::lenient_text) lists. If no such id exists, the
    /// search also removes the characters around an id in a sentence, and then the separators. If
    /// `text` looks like an id with another salt or with wrong check digits, the result contains
    /// only ids whose text is part of `text`, because any other suggestion would be a guess.
    pub fn near_ids(&self, text: &str, filter: DecodeFilter<'_>) -> Vec<NearId<'a>> {
        let core = &unwrapped(text);
        let in_a_sentence =
            core.trim_matches(|letter: char| is_around(letter) || AROUND.contains(&letter));
        let joined: String = in_a_sentence
            .chars()
            .filter(|letter| !SEPARATORS.contains(letter))
            .collect();
        let mut near = self.read_leniently(core, text, filter, Liberty::Lenient);
        if near.is_empty() && in_a_sentence != core {
            near = self.read_leniently(in_a_sentence, text, filter, Liberty::Lenient);
        }
        if near.is_empty() && joined != in_a_sentence {
            near = self.read_leniently(&joined, text, filter, Liberty::Lenient);
        }
        if !near.is_empty() && self.has_exact_shape(core, filter) {
            near.retain(|near| text.contains(&near.text));
        }
        near.truncate(SUGGESTED_MAX);
        near
    }

    /// Returns only the texts of the ids that [`near_ids`](DecoderAt::near_ids) returns.
    pub fn did_you_mean(&self, text: &str, filter: DecodeFilter<'_>) -> Vec<String> {
        self.near_ids(text, filter)
            .into_iter()
            .map(|near| near.text)
            .collect()
    }

    /// Returns the text of the id that the caller meant, if that text differs from `text` only in
    /// the ways listed below.
    ///
    /// The permitted differences are whitespace, a byte order mark, quotes, brackets, braces,
    /// commas and semicolons around the id, the case of letters, `I`, `L` and `O` in Crockford's
    /// base 32, missing hyphens, `urn:uuid:`, `ObjectId("…")`, `UUID("…")`, `{"$oid":"…"}`, `0x…`,
    /// `\x…`, `X'…'`, and a minus sign before a decimal number of 64 bits.
    ///
    /// If the text without the characters around it is an id with a plausible time, returns that
    /// text, because these characters say nothing about the id.
    ///
    /// Returns `None` if `text` is an id already and its time is plausible. Also returns `None` if
    /// `text` is not an id even when read leniently, if the other text is only another text of the
    /// same id, or if another number has nearly as much evidence.
    pub fn lenient_text(&self, text: &str, filter: DecodeFilter<'_>) -> Option<String> {
        self.text_with(text, filter, Liberty::Lenient)
    }

    /// Returns the text of the id that the caller meant, if that text differs from `text` only in
    /// ways that [`DecodeFilter::liberty`] permits.
    ///
    /// Returns `None` in the same cases as [`lenient_text`](DecoderAt::lenient_text), and if no
    /// differences are permitted.
    pub fn meant_text(&self, text: &str, filter: DecodeFilter<'_>) -> Option<String> {
        match filter.liberty {
            Liberty::Canonical => None,
            liberty => self.text_with(text, filter, liberty),
        }
    }

    fn text_with(&self, text: &str, filter: DecodeFilter<'_>, liberty: Liberty) -> Option<String> {
        let is_read = |first: &FirstMatch<'_>| first.is_told && first.best.is_plausible();
        let as_given = self.first_of(text, filter);
        if as_given.as_ref().is_some_and(is_read) {
            return None;
        }
        let bare = without_wrapping(text);
        if liberty == Liberty::Lenient
            && bare != text
            && self.first_of(bare, filter).as_ref().is_some_and(is_read)
        {
            return Some(bare.to_owned());
        }
        let core = match liberty {
            Liberty::Lenient => unwrapped(text),
            _ => Cow::Borrowed(text),
        };
        let near = self.read_leniently(&core, text, filter, liberty);
        let mut near = near.into_iter();
        let meant = near.next()?;
        if !text.contains(&meant.text) && self.has_exact_shape(trim(text), filter) {
            return None;
        }
        let is_same_id = |first: &FirstMatch<'_>| {
            let place = |found: &Match<'_>| (found.format_index(), found.id());
            first.is_told && place(&first.best) == place(&meant.found)
        };
        if as_given.as_ref().is_some_and(is_same_id) {
            return None;
        }
        let of_given =
            as_given.map(|first| (first.best.id(), bits_of(text) - first.best.evidence_bits()));
        let of_others = near.map(|other| (other.found.id(), other.id_bits));
        if of_given
            .into_iter()
            .chain(of_others)
            .any(|(id, bits)| meant.has_rival(id, bits))
        {
            return None;
        }
        let is_of_two_numbers = || {
            let of_text = bits_of(&meant.text);
            let readings = self.decode(&meant.text, filter).matches;
            readings
                .iter()
                .any(|found| meant.has_rival(found.id(), of_text - found.evidence_bits()))
        };
        if is_of_two_numbers() {
            None
        } else {
            Some(meant.text)
        }
    }

    /// Returns the ids that `text` can stand for if small differences are permitted, such as in
    /// letter case. An id whose text is `given` is left out. Each number occurs once, and the
    /// likeliest id comes first.
    fn read_leniently(
        &self,
        text: &str,
        given: &str,
        filter: DecodeFilter<'_>,
        liberty: Liberty,
    ) -> Vec<NearId<'a>> {
        let mut near: Vec<NearId<'a>> = Vec::new();
        if text.len() > TEXT_LEN_MAX {
            return near;
        }
        let decoder = self.decoder;
        for (at, group) in decoder.groups.all().iter().enumerate() {
            // The encodings of a group differ only in the greatest number that they can write, so
            // the encoding with the longest text can stand for all of them.
            let members = group.select(&decoder.formats, filter);
            let longest = members.max_by_key(|member| member.of(&decoder.formats).len_max());
            let Some(member) = longest else { continue };
            let Some(meant) = member.of(&decoder.formats).lenient_text(text) else {
                continue;
            };
            let is_specified = || {
                let mut members = group.select(&decoder.formats, filter);
                meant.eq_ignore_ascii_case(text)
                    && members
                        .any(|member| is_in_any_case(member, &decoder.formats[member.format], text))
            };
            if liberty == Liberty::Specified && !is_specified() {
                continue;
            }
            let text = meant;
            if text == given || near.iter().any(|other| other.text == text) {
                continue;
            }
            // Lenient Crockford base 32 reads `I` and `O` as the digits 1 and 0. In base 36, they
            // are digits of their own, so a base-36 reading of the new text would be another id.
            // Therefore accept only readings in the encodings for which the text was changed.
            near.extend(self.near_id(text, given, filter, |found| {
                found.prefix_len() == 0
                    && decoder.groups.of_format(found.format_index())[found.encoding_index()] == at
            }));
        }
        for member in decoder.groups.behind_prefixes() {
            if liberty == Liberty::Specified {
                break;
            }
            let format = &decoder.formats[member.format];
            let meant = format.prefixes.lenient_text(text, format.canonical());
            let Some(text) = meant.filter(|_| filter.accepts(format, format.canonical())) else {
                continue;
            };
            if text != given && near.iter().all(|other| other.text != text) {
                near.extend(self.near_id(text, given, filter, |found| found.prefix_len() > 0));
            }
        }
        let place = |near: &NearId<'_>| (near.found.format_index(), near.found.encoding_index());
        near.sort_by(|one, other| {
            one.id_bits
                .total_cmp(&other.id_bits)
                .then(place(one).cmp(&place(other)))
        });
        let mut numbers = Vec::new();
        near.retain(|near| {
            let is_new = !numbers.contains(&near.found.id());
            numbers.push(near.found.id());
            is_new
        });
        near
    }

    /// Reads `text`, made from the text `given` by a correction for one encoding. Returns `None` if
    /// the best reading is not likely enough, or is refused by `is_as_made`, which checks that the
    /// reading has the encoding or prefix for which the correction was made.
    fn near_id(
        &self,
        text: String,
        given: &str,
        filter: DecodeFilter<'_>,
        is_as_made: impl Fn(&Match<'_>) -> bool,
    ) -> Option<NearId<'a>> {
        let first = self.first_of(&text, filter)?;
        let (found, id_bits) = (first.best, bits_of(&text) - first.best.evidence_bits());
        let is_enough = given.contains(&text)
            || unsigned(given).is_some()
            || found.evidence_bits() >= BITS_MIN_OF_OTHER_LETTERS;
        let is_near = filter.is_pinned() || first.is_told && found.is_plausible() && is_enough;
        (is_near && is_as_made(&found)).then_some(NearId {
            text,
            found,
            id_bits,
        })
    }
}

/// `true` if the specification of the encoding of `member` permits the letter case of `text`.
fn is_in_any_case(member: Member, format: &Format, text: &str) -> bool {
    let has = |is: fn(&u8) -> bool| text.as_bytes().iter().any(is);
    let is_of_one_case = !(has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase));
    // A short text in mixed case is more likely base 62 than a Crockford or hexadecimal id.
    let is_canonical = member.encoding == 0 && (is_of_one_case || text.len() >= MIXED_LEN_MIN);
    match format.encodings[member.encoding].definition().kind {
        EncodingKind::Uuid | EncodingKind::Uuid8 => true,
        // The specification of TypeIDs permits only lower case.
        EncodingKind::Crockford => is_canonical && !format.prefixes.are_types(),
        EncodingKind::HexPadded => is_canonical && format.rule == Rule::DecodeOnly,
        _ => false,
    }
}

fn is_around(letter: char) -> bool {
    letter.is_whitespace() || letter == '\u{feff}' || QUOTES.contains(&letter)
}

fn is_wrapping(letter: char) -> bool {
    is_around(letter) || BRACKETS.contains(&letter)
}

/// Returns the text without the whitespace, quotes, brackets, braces, commas and semicolons around
/// it.
pub(in crate::id) fn without_wrapping(text: &str) -> &str {
    text.trim_matches(is_wrapping)
}

/// Returns the text without the characters and notation around an id, such as `ObjectId("…")`. A
/// negative decimal of 64 bits becomes the unsigned number with the same bits.
pub(super) fn unwrapped(text: &str) -> Cow<'_, str> {
    let core = without_wrapping(text);
    let rest_of = |prefix: &str| {
        let (head, rest) = core.split_at_checked(prefix.len())?;
        let rest = rest.trim_matches(|letter| is_wrapping(letter) || letter == ':');
        head.eq_ignore_ascii_case(prefix).then_some(rest)
    };
    let calls = ["ObjectId(", "UUID(", "$oid"];
    let hexadecimal = ["0x", "\\x", "x'"];
    let is_hexadecimal = |rest: &&str| {
        rest.len() >= HEX_LEN_MIN && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let rest = calls.into_iter().find_map(rest_of);
    let in_notation = || {
        hexadecimal
            .into_iter()
            .find_map(rest_of)
            .filter(is_hexadecimal)
    };
    match (rest.or_else(in_notation), unsigned(core)) {
        (Some(rest), _) => Cow::Borrowed(rest),
        (None, Some(number)) => Cow::Owned(number.to_string()),
        (None, None) => Cow::Borrowed(core),
    }
}

/// Parses a negative decimal of 64 bits as the unsigned number with the same bits, such as `-1` as
/// 2^64 - 1. Returns `None` for any other text.
pub(super) fn unsigned(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('-')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number: i64 = text.parse().ok().filter(|_| is_number)?;
    Some(number.cast_unsigned())
}

/// Returns the text without the whitespace, quotes and braces around it.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(is_around)
}

fn bits_of(text: &str) -> f64 {
    bits_of_text(text, LetterSet::of(text.as_bytes()))
}
