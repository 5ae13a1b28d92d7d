//! A codec for Hashids, which writes a number of up to 128 bits as a short text of shuffled
//! letters.

use super::definition::Salt;
use super::letters::{
    Alphabet, LetterSet, Letters, Places, grouped_len, letter_class, repeat, repeat_grouped,
    spread, ungroup,
};
use super::parameter::{ParameterError, TEXT_LEN_MAX};
use super::positional::{Radix, split};
use crate::id::rejection::Rejection;

/// The letters that Hashids prefers as separators between two numbers in a text. Letters that the
/// alphabet does not contain are not used.
const SEPARATORS: &str = "cfhistuCFHISTU";

/// A codec that writes one number in letters whose order depends on a salt. Texts are padded to a
/// minimum length, and may be split into hyphenated groups.
///
/// The first letter of a text depends on the number, and selects one of several shuffled alphabets.
/// The digits of the number follow in that alphabet. If the text would be too short, a guard letter
/// is added in front, then another one at the end, and then padding outside the guards. Source:
/// <https://hashids.org>, the reference implementation in JavaScript, which supports numbers up to
/// 2^53.
#[derive(Debug, Clone)]
pub(super) struct Hashids {
    alphabet: Alphabet,
    salt: Salt,
    digits: Vec<u8>,
    separators: Vec<u8>,
    guards: Vec<u8>,
    /// The first letter of a text selects the alphabet of the digits that follow. Entry `n` is the
    /// shuffled alphabet for the first number in a text that begins with the letter `digits[n]`.
    shuffled: Vec<Letters>,
    /// Maps the first letter of a text to its index in `digits`, which selects from `shuffled`.
    first_places: Places,
    /// Entry `n` maps a letter to its position in `shuffled[n]`, which is the digit that the letter
    /// stands for.
    places: Vec<Places>,
    radix: Radix,
    len_min: usize,
    len_max: usize,
    groups: Vec<usize>,
}

impl Hashids {
    /// The default alphabet of the Hashids project.
    pub(super) const ALPHABET: &str =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ1234567890";

    /// Creates a codec for numbers up to `max`. An empty `groups` means no hyphens.
    ///
    /// # Errors
    /// Returns [`ParameterError`] if one of these holds:
    /// - the alphabet has fewer than 16 letters,
    /// - a letter repeats or is not printable ASCII,
    /// - the salt is not ASCII,
    /// - the minimum length exceeds [`TEXT_LEN_MAX`], or
    /// - the groups do not add up to the length of every text.
    pub(super) fn new(
        alphabet: &str,
        salt: &str,
        min_length: usize,
        groups: &[usize],
        max: u128,
    ) -> Result<Self, ParameterError> {
        let alphabet = Alphabet::new(alphabet, 16)?;
        if !salt.is_ascii() {
            let bound =
                "must be ASCII, because implementations of Hashids differ for other characters";
            return ParameterError::refuse("salt", "not ASCII", bound);
        }
        ParameterError::check_min_length(min_length)?;
        let (digits, separators, guards) = split_alphabet(alphabet.letters(), salt.as_bytes());
        let shuffle_for = |first: &u8| {
            let mut letters = [0; 128];
            letters[..digits.len()].copy_from_slice(&digits);
            shuffle_for_number(&mut letters[..digits.len()], *first, salt.as_bytes());
            letters
        };
        let shuffled: Vec<Letters> = digits.iter().map(shuffle_for).collect();
        let radix = Radix::of_letters(&digits);
        let len_min = min_length.max(2);
        let codec = Self {
            first_places: Places::of(&digits),
            places: shuffled
                .iter()
                .map(|letters| Places::of(&letters[..digits.len()]))
                .collect(),
            shuffled,
            len_max: len_min.max(1 + radix.len(max)),
            groups: groups.to_vec(),
            alphabet,
            salt: salt.into(),
            digits,
            separators,
            guards,
            radix,
            len_min,
        };
        codec.check_groups()?;
        Ok(codec)
    }

