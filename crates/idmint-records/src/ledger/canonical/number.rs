//! Writes numbers of canonical JSON. A number is rounded to a double and printed as in ECMAScript
//! (RFC 8785).

use super::scanner::Scanner;
use crate::ledger::event_error::{EventError, clip};
use idmint_core::id::Rejection;

/// A number of at most this many decimal digits is never changed by a conversion to a double and
/// back.
const DIGITS_KEPT: usize = 15;

/// A number as it was written, split into its parts.
struct Token<'a> {
    whole: &'a [u8],
    integer: &'a [u8],
    fraction: &'a [u8],
    has_exponent: bool,
}

impl Scanner<'_> {
    /// Reads a number, and writes it in canonical JSON.
    ///
    /// # Errors
    /// Returns [`Rejection::NumberNotInteroperable`] if the number is outside the range of doubles,
    /// or if an integer (without fraction or exponent) would be printed with other digits.
    pub(in crate::ledger) fn number(&mut self, out: &mut Vec<u8>) -> Result<(), EventError> {
        let token = self.token()?;
        if token.is_canonical() {
            out.extend_from_slice(token.whole);
            return Ok(());
        }
        let text = std::str::from_utf8(token.whole).expect("digits are ASCII");
        let value: f64 = text.parse().expect("every JSON number is a Rust number");
        if !value.is_finite() {
            let detail = format!(
                "number {} exceeds the largest double, 1.8e308",
                clip(token.whole)
            );
            return Err(EventError::new(Rejection::NumberNotInteroperable, detail));
        }
        let mut buffer = ryu_js::Buffer::new();
        let printed = buffer.format_finite(value);
        // Refuse an integer that would be printed with other digits. The absolute value of such an
        // integer is always greater than 2^53 - 1. `-0` is accepted, and is printed as `0`.
        let is_integer = token.fraction.is_empty() && !token.has_exponent;
        if is_integer && value != 0.0 && printed != text {
            let written = clip(token.whole);
            let detail = format!(
                "integer {written} would silently become {printed}; send it as a string (integers: up to 2^53 - 1)"
            );
            return Err(EventError::new(Rejection::NumberNotInteroperable, detail));
        }
        out.extend_from_slice(printed.as_bytes());
        Ok(())
    }

    fn token(&mut self) -> Result<Token<'_>, EventError> {
        let bytes = self.bytes;
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let integer = self.digits()?;
        if integer.len() > 1 && integer[0] == b'0' {
            self.at -= integer.len();
            return Err(self.invalid("a number with a leading zero"));
        }
        let mut fraction: &[u8] = &[];
        if self.peek() == Some(b'.') {
            self.at += 1;
            fraction = self.digits()?;
        }
        let has_exponent = matches!(self.peek(), Some(b'e' | b'E'));
        if has_exponent {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(Token {
            whole: &bytes[start..self.at],
            integer,
            fraction,
            has_exponent,
        })
    }
}

impl<'a> Scanner<'a> {
    /// Reads a sequence of digits. There must be at least one.
    fn digits(&mut self) -> Result<&'a [u8], EventError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            Err(self.unexpected("a digit"))
        } else {
            Ok(&self.bytes[start..self.at])
        }
    }
}

impl Token<'_> {
    /// Returns `true` if the number is certainly canonical already. Only its digits are checked,
    /// and its value is not computed.
    ///
    /// ECMAScript prints the shortest decimal number that has the same double. Two different
    /// numbers of at most 15 digits never have the same double, so the written number is the
    /// shortest one unless it has needless zeros. ECMAScript uses no exponent for numbers from
    /// 0.000001 to below 1e21.
    fn is_canonical(&self) -> bool {
        let Token {
            whole,
            integer,
            fraction,
            has_exponent,
        } = self;
        if *has_exponent || integer.len() + fraction.len() > DIGITS_KEPT {
            return false;
        }
        match fraction.last() {
            None => *whole != b"-0",
            Some(last) => *last != b'0' && (integer[0] != b'0' || !fraction.starts_with(b"000000")),
        }
    }
}
