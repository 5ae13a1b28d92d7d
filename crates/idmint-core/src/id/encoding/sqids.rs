//! A codec for Sqids, which writes a number of up to 128 bits as a short text of shuffled letters.

use super::letters::{Alphabet, LetterSet, Letters, Places, letter_class, repeat};
use super::parameter::{ParameterError, TEXT_LEN_MAX};
use super::positional::{Radix, split};
use crate::id::rejection::Rejection;

const DEFAULT_BLOCKLIST: &str = include_str!("../../../sqids-blocklist.txt");

/// A codec that writes one number in letters whose order depends on the number itself. Texts are
/// padded to a minimum length and avoid blocked words.
///
/// The first letter of a text gives the offset by which the alphabet is rotated, and the number's
/// digits in the rotated alphabet follow. If the text would be too short, a separator and padding
/// are added. If the text would contain a blocked word, another offset is used. If every offset
/// gives a blocked word, the first offset is kept, because an id without any text would be worse.
///
/// Source: <https://sqids.org/faq>, the project's specification. The project's implementations
/// support numbers of up to 64 bits, or up to 2^53.
#[derive(Debug, Clone)]
pub(super) struct Sqids {
    alphabet: Alphabet,
    shuffled: Letters,
    /// The position of each letter in `shuffled`.
    places: Places,
    radix: Radix,
    blocklist: Blocklist,
    len_min: usize,
    len_max: usize,
}

impl Sqids {
    /// The default alphabet of the Sqids project.
    pub(super) const ALPHABET: &str =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

    /// Creates a codec for numbers up to `max`. If `blocklist` is `None`, no text may contain a
    /// word of the Sqids project's published list.
    ///
    /// # Errors
    /// Returns [`ParameterError`] in these cases: the alphabet has fewer than 3 letters, a letter
    /// repeats or is not printable ASCII, or the minimum length exceeds [`TEXT_LEN_MAX`].
    pub(super) fn new(
        alphabet: &str,
        min_length: usize,
        blocklist: Option<&[String]>,
        max: u128,
    ) -> Result<Self, ParameterError> {
        let alphabet = Alphabet::new(alphabet, 3)?;
        ParameterError::check_min_length(min_length)?;
        let mut shuffled = *alphabet.table();
        shuffle(&mut shuffled[..alphabet.len()]);
        // One letter of the alphabet is always reserved as the separator, so it is not a digit.
        let radix = Radix::of_letters(&alphabet.letters()[1..]);
        let published = || {
            DEFAULT_BLOCKLIST
                .lines()
                .filter(|line| !line.starts_with('#'))
        };
        let blocklist = match blocklist {
            Some(words) => Blocklist::of_words(words.iter().map(String::as_str), &alphabet),
            None => Blocklist::of_words(published(), &alphabet),
        };
        let len_min = min_length.max(2);
        let len_max = len_min.max(1 + radix.len(max));
        let places = Places::of(&shuffled[..alphabet.len()]);
        Ok(Self {
            alphabet,
            shuffled,
            places,
            radix,
            blocklist,
            len_min,
            len_max,
        })
    }

    /// Returns the length in bytes of the text for the number `value`. A greater number never has a
    /// shorter text.
    pub(super) fn len(&self, value: u128) -> usize {
        self.text_len(&[value])
    }

    /// Writes the text for the number `value` to `out`, which must have exactly `len(value)` bytes.
    pub(super) fn write(&self, value: u128, out: &mut [u8]) {
        self.write_numbers(&[value], out);
    }