    fn check_groups(&self) -> Result<(), ParameterError> {
        if self.groups.is_empty() {
            return Ok(());
        }
        let groups = || format!("{:?}", self.groups);
        let refuse = |bound: String| ParameterError::refuse("groups", groups(), bound);
        if self.alphabet.digit(b'-').is_some() {
            return refuse("must be left out if the alphabet has a hyphen".to_owned());
        }
        let len_max = self.len_max;
        if self.len_min != len_max {
            return refuse(format!(
                "must be left out unless min_length is {len_max} or more"
            ));
        }
        let mut groups = self.groups.iter();
        let letters = groups.try_fold(0, |sum: usize, group| sum.checked_add(*group));
        if self.groups.contains(&0) || letters != Some(self.len_max) {
            return refuse(format!("must add up to {len_max} letters"));
        }
        Ok(())
    }

    /// Returns the length in bytes of the text for the number `value`. A greater number never has a
    /// shorter text.
    pub(super) fn len(&self, value: u128) -> usize {
        if self.groups.is_empty() {
            self.text_len(&[value])
        } else {
            grouped_len(&self.groups)
        }
    }

    /// Writes the text for the number `value` to `out`, which must have exactly `len(value)` bytes.
    pub(super) fn write(&self, value: u128, out: &mut [u8]) {
        if self.groups.is_empty() {
            return self.write_numbers(&[value], out);
        }
        self.write_numbers(&[value], &mut out[..self.len_max]);
        spread(&self.groups, out);
    }

    /// Parses a text as a number.
    ///
    /// # Errors
    /// Returns the first error that applies, in this order: [`Rejection::WrongLength`] (not
    /// counting hyphens between groups), [`Rejection::BadAlphabet`], [`Rejection::BadGrouping`],
    /// [`Rejection::OutOfRange`] above 128 bits, [`Rejection::NonCanonical`],
    /// [`Rejection::NotSingleNumber`] unless the text holds exactly one number.
    pub(super) fn read(&self, text: &str) -> Result<u128, Rejection> {
        let ungrouped;
        let letters = if self.groups.is_empty() {
            let len_max = self.fixed_len().unwrap_or(TEXT_LEN_MAX);
            if !(self.len_min..=len_max).contains(&text.chars().count()) {
                return Err(Rejection::WrongLength);
            }
            self.alphabet.check_letters(text)?;
            text
        } else {
            ungrouped = ungroup(&self.groups, text, |letters| {
                self.alphabet.check_letters(letters)
            })?;
            &ungrouped
        };
        let numbers = self.numbers(letters.as_bytes())?;
        // A text with a wrong first letter, padding or guard can still decode to valid numbers. So
        // write the numbers again, and accept the text only if the result is the same text.
        let mut canonical = vec![0; self.text_len(&numbers)];
        self.write_numbers(&numbers, &mut canonical);
        if canonical != letters.as_bytes() {
            return Err(Rejection::NonCanonical);
        }
        match numbers[..] {
            [value] => Ok(value),
            _ => Err(Rejection::NotSingleNumber),
        }
    }

    /// Parses a text like [`read`](Self::read), but returns `None` instead of the reason for a
    /// failure.
    pub(super) fn value(&self, text: &str) -> Option<u128> {
        let can_be_padded = text.len() == self.len_min && self.len_min > 2;
        if can_be_padded || self.fixed_len().is_some() || text.len() > TEXT_LEN_MAX {
            return self.read(text).ok();
        }
        // A Hashids text without padding consists of a first letter, which depends on the number,
        // and the digits of the number.
        let (first, digits) = text.as_bytes().split_first()?;
        let place = usize::from(self.first_places.of_letter(*first)?);
        let number = self
            .radix
            .number_of_letters(digits, |letter| self.places[place].of_letter(letter))?;
        let is_canonical = fingerprint(&[number]) % self.digits.len() == place
            && self.text_len(&[number]) == text.len();
        is_canonical.then_some(number)
    }

    /// Returns the number of letters in each group of a hyphenated text, or an empty slice if texts
    /// have no hyphens.
    pub(super) fn groups(&self) -> &[usize] {
        &self.groups
    }

    /// Returns the length in bytes that all texts have, or `None` if texts differ in length.
    pub(super) fn fixed_len(&self) -> Option<usize> {
        if !self.groups.is_empty() {
            return Some(grouped_len(&self.groups));
        }
        (self.text_len(&[0]) == self.len_max).then_some(self.len_max)
    }

    /// Returns the letters that texts of this codec can contain.
    pub(super) fn letters(&self) -> LetterSet {
        let hyphen: &[u8] = if self.groups.is_empty() { b"" } else { b"-" };
        LetterSet::of(self.alphabet.letters()).with(LetterSet::of(hyphen))
    }

