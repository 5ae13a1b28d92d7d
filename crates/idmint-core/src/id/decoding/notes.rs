//! Notes about texts that another program has probably damaged. A note never changes which id is
//! read from the text.

use super::decode_filter::DecodeFilter;
use super::decoder::{DecoderAt, Match};
use super::near_ids::{unsigned, without_wrapping};
use crate::id::layout::FieldKind;
use crate::named;

/// The smallest number that gets a note about lost digits. From 2^59 on, a 64-bit floating-point
/// number can hold at most one integer in 128 exactly, so an integer that it holds exactly is
/// suspicious.
const ROUNDED_FROM: u64 = 1 << 59;

/// The number of sequence values in a tick of Snowflake ids, which hold the sequence in the lowest
/// 12 bits. The first id of a tick usually has sequence 0, so the id is a multiple of 4096. A
/// floating-point number holds such an id exactly, so the id may look rounded although no digits
/// were lost.
const FIRST_OF_TICK: u64 = 1 << 12;

/// The number of significant bits in a 64-bit floating-point number.
const KEPT_BITS: u32 = 53;

/// The number of significant digits that a spreadsheet keeps.
const SPREADSHEET_DIGITS: u32 = 15;

/// A note that a text has probably been damaged by another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The kind of damage that the note is about.
    pub kind: NoteKind,
    /// A sentence for people that describes the damage.
    pub detail: String,
}

named! {
    /// The kind of damage that a note is about.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum NoteKind {
        /// The last digits of a number were lost when it was stored as a floating-point number.
        DigitsLost = "digits-lost",
        /// The number is in scientific notation, as spreadsheets write large numbers.
        Spreadsheet = "spreadsheet",
        /// The bytes of a UUID are in a non-standard order, as in databases such as SQL Server.
        ByteOrder = "byte-order",
        /// The number is negative, probably because an unsigned number was read as a signed one.
        Sign = "sign",
    }
}

impl DecoderAt<'_> {
    /// Returns notes about probable damage to a text. Quotes, brackets and commas around the text
    /// are ignored. `first` is the best reading of the text as an id, or `None` if the text has no
    /// reading.
    pub fn notes(&self, text: &str, first: Option<&Match<'_>>) -> Vec<Note> {
        let text = without_wrapping(text);
        let digits_lost = rounded(text)
            .filter(|number| *number >= ROUNDED_FROM && !number.is_multiple_of(FIRST_OF_TICK))
            .map(|number| {
                let (least, greatest) = range_of(number);
                note(
                    NoteKind::DigitsLost,
                    format!("the number looks rounded, as by JavaScript or a spreadsheet: the original may be \
                        any number from {least} to {greatest}"),
                )
            });
        let sign = unsigned(text).map(|number| {
            note(
                NoteKind::Sign,
                format!(
                    "the number is negative: read as an unsigned 64-bit number, it is {number}"
                ),
            )
        });
        let notes = [
            digits_lost,
            spreadsheet(text),
            sign,
            self.byte_order(text, first),
        ];
        notes.into_iter().flatten().collect()
    }

    /// Returns a note if the text is a UUID whose time is plausible only after its bytes are
    /// reordered.
    fn byte_order(&self, text: &str, first: Option<&Match<'_>>) -> Option<Note> {
        let has_plausible_time = |found: &Match<'_>| {
            let layout = found.parts().layout;
            found.is_plausible() && layout.field_of(FieldKind::Time).is_some()
        };
        if text.len() != 36 || !text.is_ascii() || first.is_some_and(has_plausible_time) {
            return None;
        }
        let mut groups = text.split('-');
        let [a, b, c, d, e] = std::array::from_fn(|_| groups.next().unwrap_or_default());
        if [a, b, c, d, e].map(str::len) != [8, 4, 4, 4, 12] {
            return None;
        }
        let reversed = |group: &str| -> String {
            let bytes = (0..group.len()).step_by(2).rev();
            bytes.map(|at| &group[at..at + 2]).collect()
        };
        let dot_net = || format!("{}-{}-{}-{d}-{e}", reversed(a), reversed(b), reversed(c));
        let mysql = || format!("{b}{c}-{}-{}-{d}-{e}", &a[4..], &a[..4]);
        let is_timed = |group: &str, at: usize| matches!(group.as_bytes()[at], b'1' | b'6' | b'7');
        let swapped = [
            is_timed(c, 2).then(|| (dot_net(), ".NET and SQL Server write")),
            is_timed(a, 0).then(|| (mysql(), "UUID_TO_BIN(…, 1) of MySQL writes")),
        ];
        swapped.into_iter().flatten().find_map(|(text, writer)| {
            let text = text.to_ascii_lowercase();
            let found = self.best(&text, DecodeFilter::default())?;
            let name = found.format().name.as_str();
            let is_uuid = matches!(name, "uuid1" | "uuid6" | "uuid7");
            (is_uuid && has_plausible_time(&found)).then(|| {
                note(
                    NoteKind::ByteOrder,
                    format!("the bytes seem to be in the order that {writer}: in the standard order, the UUID \
                        is {text}, a {name}"),
                )
            })
        })
    }
}

