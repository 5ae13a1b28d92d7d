//! Check characters at the end of a number's text, which reveal a mistyped number.

use idmint_core::id::mod_97_check;
use idmint_core::named;

named! {
    /// A method to compute check characters. Digits count as themselves, and letters of either case
    /// count as 10 to 35. All other characters are ignored.
    ///
    /// ```
    /// use idmint_records::ledger::NumberCheck;
    ///
    /// // The number of an account from ISO 11649, and a number from ISO 6166.
    /// assert_eq!(NumberCheck::Mod97.of("539007547034RF"), "18");
    /// assert_eq!(NumberCheck::Luhn.of("US037833100"), "5");
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum NumberCheck {
        /// One digit by Luhn's method (ISO/IEC 7812-1, annex B), with letters as in ISO 6166. It
        /// detects every wrong digit and nearly all swaps of adjacent digits.
        Luhn = "luhn",
        /// Two digits by ISO 7064 MOD 97-10. They detect every wrong digit and all swaps of
        /// adjacent digits.
        Mod97 = "mod97",
    }
}

impl NumberCheck {
    /// Returns the check characters for this text.
    pub fn of(self, text: &str) -> String {
        match self {
            NumberCheck::Luhn => luhn(text).to_string(),
            NumberCheck::Mod97 => format!("{:02}", mod_97(text)),
        }
    }

    /// Returns the number of check characters.
    pub fn width(self) -> usize {
        match self {
            NumberCheck::Luhn => 1,
            NumberCheck::Mod97 => 2,
        }
    }

    /// Returns the method with this name, or `None` if no method has this name.
    pub fn named(name: &str) -> Option<NumberCheck> {
        NumberCheck::ALL
            .into_iter()
            .find(|check| check.name() == name)
    }
}

/// A computation of check characters that reads a text one character at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum CheckRun {
    /// `sum` is the sum of the digits so far, modulo 10. `is_doubled` is `true` if the next digit
    /// counts double. The last digit counts double, and so does every second digit before it.
    Luhn { sum: u32, is_doubled: bool },
    /// The remainder modulo 97 of the digits so far.
    Mod97(u128),
}

impl CheckRun {
    /// Returns the states in which the computation of a check digit may begin. Luhn's method has
    /// two such states. The length of the text decides whether the first digit counts double, and
    /// is not known yet.
    pub(super) fn beginnings(check: NumberCheck) -> Vec<CheckRun> {
        let luhn = |is_doubled| CheckRun::Luhn { sum: 0, is_doubled };
        match check {
            NumberCheck::Luhn => [false, true].map(luhn).to_vec(),
            NumberCheck::Mod97 => vec![CheckRun::Mod97(0)],
        }
    }

    /// Returns the computation after one more character of the text.
    pub(super) fn after(self, letter: char) -> CheckRun {
        let mut text = [0; 4];
        digits(letter.encode_utf8(&mut text)).fold(self, |run, digit| match run {
            CheckRun::Luhn { sum, is_doubled } => CheckRun::Luhn {
                sum: (sum + if is_doubled { doubled(digit) } else { digit }) % 10,
                is_doubled: !is_doubled,
            },
            CheckRun::Mod97(value) => CheckRun::Mod97((value * 10 + u128::from(digit)) % 97),
        })
    }

    /// Returns `true` if `letter` is the check character at `position`, counted from 0, for the
    /// text that was read so far.
    pub(super) fn has(self, position: usize, letter: char) -> bool {
        let check = match self {
            CheckRun::Luhn {
                is_doubled: true, ..
            } => return false,
            CheckRun::Luhn { sum, .. } => ((10 - sum) % 10).to_string(),
            CheckRun::Mod97(value) => format!("{:02}", mod_97_check(value, 10)),
        };
        check.chars().nth(position) == Some(letter)
    }
}

/// Returns the digits of a text from which its check characters are computed. A letter gives the
/// two digits of its number, such as 1 and 0 for `A`.
fn digits(text: &str) -> impl Iterator<Item = u32> + '_ {
    let values = text.chars().filter_map(|letter| letter.to_digit(36));
    values
        .flat_map(|value| [(value >= 10).then_some(value / 10), Some(value % 10)])
        .flatten()
}

