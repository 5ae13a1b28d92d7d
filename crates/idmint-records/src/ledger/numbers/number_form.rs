//! The form in which the numbers of one series are written.

use super::number_check::NumberCheck;

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
    /// Writes a number.
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
}
