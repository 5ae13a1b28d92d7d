//! The form in which the numbers of one series are written.

use super::number_check::NumberCheck;
use super::series_name::SeriesName;
use crate::ledger::append::KeyHash;

/// The form of the numbers of one series. A text has the characters before the number, the number
/// itself, the characters after it, and check characters. The default is plain digits.
///
/// ```
/// use idmint_records::ledger::NumberForm;
///
/// let form = NumberForm { before: "INV/2026/".to_owned(), width: 5, ..NumberForm::default() };
/// assert_eq!(form.text(42), "INV/2026/00042");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberForm {
    /// The characters before the number.
    pub before: String,
    /// The minimum number of digits. Shorter numbers are padded with zeros on the left.
    pub width: u8,
    /// The characters between the number and the check characters.
    pub after: String,
    /// The method for check characters at the end, or `None` for a text without them.
    pub check: Option<NumberCheck>,
}

impl Default for NumberForm {
    fn default() -> NumberForm {
        NumberForm {
            before: String::new(),
            width: 1,
            after: String::new(),
            check: None,
        }
    }
}

impl NumberForm {
    /// Writes a number as text in this form.
    pub fn text(&self, number: u64) -> String {
        let NumberForm {
            before,
            width,
            after,
            check,
        } = self;
        let mut text = format!(
            "{before}{number:0width$}{after}",
            width = usize::from(*width)
        );
        if let Some(check) = check {
            let characters = check.of(&text);
            text.push_str(&characters);
        }
        text
    }

    /// Returns `true` if this form writes only the number's digits and any check characters.
    pub(super) fn is_plain(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }
}

/// A change of the form in which a series writes its numbers. The form applies to the number `from`
/// and to all later numbers, up to the next change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormChange {
    /// The name of the series.
    pub series: SeriesName,
    /// The first number that is written in this form.
    pub from: u64,
    /// The hash of the idempotency key of the request that got the number `from`. After a restore
    /// from a backup, `from` may be given to another request, in another form. The hash shows to
    /// which of these requests this form belongs.
    pub of: KeyHash,
    /// The form in which the numbers are written.
    pub form: NumberForm,
}

impl FormChange {
    /// Returns the form of a number's text according to `changes`, which are sorted by `from`.
    /// Returns `None` if the number is below the first change. Such a number was given before the
    /// forms of texts were stored.
    pub fn form_at(changes: &[FormChange], number: u64) -> Option<&NumberForm> {
        let after = changes.partition_point(|change| change.from <= number);
        changes[..after].last().map(|change| &change.form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_applies_from_its_number_up_to_the_next_change() {
        let change = |from, before: &str| FormChange {
            series: SeriesName::from_text("acme").expect("a name"),
            from,
            of: KeyHash(0),
            form: NumberForm {
                before: before.to_owned(),
                check: Some(NumberCheck::Luhn),
                ..NumberForm::default()
            },
        };
        let changes = [change(5, "A-"), change(9, "B-")];
        let text = |number| FormChange::form_at(&changes, number).map(|form| form.text(number));
        assert_eq!(text(4), None);
        assert_eq!(text(5), Some(format!("A-5{}", NumberCheck::Luhn.of("A-5"))));
        assert_eq!(text(8).map(|text| text.starts_with("A-8")), Some(true));
        assert_eq!(text(9).map(|text| text.starts_with("B-9")), Some(true));
    }
}