    /// Returns a regular expression that accepts every text of this codec, and refuses texts with
    /// other lengths or letters. The expression is anchored at both ends.
    pub(super) fn pattern(&self) -> String {
        // A single number's text has no separators, but may have guards, which bound the padding.
        let class = letter_class(&[self.digits.as_slice(), &self.guards].concat());
        if self.groups.is_empty() {
            format!("^{class}{}$", repeat(self.len_min, self.len_max))
        } else {
            format!("^{}$", repeat_grouped(&class, &self.groups))
        }
    }

    fn text_len(&self, numbers: &[u128]) -> usize {
        self.radix.list_len(numbers).max(self.len_min)
    }

    fn write_numbers(&self, numbers: &[u128], out: &mut [u8]) {
        // The core has the first letter, digits, and separators between numbers. If the core is
        // shorter than `out`, it gets a guard letter in front, then one behind, and then padding
        // outside the guards.
        let core_len = self.radix.list_len(numbers);
        let missing = out.len() - core_len;
        let (guards, padding) = (missing.min(2), missing.saturating_sub(2));
        let core_start = self.padding_before(padding) + usize::from(guards > 0);
        let core_end = core_start + core_len;

        let fingerprint = fingerprint(numbers);
        let first = fingerprint % self.digits.len();
        out[core_start] = self.digits[first];
        let mut letters = self.shuffled[first];
        let mut at = core_start + 1;
        for (place, number) in numbers.iter().enumerate() {
            if place > 0 {
                let previous = numbers[place - 1];
                let previous_start = at - self.radix.len(previous);
                let modulus = u64::from(out[previous_start])
                    + u64::try_from(place - 1).expect("at most 255 letters");
                let separator =
                    usize::try_from(split(previous, modulus).1).expect("below the modulus");
                out[at] = self.separators[separator % self.separators.len()];
                at += 1;
                shuffle_for_number(
                    &mut letters[..self.digits.len()],
                    self.digits[first],
                    self.salt.as_str().as_bytes(),
                );
            }
            let end = at + self.radix.len(*number);
            self.radix
                .write_shuffled(*number, &letters, &mut out[at..end]);
            at = end;
        }

        if guards > 0 {
            out[core_start - 1] =
                self.guards[(fingerprint + usize::from(out[core_start])) % self.guards.len()];
        }
        if guards > 1 {
            out[core_end] =
                self.guards[(fingerprint + usize::from(out[core_start + 1])) % self.guards.len()];
            self.pad(&mut letters, core_start - 1, core_end + 1, out);
        }
    }

    /// Returns how many of the `padding` letters precede the text's first guard, which bounds them.
    ///
    /// Padding is added in rounds. Each round adds all digit letters once, in a new order. The last
    /// round is trimmed on both sides.
    fn padding_before(&self, padding: usize) -> usize {
        let round = self.digits.len();
        let rounds = padding.div_ceil(round);
        rounds * (round - round / 2) - (rounds * round - padding) / 2
    }

    /// Pads `out` before `start` and after `end`. `start..end` already contains the text and its
    /// guards, the letters that separate it from the padding.
    ///
    /// Each round shuffles the letters, adds the right half of the letters in front of the text,
    /// and adds the left half after the text.
    fn pad(&self, letters: &mut Letters, mut start: usize, mut end: usize, out: &mut [u8]) {
        let round = self.digits.len();
        while start > 0 || end < out.len() {
            let salt = *letters;
            shuffle(&mut letters[..round], &salt[..round]);
            let (behind, before) = letters[..round].split_at(round / 2);
            let before = &before[before.len() - before.len().min(start)..];
            let behind = &behind[..behind.len().min(out.len() - end)];
            out[start - before.len()..start].copy_from_slice(before);
            out[end..end + behind.len()].copy_from_slice(behind);
            start -= before.len();
            end += behind.len();
        }
    }

    /// Decodes a text into the numbers that it contains, without checking that writing these
    /// numbers gives the same text.
    fn numbers(&self, text: &[u8]) -> Result<Vec<u128>, Rejection> {
        let parts: Vec<&[u8]> = text.split(|letter| self.guards.contains(letter)).collect();
        let core = match parts[..] {
            [_, core] | [_, core, _] => core,
            _ => parts[0],
        };
        let (first, core) = core.split_first().ok_or(Rejection::NonCanonical)?;
        let place = self.digits.iter().position(|letter| letter == first);
        let place = place.ok_or(Rejection::NonCanonical)?;
        let mut letters = self.shuffled[place];
        let letters = &mut letters[..self.digits.len()];
        let mut numbers = Vec::new();
        for digits in core.split(|letter| self.separators.contains(letter)) {
            if digits.is_empty() {
                return Err(Rejection::NonCanonical);
            }
            if !numbers.is_empty() {
                shuffle_for_number(letters, *first, self.salt.as_str().as_bytes());
            }
            let number = self
                .radix
                .number_in(letters, digits, Rejection::NonCanonical);
            numbers.push(number?);
        }
        Ok(numbers)
    }
}

