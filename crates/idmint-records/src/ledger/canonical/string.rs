//! Writes strings of canonical JSON. A character is escaped only if JSON requires it.

use super::byte_runs::plain_len;
use super::scanner::Scanner;
use crate::ledger::event_error::EventError;
use crate::ledger::hex::write_hex;

impl Scanner<'_> {
    /// Reads a string whose opening quote was already read. Writes it in canonical JSON, with both
    /// quotes.
    ///
    /// Returns `true` if the written string contains an escape.
    pub(in crate::ledger) fn string_to_json(
        &mut self,
        out: &mut Vec<u8>,
    ) -> Result<bool, EventError> {
        let mut is_escaped = false;
        out.push(b'"');
        self.string(out, |c, out| is_escaped |= push_escaped(c, out))?;
        out.push(b'"');
        Ok(is_escaped)
    }

    /// Reads a string whose opening quote was already read. Writes the decoded text, without quotes
    /// and escapes.
    pub(in crate::ledger) fn string_to_text(
        &mut self,
        out: &mut Vec<u8>,
    ) -> Result<(), EventError> {
        self.string(out, push)
    }

    /// Reads a string whose opening quote was already read. Copies the parts between escapes, and
    /// passes the character of each escape to `push_char`.
    fn string(
        &mut self,
        out: &mut Vec<u8>,
        mut push_char: impl FnMut(char, &mut Vec<u8>),
    ) -> Result<(), EventError> {
        loop {
            let rest = &self.bytes[self.at..];
            let plain = plain_len(rest);
            out.extend_from_slice(&rest[..plain]);
            self.at += plain;
            match rest.get(plain) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => push_char(self.escape()?, out),
                Some(control) => {
                    return Err(
                        self.invalid(&format!("the control character {control:02x} in a string"))
                    );
                }
                None => return Err(self.unexpected("the end of a string")),
            }
        }
    }

    /// Reads an escape, beginning with its backslash.
    fn escape(&mut self) -> Result<char, EventError> {
        let letter = self.bytes.get(self.at + 1);
        let meant = match letter {
            Some(b'"' | b'\\' | b'/') => char::from(*letter.expect("just seen")),
            Some(b'b') => '\u{8}',
            Some(b't') => '\t',
            Some(b'n') => '\n',
            Some(b'f') => '\u{c}',
            Some(b'r') => '\r',
            Some(b'u') => return self.escaped_number(),
            _ => return Err(self.unexpected("an escape")),
        };
        self.at += 2;
        Ok(meant)
    }

    /// Reads the escape `\uXXXX`. If it is the first half of a surrogate pair, reads the second
    /// half too.
    fn escaped_number(&mut self) -> Result<char, EventError> {
        let unit_at = |at: usize| {
            let digits = self
                .bytes
                .get(at..)?
                .strip_prefix(b"\\u")?
                .first_chunk::<4>()?;
            let digit = |byte: &u8| char::from(*byte).to_digit(16);
            digits
                .iter()
                .try_fold(0, |unit, byte| Some(unit << 4 | digit(byte)?))
        };
        let Some(first) = unit_at(self.at) else {
            return Err(self.unexpected("an escape with four digits"));
        };
        let (number, len) = match (first, unit_at(self.at + 6)) {
            (0xd800..=0xdbff, Some(second @ 0xdc00..=0xdfff)) => {
                (0x1_0000 + ((first & 0x3ff) << 10 | (second & 0x3ff)), 12)
            }
            _ => (first, 6),
        };
        let meant =
            char::from_u32(number).ok_or_else(|| self.invalid("one half of a surrogate pair"))?;
        self.at += len;
        Ok(meant)
    }
}

fn push(c: char, out: &mut Vec<u8>) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Writes a character, and escapes it if JSON requires it. Returns `true` if it was escaped.
fn push_escaped(c: char, out: &mut Vec<u8>) -> bool {
    let short = match c {
        '"' | '\\' => c,
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\0'..='\u{1f}' => {
            let mut escape = *b"\\u0000";
            write_hex(u32::from(c).into(), &mut escape[2..]);
            out.extend_from_slice(&escape);
            return true;
        }
        _ => {
            push(c, out);
            return false;
        }
    };
    out.push(b'\\');
    push(short, out);
    true
}

/// Removes the escapes from a canonical string, and returns the bytes of its text. `canonical` is
/// the string without its quotes.
pub(in crate::ledger) fn unescape(canonical: &[u8]) -> impl Iterator<Item = u8> {
    let mut rest = canonical.iter().copied();
    std::iter::from_fn(move || {
        let byte = rest.next()?;
        if byte != b'\\' {
            return Some(byte);
        }
        let byte = match rest.next()? {
            b'b' => 0x8,
            b't' => b'\t',
            b'n' => b'\n',
            b'f' => 0xc,
            b'r' => b'\r',
            // In canonical JSON, this escape always has the form `\u00xx`.
            b'u' => rest
                .by_ref()
                .take(4)
                .filter_map(|digit| char::from(digit).to_digit(16))
                .fold(0, |byte, digit| {
                    byte << 4 | u8::try_from(digit).expect("below 16")
                }),
            itself => itself,
        };
        Some(byte)
    })
}