fn note(kind: NoteKind, detail: String) -> Note {
    Note { kind, detail }
}

/// Returns the note about a column whose large numbers were all rounded to floating-point numbers.
/// `rounded` is the number of these large numbers.
pub(in crate::id) fn lost_digits_note(rounded: u64) -> Note {
    note(
        NoteKind::DigitsLost,
        format!(
            "all {rounded} large numbers look rounded, as by JavaScript or a spreadsheet: their last digits \
             are lost"
        ),
    )
}

/// Returns the number in a decimal text if the number may have been rounded to a floating-point
/// number. Such a number has more than 53 bits. It ends in `0`, because programs print zeros for
/// the digits that were lost. Conversion to a floating-point number and back gives the same text.
pub(in crate::id) fn rounded(text: &str) -> Option<u64> {
    let number = large_number(text)?;
    #[allow(clippy::cast_precision_loss, reason = "the lost digits are looked for")]
    let is_rounded = text.ends_with('0') && (number as f64).to_string() == text;
    is_rounded.then_some(number)
}

/// Returns the number of a decimal text if it has more than 53 bits, so that a floating-point
/// number may not hold it exactly.
pub(in crate::id) fn large_number(text: &str) -> Option<u64> {
    let is_number = text.len() > 15 && text.bytes().all(|digit| digit.is_ascii_digit());
    let number: u64 = text.parse().ok().filter(|_| is_number)?;
    (number >> KEPT_BITS > 0).then_some(number)
}

/// Returns the number of low bits that are lost when a number of this size becomes a 64-bit
/// floating-point number. With 60 bits, 7 are lost, so one such number in 2^7 keeps its value.
pub(in crate::id) fn bits_of_rounded(number: u64) -> u32 {
    (u64::BITS - number.leading_zeros()).saturating_sub(KEPT_BITS)
}

/// Returns the least and the greatest number that rounding may have turned into the text of
/// `number`. A number is rounded to a floating-point number, or to 15 digits by a spreadsheet or
/// another program.
///
/// JavaScript prints as few digits as identify the floating-point number, and then zeros. The text
/// can therefore differ from the floating-point number, which is the middle of the range. For
/// example, the text 1573542482933710800 stands for 1573542482933710848.
///
/// A spreadsheet writes zeros instead of the digits after the 15th, so it makes a number of 19
/// digits smaller by up to 9999. Other programs round to the nearest number with 15 digits.
fn range_of(number: u64) -> (u64, u64) {
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the text is the one of this floating-point number, and 2^64 becomes `u64::MAX`"
    )]
    let float = number as f64 as u64;
    let half = (1 << bits_of_rounded(float)) / 2;
    let (least, greatest) = (float - half, float.saturating_add(half));
    let unit = 10_u64.pow((number.ilog10() + 1).saturating_sub(SPREADSHEET_DIGITS));
    match number.is_multiple_of(unit) {
        true => (
            least.min(number - unit / 2),
            greatest.max(number.saturating_add(unit - 1)),
        ),
        false => (least, greatest),
    }
}