/// Returns a value that depends on all `numbers` of a text. The value selects the first letter of
/// the text, and helps to select the guard letters that enclose the core of a text that would be
/// too short.
fn fingerprint(numbers: &[u128]) -> usize {
    let sum: u64 = numbers
        .iter()
        .zip(100..)
        .map(|(number, modulus)| split(*number, modulus).1)
        .sum();
    usize::try_from(sum).expect("a small sum")
}

/// Splits an alphabet into digits, separators between numbers, and guards next to padding.
fn split_alphabet(alphabet: &[u8], salt: &[u8]) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let mut separators: Vec<u8> = SEPARATORS
        .bytes()
        .filter(|letter| alphabet.contains(letter))
        .collect();
    let mut digits: Vec<u8> = alphabet
        .iter()
        .copied()
        .filter(|letter| !separators.contains(letter))
        .collect();
    shuffle(&mut separators, salt);
    // The Hashids project wants at most 3.5 digit letters for each separator. If the alphabet has
    // too few separators, turn digit letters into separators.
    let wanted = (2 * digits.len()).div_ceil(7);
    if wanted > separators.len() {
        separators.extend(digits.drain(..wanted - separators.len()));
    }
    shuffle(&mut digits, salt);
    let guards = digits.len().div_ceil(12);
    let guards = if digits.len() < 3 {
        separators.drain(..guards)
    } else {
        digits.drain(..guards)
    }
    .collect();
    (digits, separators, guards)
}

/// Shuffles the alphabet in which the next number of a text is written as digits. The new order
/// depends on the first letter of the text, on the salt and on the current order.
fn shuffle_for_number(letters: &mut [u8], first: u8, salt: &[u8]) {
    let all: Vec<u8> = [first]
        .iter()
        .chain(salt)
        .chain(letters.iter())
        .copied()
        .take(letters.len())
        .collect();
    shuffle(letters, &all);
}