    /// Parses a text as a number.
    ///
    /// # Errors
    /// Returns the first error that applies, in this order: [`Rejection::WrongLength`],
    /// [`Rejection::BadAlphabet`], [`Rejection::OutOfRange`] above 128 bits,
    /// [`Rejection::NonCanonical`], [`Rejection::NotSingleNumber`].
    pub(super) fn read(&self, text: &str) -> Result<u128, Rejection> {
        let len_max = self.fixed_len().unwrap_or(TEXT_LEN_MAX);
        if !(self.len_min..=len_max).contains(&text.chars().count()) {
            return Err(Rejection::WrongLength);
        }
        self.alphabet.check_letters(text)?;
        let numbers = self.numbers(text.as_bytes())?;
        // A text with wrong padding, another rotation of the alphabet or a blocked word can still
        // decode to valid numbers. So write the numbers again, and accept the text only if the
        // result is the same text.
        let mut canonical = vec![0; self.text_len(&numbers)];
        self.write_numbers(&numbers, &mut canonical);
        if canonical != text.as_bytes() {
            return Err(Rejection::NonCanonical);
        }
        match numbers[..] {
            [value] => Ok(value),
            _ => Err(Rejection::NotSingleNumber),
        }
    }

    /// Parses a text as a number, like [`read`](Self::read), but returns `None` instead of the
    /// reason for a failure.
    ///
    /// If `is_wanted` returns `false` for the number, this function may also return `None`. It can
    /// then skip the check that the text is canonical, which costs more than decoding.
    pub(super) fn value(&self, text: &str, is_wanted: impl FnOnce(u128) -> bool) -> Option<u128> {
        let can_be_padded = text.len() == self.len_min && self.len_min > 2;
        if can_be_padded || self.fixed_len().is_some() || text.len() > TEXT_LEN_MAX {
            return self.read(text).ok();
        }
        let count = self.alphabet.len();
        let (first, digits) = text.as_bytes().split_first()?;
        let place = usize::from(self.places.of_letter(*first)?);
        // The first letter of a text is at position `place` of the shuffled alphabet. The other
        // letters are digits in the alphabet that is rotated to begin at `place` and then reversed.
        // Position 0 of this alphabet is the separator, so the digits begin at position 1.
        let digit_of = |letter| {
            let back = place + count - 1 - usize::from(self.places.of_letter(letter)?);
            let digit = if back < count { back } else { back - count }.checked_sub(1)?;
            u8::try_from(digit).ok()
        };
        let number = self.radix.number_of_letters(digits, digit_of)?;
        if self.text_len(&[number]) != text.len() || !is_wanted(number) {
            return None;
        }
        let beginning = self.beginning(&[number]);
        let is_first_choice = beginning % count == place;
        let is_blocked = if is_first_choice {
            self.blocklist.blocks(text.as_bytes())
        } else {
            let mut first_choice = [0; TEXT_LEN_MAX];
            let first_choice = &mut first_choice[..text.len()];
            self.write_from(beginning, &[number], first_choice);
            self.blocklist.blocks(first_choice)
        };
        // If the first rotation of the alphabet gives a text with a blocked word, `write` tries the
        // other rotations. `read` checks whether `text` is the one that `write` chooses.
        if is_blocked {
            self.read(text).ok()
        } else {
            is_first_choice.then_some(number)
        }
    }

    /// Returns the length in bytes that all texts have, or `None` if texts differ in length.
    pub(super) fn fixed_len(&self) -> Option<usize> {
        (self.len(0) == self.len_max).then_some(self.len_max)
    }

    /// Returns the letters that texts of this codec can contain.
    pub(super) fn letters(&self) -> LetterSet {
        LetterSet::of(self.alphabet.letters())
    }

    /// Returns a regular expression that accepts every text of this codec, and refuses texts with
    /// other lengths or letters. The expression is anchored at both ends.
    pub(super) fn pattern(&self) -> String {
        format!(
            "^{}{}$",
            letter_class(self.alphabet.letters()),
            repeat(self.len_min, self.len_max)
        )
    }

    fn text_len(&self, numbers: &[u128]) -> usize {
        self.radix.list_len(numbers).max(self.len_min)
    }