fn luhn(text: &str) -> u32 {
    let digits: Vec<u32> = digits(text).collect();
    let places = digits.iter().rev().enumerate();
    let weighed = places.map(|(place, digit)| match place % 2 {
        0 => doubled(*digit),
        _ => *digit,
    });
    let sum: u32 = weighed.fold(0, |sum, digit| (sum + digit) % 10);
    (10 - sum) % 10
}

/// Returns the sum of the digits of `2 * digit`. For example, the digit 8 gives 7, because twice 8
/// is 16, and 1 + 6 is 7.
fn doubled(digit: u32) -> u32 {
    if digit > 4 { 2 * digit - 9 } else { 2 * digit }
}

fn mod_97(text: &str) -> u128 {
    let value = digits(text).fold(0, |value, digit| (value * 10 + u128::from(digit)) % 97);
    mod_97_check(value, 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_those_of_the_standards() {
        // Sources: ISO/IEC 7812-1, ISO 6166 (securities), and card numbers that are reserved for
        // tests.
        for (text, check) in [
            ("7992739871", "3"),
            ("US037833100", "5"),
            ("US594918104", "5"),
            ("411111111111111", "1"),
            ("0", "0"),
        ] {
            assert_eq!(NumberCheck::Luhn.of(text), check, "{text}");
        }
        // Sources: ISO 7064, ISO 11649, and IBANs from the registry of ISO 13616. In the IBANs, the
        // country and the check digits are moved to the end.
        for (text, check) in [
            ("794", "44"),
            ("539007547034RF", "18"),
            ("WEST12345698765432GB", "82"),
            ("370400440532013000DE", "89"),
            ("west 1234-5698/7654.32gb", "82"),
        ] {
            assert_eq!(NumberCheck::Mod97.of(text), check, "{text}");
        }
    }

    #[test]
    fn one_wrong_digit_always_shows_and_so_do_neighbours_in_each_others_place_of_mod97() {
        let text = "INV-acme-2026-00042";
        let (mut wrong, mut swapped) = (0, 0);
        for (at, byte) in text
            .bytes()
            .enumerate()
            .filter(|(_, byte)| byte.is_ascii_alphanumeric())
        {
            for other in "0123456789"
                .bytes()
                .filter(|other| *other != byte && byte.is_ascii_digit())
            {
                let mut changed = text.to_owned().into_bytes();
                changed[at] = other;
                let changed = String::from_utf8(changed).expect("ASCII");
                for check in [NumberCheck::Luhn, NumberCheck::Mod97] {
                    assert_ne!(check.of(&changed), check.of(text), "{changed}");
                }
                wrong += 1;
            }
            let next = text
                .as_bytes()
                .get(at + 1)
                .copied()
                .filter(u8::is_ascii_digit);
            if next.is_some_and(|next| next != byte && byte.is_ascii_digit()) {
                let mut changed = text.to_owned().into_bytes();
                changed.swap(at, at + 1);
                let changed = String::from_utf8(changed).expect("ASCII");
                assert_ne!(
                    NumberCheck::Mod97.of(&changed),
                    NumberCheck::Mod97.of(text),
                    "{changed}"
                );
                swapped += 1;
            }
        }
        assert!(wrong == 81 && swapped > 3, "{wrong} {swapped}");
    }

    #[test]
    fn a_check_computed_step_by_step_is_the_same() {
        for text in [
            "7992739871",
            "US037833100",
            "INV-acme-2026/№ 00042",
            "7",
            "x",
            "12",
        ] {
            for check in [NumberCheck::Luhn, NumberCheck::Mod97] {
                let runs = CheckRun::beginnings(check).into_iter();
                let runs: Vec<_> = runs
                    .map(|run| text.chars().fold(run, CheckRun::after))
                    .collect();
                for other in 0..100 {
                    let written = format!("{other:0width$}", width = check.width());
                    let has = |run: &CheckRun| {
                        let mut letters = written.chars().enumerate();
                        letters.all(|(position, letter)| run.has(position, letter))
                    };
                    let is_right = written == check.of(text);
                    assert_eq!(runs.iter().any(has), is_right, "{text} {written}");
                }
            }
        }
    }

    #[test]
    fn a_check_is_found_by_its_name() {
        for check in [NumberCheck::Luhn, NumberCheck::Mod97] {
            assert_eq!(NumberCheck::named(check.name()), Some(check));
            assert_eq!(check.of("1").len(), check.width());
        }
        assert_eq!(NumberCheck::named("crc"), None);
    }
}
