//! The ids that somebody may have meant who copied one with a quote, in the other case, or without its hyphens.
//!
//! What is read leniently and what is suggested come from one search: each encoding makes at most one text of what was given
//! ([`Encoding::lenient_text`](crate::id::Encoding)), and the texts are ranked as readings are. Suggestions go further, to what stands around an id
//! in a sentence and to other separators, but only where the closed list of liberties leads nowhere.

use super::decode_filter::DecodeFilter;
use super::decoder::{AMBIGUOUS_BITS, DecoderAt, Match};
use super::evidence::bits_of_text;
use crate::id::encoding::{LetterSet, TEXT_LEN_MAX};

/// A text of other letters than were given is with less evidence rather another misspelling. One that was only taken out of
/// its quotes counts as it would without them.
const BITS_MIN_OF_OTHER_LETTERS: f64 = -4.0;

/// More suggestions are none.
const SUGGESTED_MAX: usize = 4;

/// What may stand around an id that is read leniently, beside blanks.
const QUOTES: [char; 11] = [
    '"', '\'', '`', '\u{201c}', '\u{201d}', '\u{201e}', '\u{2018}', '\u{2019}', '\u{201a}', '{',
    '}',
];

/// What may also stand around an id in a sentence, a log line or a line of code.
const AROUND: [char; 9] = ['<', '>', '(', ')', '[', ']', ',', ';', '.'];
const SEPARATORS: [char; 6] = ['-', '_', ' ', ':', '.', ','];

/// An id that somebody may have meant.
#[derive(Debug)]
pub struct NearId<'a> {
    /// Its text.
    pub text: String,
    /// The best reading of that text.
    pub found: Match<'a>,
    /// Whether the best reading has a rival.
    is_ambiguous: bool,
    /// The bits of an id of its format: the fewer, the likelier it is among others that the same text may mean.
    id_bits: f64,
}

impl NearId<'_> {
    /// Whether another number is nearly as likely.
    fn has_rival(&self, id: u128, id_bits: f64) -> bool {
        id != self.found.id() && id_bits - self.id_bits <= AMBIGUOUS_BITS
    }
}

impl<'a> DecoderAt<'a> {
    /// The ids that somebody may have meant with a text that is none, or hardly one: at most four, the likeliest first.
    /// They differ from it only by what is [read leniently](DecoderAt::lenient_text), or else by what stands around it in a
    /// sentence, or by other separators.
    pub fn near_ids(&self, text: &str, filter: DecodeFilter<'_>) -> Vec<NearId<'a>> {
        let core = trim(text);
        let in_a_sentence =
            core.trim_matches(|letter: char| is_around(letter) || AROUND.contains(&letter));
        let joined: String = in_a_sentence
            .chars()
            .filter(|letter| !SEPARATORS.contains(letter))
            .collect();
        let mut near = Vec::new();
        for meant in [core, in_a_sentence, &joined] {
            near = self.read_leniently(meant, text, filter);
            if !near.is_empty() {
                break;
            }
        }
        near.truncate(SUGGESTED_MAX);
        near
    }

    /// The texts of [`near_ids`](DecoderAt::near_ids).
    pub fn did_you_mean(&self, text: &str, filter: DecodeFilter<'_>) -> Vec<String> {
        self.near_ids(text, filter)
            .into_iter()
            .map(|near| near.text)
            .collect()
    }

    /// The one text of an encoding that somebody meant with this one, if it differs by nothing but blanks, quotes and braces
    /// around it, the case of letters that have one, `I`, `L` and `O` in Crockford's base 32, missing hyphens, and `urn:uuid:`.
    ///
    /// `None` where the text is an id as it is and of a time that can be, where it is none either way, and where another
    /// number has nearly as much evidence.
    pub fn lenient_text(&self, text: &str, filter: DecodeFilter<'_>) -> Option<String> {
        let as_given = self.first_of(text, filter);
        if as_given
            .as_ref()
            .is_some_and(|first| first.is_told && first.best.is_plausible())
        {
            return None;
        }
        let mut near = self.read_leniently(trim(text), text, filter).into_iter();
        let meant = near.next()?;
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
        if meant.is_ambiguous && is_of_two_numbers() {
            None
        } else {
            Some(meant.text)
        }
    }

    /// What each encoding makes of `text` that is not `given`: one text for a number, the likeliest first.
    fn read_leniently(&self, text: &str, given: &str, filter: DecodeFilter<'_>) -> Vec<NearId<'a>> {
        let mut near: Vec<NearId<'a>> = Vec::new();
        if text.len() > TEXT_LEN_MAX {
            return near;
        }
        let decoder = self.decoder;
        for (at, group) in decoder.groups.all().iter().enumerate() {
            // They read alike, but for the greatest number and so the longest text that each has.
            let members = group.select(&decoder.formats, filter);
            let longest = members.max_by_key(|member| member.of(&decoder.formats).len_max());
            let Some(member) = longest else { continue };
            let Some(text) = member.of(&decoder.formats).lenient_text(text) else {
                continue;
            };
            if text == given || near.iter().any(|other| other.text == text) {
                continue;
            }
            // What Crockford's base 32 makes of a text may be one of base 36, which has an I and an O of its own.
            near.extend(self.near_id(text, given, filter, |found| {
                found.prefix_len() == 0
                    && decoder.groups.of_format(found.format_index())[found.encoding_index()] == at
            }));
        }
        for member in decoder.groups.behind_prefixes() {
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

    /// What `text` is, which was made of `given`, if that is enough and read the way it was made.
    fn near_id(
        &self,
        text: String,
        given: &str,
        filter: DecodeFilter<'_>,
        is_as_made: impl Fn(&Match<'_>) -> bool,
    ) -> Option<NearId<'a>> {
        let first = self.first_of(&text, filter)?;
        let (found, id_bits) = (first.best, bits_of(&text) - first.best.evidence_bits());
        let is_enough = given.contains(&text) || found.evidence_bits() >= BITS_MIN_OF_OTHER_LETTERS;
        let is_near = filter.is_pinned() || first.is_told && found.is_plausible() && is_enough;
        (is_near && is_as_made(&found)).then_some(NearId {
            text,
            found,
            is_ambiguous: first.is_ambiguous,
            id_bits,
        })
    }
}

fn is_around(letter: char) -> bool {
    letter.is_whitespace() || QUOTES.contains(&letter)
}

/// The text without the blanks, quotes and braces around it.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(is_around)
}

fn bits_of(text: &str) -> f64 {
    bits_of_text(text, LetterSet::of(text.as_bytes()))
}