    fn write_numbers(&self, numbers: &[u128], out: &mut [u8]) {
        let beginning = self.beginning(numbers);
        for attempt in 0..=self.alphabet.len() {
            self.write_from(beginning + attempt, numbers, out);
            if !self.blocklist.blocks(out) {
                return;
            }
        }
        self.write_from(beginning, numbers, out);
    }

    /// Returns the offset in the alphabet that is tried first for the text of these numbers. If the
    /// text contains a blocked word, the next offsets are tried. The caller must reduce the offset
    /// modulo the alphabet's length.
    fn beginning(&self, numbers: &[u128]) -> usize {
        let letters = u64::try_from(self.alphabet.len()).expect("at most 94 letters");
        let codes = numbers.iter().map(|number| {
            let place = usize::try_from(split(*number, letters).1).expect("a letter's place");
            usize::from(self.shuffled[place])
        });
        numbers.len()
            + codes
                .enumerate()
                .map(|(place, code)| place + code)
                .sum::<usize>()
    }

    fn write_from(&self, beginning: usize, numbers: &[u128], out: &mut [u8]) {
        let count = self.alphabet.len();
        let (mut letters, first) = self.rotate(beginning % count);
        out[0] = first;
        let mut at = 1;
        for (place, number) in numbers.iter().enumerate() {
            if place > 0 {
                out[at] = letters[0];
                at += 1;
                shuffle(&mut letters[..count]);
            }
            let end = at + self.radix.len(*number);
            self.radix
                .write_shuffled(*number, &without_separator(&letters), &mut out[at..end]);
            at = end;
        }
        if at < out.len() {
            out[at] = letters[0];
            for padding in out[at + 1..].chunks_mut(count) {
                shuffle(&mut letters[..count]);
                padding.copy_from_slice(&letters[..padding.len()]);
            }
        }
    }

    /// Rotates the alphabet to start at position `beginning`, and reverses the result. Returns the
    /// reversed alphabet and the letter that was at `beginning`.
    fn rotate(&self, beginning: usize) -> (Letters, u8) {
        let count = self.alphabet.len();
        let mut letters = [0; 128];
        letters[..count].copy_from_slice(&self.shuffled[..count]);
        letters[..count].rotate_left(beginning);
        let first = letters[0];
        letters[..count].reverse();
        (letters, first)
    }

    /// Decodes a text into the numbers that it contains, without checking that writing these
    /// numbers gives the same text.
    fn numbers(&self, text: &[u8]) -> Result<Vec<u128>, Rejection> {
        let count = self.alphabet.len();
        let (first, mut rest) = text.split_first().ok_or(Rejection::WrongLength)?;
        let beginning = self.shuffled[..count]
            .iter()
            .position(|letter| letter == first);
        let (mut letters, _) = self.rotate(beginning.ok_or(Rejection::BadAlphabet)?);
        let mut numbers = Vec::new();
        loop {
            let end = rest.iter().position(|letter| *letter == letters[0]);
            let digits = &rest[..end.unwrap_or(rest.len())];
            if digits.is_empty() {
                // In a Sqids text, two separators in a row, or a separator at the end, mean that no
                // number follows. The remaining letters only pad the text to its minimum length.
                break;
            }
            let (radix, unknown) = (&self.radix, Rejection::BadAlphabet);
            numbers.push(radix.number_in(&letters[1..count], digits, unknown)?);
            let Some(end) = end else { break };
            rest = &rest[end + 1..];
            shuffle(&mut letters[..count]);
        }
        match numbers.is_empty() {
            true => Err(Rejection::NonCanonical),
            false => Ok(numbers),
        }
    }
}

/// Moves the separator, which is the first letter, to the end, so that the letters that represent
/// digits come first.
fn without_separator(letters: &Letters) -> Letters {
    let mut digits = *letters;
    digits.rotate_left(1);
    digits
}

/// Shuffles the letters as the Sqids project defines it.
fn shuffle(letters: &mut [u8]) {
    let count = letters.len();
    for place in 0..count - 1 {
        let opposite = count - 1 - place;
        let target =
            place * opposite + usize::from(letters[place]) + usize::from(letters[opposite]);
        letters.swap(place, target % count);
    }
}