/// Shuffles the letters with the algorithm that the Hashids project defines. The same salt always
/// gives the same order.
fn shuffle(letters: &mut [u8], salt: &[u8]) {
    if salt.is_empty() {
        return;
    }
    let mut sum = 0;
    for (step, last) in (1..letters.len()).rev().enumerate() {
        let place = step % salt.len();
        let code = usize::from(salt[place]);
        sum += code;
        letters.swap(last, (code + place + sum) % last);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::id::encoding::codec::Codec;
    use crate::id::encoding::vectors;

    const A_TO_Z: &str = "abcdefghijklmnopqrstuvwxyz";

    fn conjunction() -> Codec {
        Codec::Hashids(
            Hashids::new(A_TO_Z, "", 20, &[7, 7, 6], (1 << 77) - 1)
                .expect("the conjunction's short form"),
        )
    }

    fn of_row(row: &Value) -> Codec {
        let alphabet = row["alphabet"]
            .as_str()
            .filter(|name| *name != "default")
            .unwrap_or(Hashids::ALPHABET);
        let salt = row["salt"].as_str().expect("a salt");
        let min_length = row["min_length"]
            .as_u64()
            .and_then(|len| usize::try_from(len).ok())
            .expect("a length");
        Codec::Hashids(
            Hashids::new(alphabet, salt, min_length, &[], u128::MAX).expect("published parameters"),
        )
    }

    #[test]
    fn a_conjunction_is_read_from_its_groups() {
        let codec = Hashids::new(
            "abcdefghijklmnopqrstuvwxyz",
            "",
            20,
            &[7, 7, 6],
            (1 << 77) - 1,
        )
        .expect("a valid parameter");
        assert_eq!(
            codec.read("zwwqlzz-pjjmxmd-lkpvwq"),
            Ok(30025386125795551919250)
        );
    }

    #[test]
    fn published_conjunctions_hold_both_ways() {
        assert_eq!(
            vectors::check_valid(&conjunction(), "conjunction", "short", |row| row["layout"]
                == "v2"),
            28
        );
    }

    #[test]
    fn published_short_forms_of_the_first_layout_hold_both_ways() {
        let mut checked = 0;
        for row in vectors::rows("conjunction", "valid") {
            for short in row["encodings"]["short"].as_array().into_iter().flatten() {
                if short["scheme"] == "hashids" {
                    let text = short["value"].as_str().expect("a text");
                    vectors::check(&of_row(short), vectors::number(&row), text);
                    checked += 1;
                }
            }
        }
        assert_eq!(checked, 28);
    }

    #[test]
    fn published_texts_of_several_numbers_are_not_one_id() {
        for row in vectors::rows("conjunction", "hashids") {
            let text = row["value"].as_str().expect("a text");
            let numbers = row["numbers"].as_array().expect("numbers");
            if let [number] = &numbers[..] {
                vectors::check(
                    &of_row(&row),
                    number
                        .as_str()
                        .and_then(|n| n.parse().ok())
                        .expect("a number"),
                    text,
                );
            } else {
                assert_eq!(
                    of_row(&row).read(text),
                    Err(Rejection::NotSingleNumber),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn published_rejections_hold() {
        // The test vectors refuse a number above 77 bits, because ids of this format have only 77
        // bits. The codec itself accepts such a number, so the row is skipped.
        let short = |row: &Value| row["operation"] == "decode_short";
        assert_eq!(
            vectors::check_invalid(&conjunction(), "conjunction", |row| short(row)
                && row["reason"] != "out_of_range"),
            22
        );
        for row in vectors::rows("conjunction", "invalid") {
            if short(&row) && row["reason"] == "out_of_range" {
                let value = conjunction()
                    .read(row["input"].as_str().expect("a text"))
                    .expect("canonical");
                assert!(value >> 77 > 0);
            }
        }
    }

    #[test]
    fn groups_that_do_not_hold_every_text_are_refused() {
        let with_groups = |groups: &[usize], min_length| {
            Hashids::new(A_TO_Z, "", min_length, groups, (1 << 77) - 1)
        };
        assert!(with_groups(&[7, 7, 6], 20).is_ok());
        assert!(with_groups(&[7, 7, 7], 20).is_err());
        assert!(with_groups(&[7, 7, 6, 0], 20).is_err());
        assert!(with_groups(&[7, 7], 14).is_err());
        assert!(with_groups(&[usize::MAX, 21], 20).is_err());
        assert!(Hashids::new("abcdefghijklmnop-", "", 60, &[30, 30], 1).is_err());
    }

    proptest! {
        #![proptest_config(vectors::same_cases_every_time())]

        #[test]
        fn below_64_bits_texts_are_those_of_the_harsh_crate(
            value: u64, cut in 0_u32..64, salt in "[ -~]{0,80}", min_length in 0_usize..120,
            alphabet in vectors::some_letters(Hashids::ALPHABET, 16),
        ) {
            let value = value >> cut;
            let ours = Codec::Hashids(Hashids::new(&alphabet, &salt, min_length, &[], u128::MAX).expect("valid"));
            let theirs = harsh::Harsh::builder().alphabet(alphabet.as_str()).salt(salt.as_str()).length(min_length);
            let theirs = theirs.build().expect("valid");
            let text = vectors::text_of(&ours, value.into());
            prop_assert_eq!(&text, &theirs.encode(&[value]));
            prop_assert_eq!(ours.read(&text), Ok(value.into()));
            let several = theirs.encode(&[value, value / 3, 7]);
            let is_of_length = ours.fixed_len().is_none_or(|len| len == several.len());
            let rejection = if is_of_length { Rejection::NotSingleNumber } else { Rejection::WrongLength };
            prop_assert_eq!(ours.read(&several), Err(rejection));
        }

        #[test]
        fn a_changed_letter_is_rejected_or_another_id(
            value: u128, cut in 51_u32..128, at in 0_usize..20, letter in 0_usize..26,
        ) {
            let codec = conjunction();
            let mut text = vectors::text_of(&codec, value >> cut).into_bytes();
            text[at] = A_TO_Z.as_bytes()[letter];
            let text = String::from_utf8(text).expect("ASCII");
            if let Ok(value) = codec.read(&text) {
                prop_assert_eq!(vectors::text_of(&codec, value), text);
            }
        }
    }
}