/// Returns a note if the text is a number in scientific notation, such as `1.57354E+18`.
fn spreadsheet(text: &str) -> Option<Note> {
    let (mantissa, exponent) = text.split_once(['E', 'e'])?;
    let exponent: u32 = exponent
        .strip_prefix('+')
        .unwrap_or(exponent)
        .parse()
        .ok()?;
    let (whole, decimals) = mantissa.split_once(['.', ',']).unwrap_or((mantissa, ""));
    let are_digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    let is_number = whole.len() == 1 && are_digits(whole) && are_digits(decimals);
    let lost = exponent.checked_sub(u32::try_from(decimals.len()).ok()?)?;
    if !is_number || !(9..=38).contains(&exponent) || lost == 0 {
        return None;
    }
    let digits: u128 = format!("{whole}{decimals}").parse().ok()?;
    let unit = 10_u128.checked_pow(lost)?;
    let number = digits.checked_mul(unit)?;
    let (least, greatest) = (number.checked_sub(unit / 2)?, number.checked_add(unit / 2)?);
    Some(note(
        NoteKind::Spreadsheet,
        format!(
            "a spreadsheet has rounded the number: the original is a number from {least} to {greatest}"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::id::{Decoder, preset};
    use crate::time::UnixNanos;

    fn notes(text: &str) -> Vec<(&'static str, String)> {
        let names = ["snowflake", "twitter", "uuid1", "uuid4", "uuid7", "ulid"];
        let formats = names.map(|name| Arc::new(preset(name))).to_vec();
        let decoder = Decoder::new(formats);
        let decoder = decoder.at(UnixNanos::from_seconds(1_800_000_000));
        let first = decoder.best(text, DecodeFilter::default());
        let notes = decoder.notes(text, first.as_ref()).into_iter();
        notes.map(|note| (note.kind.name(), note.detail)).collect()
    }

    #[test]
    fn a_damaged_text_gets_a_note() {
        for (text, kind, detail) in [
            (
                "1573542482933710800",
                "digits-lost",
                "1573542482933710720 to 1573542482933710976",
            ),
            (
                "1573542482933710000",
                "digits-lost",
                "1573542482933705000 to 1573542482933719999",
            ),
            (
                "18446744073709500000",
                "digits-lost",
                "18446744073709450000 to 18446744073709551615",
            ),
            (
                "1.57354E+18",
                "spreadsheet",
                "1573535000000000000 to 1573545000000000000",
            ),
            ("1,57354e18", "spreadsheet", "1573535000000000000 to"),
            ("-8646911284551352320", "sign", "9799832789158199296"),
            (
                "cc4b9001-2ef3-0972-a817-17d9356c5c98",
                "byte-order",
                "01904bcc-f32e-7209-a817-17d9356c5c98",
            ),
            (
                "11e8c266-98fa-4fc8-9ab6-0242c7bc9d97",
                "byte-order",
                "98fa4fc8-c266-11e8-9ab6-0242c7bc9d97",
            ),
        ] {
            let notes = notes(text);
            assert_eq!(notes.len(), 1, "{text}: {notes:?}");
            assert_eq!(notes[0].0, kind, "{text}: {notes:?}");
            assert!(notes[0].1.contains(detail), "{text}: {notes:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        #[allow(clippy::cast_precision_loss, reason = "the test rounds as JavaScript does")]
        fn the_range_contains_the_id_that_javascript_has_rounded(id in 1_u64 << 60..1 << 63) {
            let text = (id as f64).to_string();
            let (least, greatest) = range_of(text.parse().expect("at most 2^63"));
            prop_assert!((least..=greatest).contains(&id), "{id}, printed as {text}");
        }
    }

    #[test]
    fn wrapping_does_not_change_the_notes() {
        for text in ["1573542482933710800", "1.57354E+18", "-8646911284551352320"] {
            for (before, after) in [
                (" ", ""),
                ("\"", "\""),
                ("", ","),
                ("[", "]"),
                ("\"", "\","),
            ] {
                let wrapped = format!("{before}{text}{after}");
                assert_eq!(notes(&wrapped), notes(text), "{wrapped}");
            }
        }
    }

    #[test]
    fn a_sound_text_gets_no_note() {
        for text in [
            "1573542482933710864",
            "157354248293371000",
            "1000000",
            "01904bcc-f32e-7209-a817-17d9356c5c98",
            "98fa4fc8-c266-11e8-9ab6-0242c7bc9d97",
            "919108f7-52d1-4320-9bac-f847db4148a8",
            "-P7To9rM64JI2aOmu0P1",
            "1e5",
            "",
        ] {
            assert_eq!(notes(text), [], "{text}");
        }
    }
}