/// The words, in lower case, that no text may contain.
#[derive(Debug, Clone)]
struct Blocklist {
    /// The blocked words in lower case, in one list for each first letter of a word.
    by_first: Vec<Vec<Vec<u8>>>,
    /// For each lower-case first letter, a bit mask of the second letters of the blocked words that
    /// begin with it. Bit `n` stands for the letters whose lowest five bits are `n`.
    seconds: Vec<u32>,
}

impl Blocklist {
    /// Creates a blocklist from `words`. Words of fewer than three bytes, and words with letters
    /// outside the alphabet, are left out.
    fn of_words<'a>(words: impl Iterator<Item = &'a str>, alphabet: &Alphabet) -> Self {
        let known_letters: Vec<u8> = alphabet.letters().to_ascii_lowercase();
        let mut by_first = vec![Vec::new(); 128];
        let mut seconds = vec![0; 128];
        for word in words.map(str::to_lowercase).filter(|word| word.len() >= 3) {
            if word.bytes().all(|byte| known_letters.contains(&byte)) {
                let first = usize::from(word.as_bytes()[0]);
                seconds[first] |= second_bit(word.as_bytes()[1]);
                by_first[first].push(word.into_bytes());
            }
        }
        Self { by_first, seconds }
    }

    /// Returns `true` if `text` contains a blocked word.
    ///
    /// If the text or the word has at most three letters, the word must be the whole text. A word
    /// with digits matches only at the beginning or end of a text, because people do not notice it
    /// in the middle.
    fn blocks(&self, text: &[u8]) -> bool {
        text.windows(2).enumerate().any(|(start, two)| {
            let first = usize::from(two[0].to_ascii_lowercase());
            // At nearly every position, no blocked word begins with the two letters at that
            // position. Looking up these two letters avoids comparing whole words, which would be
            // the most expensive step.
            if self.seconds[first] & second_bit(two[1]) == 0 {
                return false;
            }
            let (rest, words) = (&text[start..], &self.by_first[first]);
            words.iter().any(|word| {
                let begins_here = rest
                    .get(..word.len())
                    .is_some_and(|found| found.eq_ignore_ascii_case(word));
                let is_at_an_end = start == 0 || rest.len() == word.len();
                begins_here
                    && if text.len() <= 3 || word.len() <= 3 {
                        word.len() == text.len()
                    } else {
                        is_at_an_end || !word.iter().any(u8::is_ascii_digit)
                    }
            })
        })
    }
}

/// Returns the mask bit of `letter`, the second letter of a blocked word. The upper and lower case
/// of a letter have the same lowest five bits, so they have the same mask bit.
fn second_bit(letter: u8) -> u32 {
    1 << (letter & 0x1f)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::encoding::codec::Codec;
    use crate::id::encoding::vectors;

    const A_TO_Z: &str = "abcdefghijklmnopqrstuvwxyz";

    fn codec(alphabet: &str, min_length: usize) -> Codec {
        Codec::Sqids(Sqids::new(alphabet, min_length, None, u128::MAX).expect("valid parameters"))
    }

    #[test]
    fn a_published_sqid_is_read() {
        let codec = Sqids::new(Sqids::ALPHABET, 0, None, u128::MAX).expect("a valid parameter");
        assert_eq!(codec.read("oc4T4z50"), Ok(297903953551));
    }

    #[test]
    fn published_texts_hold() {
        for row in vectors::rows("conjunction", "sqids") {
            let alphabet = row["alphabet"]
                .as_str()
                .filter(|name| *name != "default")
                .unwrap_or(Sqids::ALPHABET);
            let codec = codec(alphabet, if row["min_length"] == 20 { 20 } else { 0 });
            let text = row["value"].as_str().expect("a text");
            let numbers = row["numbers"].as_array().expect("numbers");
            if let [number] = &numbers[..] {
                vectors::check(
                    &codec,
                    number
                        .as_str()
                        .and_then(|n| n.parse().ok())
                        .expect("a number"),
                    text,
                );
            } else {
                assert_eq!(codec.read(text), Err(Rejection::NotSingleNumber), "{text}");
            }
        }
    }

    #[test]
    fn published_short_forms_hold_both_ways() {
        let mut checked = 0;
        for row in vectors::rows("conjunction", "valid") {
            for short in row["encodings"]["short"].as_array().into_iter().flatten() {
                if short["scheme"] == "sqids" {
                    let text = short["value"].as_str().expect("a text");
                    vectors::check(&codec(Sqids::ALPHABET, 0), vectors::number(&row), text);
                    checked += 1;
                }
            }
            if let Some(three) = row["encodings"]["sqids_az20"].as_str() {
                assert_eq!(
                    codec(A_TO_Z, 20).read(three),
                    Err(Rejection::NotSingleNumber),
                    "{three}"
                );
            }
        }
        assert_eq!(checked, 17);
    }

    #[test]
    fn a_blocked_word_moves_the_beginning_and_its_text_is_not_canonical() {
        let free = Sqids::new(Sqids::ALPHABET, 0, Some(&[]), u128::MAX).expect("valid parameters");
        let mut text = vec![0; free.len(100_000)];
        free.write(100_000, &mut text);
        let word = String::from_utf8(text).expect("ASCII");
        let blocking = Sqids::new(Sqids::ALPHABET, 0, Some(&[word.to_uppercase()]), u128::MAX)
            .expect("valid parameters");
        assert_eq!(blocking.read(&word), Err(Rejection::NonCanonical));
        assert_ne!(vectors::text_of(&Codec::Sqids(blocking), 100_000), word);
    }

    #[test]
    fn a_number_with_no_unblocked_text_is_still_written() {
        let mut words = vec![String::new()];
        for _ in 0..4 {
            words = words
                .iter()
                .flat_map(|word| ["a", "b", "c"].map(|letter| format!("{word}{letter}")))
                .collect();
        }
        let codec =
            Codec::Sqids(Sqids::new("abc", 0, Some(&words), u128::MAX).expect("valid parameters"));
        for value in [4, 5, 6, 7, 1000] {
            assert_eq!(codec.read(&vectors::text_of(&codec, value)), Ok(value));
        }
    }

    proptest! {
        #![proptest_config(vectors::same_cases_every_time())]

        #[test]
        fn below_64_bits_texts_are_those_of_the_sqids_crate(
            value: u64, cut in 0_u32..64, min_length: u8, blocked in proptest::collection::vec("[a-z0-9]{3,4}", 0..200),
            alphabet in vectors::some_letters(Sqids::ALPHABET, 5),
        ) {
            let value = value >> cut;
            let words = Some(blocked.as_slice()).filter(|words| !words.is_empty());
            let ours = Codec::Sqids(Sqids::new(&alphabet, min_length.into(), words, u128::MAX).expect("valid"));
            let theirs = ::sqids::Sqids::builder().alphabet(alphabet.chars().collect()).min_length(min_length);
            let theirs = match words {
                Some(words) => theirs.blocklist(words.iter().cloned().collect()),
                None => theirs,
            };
            let theirs = theirs.build().expect("valid");
            let text = vectors::text_of(&ours, value.into());
            if let Ok(expected) = theirs.encode(&[value]) {
                prop_assert_eq!(&text, &expected);
            }
            prop_assert_eq!(ours.read(&text), Ok(value.into()));
            if let Ok(two) = theirs.encode(&[value, value / 3]) {
                let is_of_length = two.len() <= TEXT_LEN_MAX && ours.fixed_len().is_none_or(|len| len == two.len());
                let rejection = if is_of_length { Rejection::NotSingleNumber } else { Rejection::WrongLength };
                prop_assert_eq!(ours.read(&two), Err(rejection));
            }
        }
    }
}
