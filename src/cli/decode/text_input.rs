//! Reads a text file as UTF-8. The program that saved the file may have used UTF-8 or UTF-16.

use std::io::{self, Chain, Cursor, ErrorKind, Read};

/// The number of bytes at the beginning of the input from which its text encoding is recognised.
const BEGINNING_LEN: usize = 4;

/// An input that yields UTF-8 without a byte order mark. UTF-16 is recognised by its byte order
/// mark, or by zeros in every other byte, and is converted. Any other text is passed on unchanged.
pub(super) struct TextInput<R> {
    input: Chain<Cursor<Vec<u8>>, R>,
    encoding: TextEncoding,
    /// The converted bytes, and the index of the first byte that has not been returned yet.
    converted: (Vec<u8>, usize),
    /// The incomplete character at the end of the bytes that were read so far. The first value is
    /// the first half of a surrogate pair, and the second value is the first byte of a two-byte
    /// UTF-16 unit.
    pending: (Option<u16>, Option<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextEncoding {
    Utf8,
    Utf16Le,
    Utf16Be,
}

impl<R: Read> TextInput<R> {
    /// Creates an input after reading up to four bytes to recognise the text encoding.
    ///
    /// # Errors
    /// Returns the error of the input.
    pub(super) fn new(mut input: R) -> io::Result<TextInput<R>> {
        let mut beginning = Vec::with_capacity(BEGINNING_LEN);
        let mut byte = [0];
        // Stop at a line end, too. A user who types a line of fewer than four bytes expects its
        // result before typing the next line.
        while beginning.len() < BEGINNING_LEN && !beginning.ends_with(b"\n") {
            match input.read(&mut byte) {
                Ok(0) => break,
                Ok(_) => beginning.extend(byte),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let (encoding, mark_len) = match beginning.as_slice() {
            [0xef, 0xbb, 0xbf, ..] => (TextEncoding::Utf8, 3),
            [0xff, 0xfe, ..] => (TextEncoding::Utf16Le, 2),
            [0xfe, 0xff, ..] => (TextEncoding::Utf16Be, 2),
            [1..=255, 0, 1..=255, 0] => (TextEncoding::Utf16Le, 0),
            [0, 1..=255, 0, 1..=255] => (TextEncoding::Utf16Be, 0),
            _ => (TextEncoding::Utf8, 0),
        };
        beginning.drain(..mark_len);
        Ok(TextInput {
            input: Cursor::new(beginning).chain(input),
            encoding,
            converted: (Vec::new(), 0),
            pending: (None, None),
        })
    }

    /// Converts the next bytes from UTF-16. An unpaired surrogate becomes U+FFFD.
    fn convert(&mut self, bytes: &[u8], is_end: bool) {
        let (high, odd) = &mut self.pending;
        let mut bytes = odd.take().into_iter().chain(bytes.iter().copied());
        let mut units: Vec<u16> = high.take().into_iter().collect();
        while let Some(first) = bytes.next() {
            let Some(second) = bytes.next() else {
                *odd = Some(first);
                break;
            };
            units.push(match self.encoding {
                TextEncoding::Utf16Be => u16::from_be_bytes([first, second]),
                _ => u16::from_le_bytes([first, second]),
            });
        }
        let is_high = |unit: &&u16| (0xd800..0xdc00).contains(*unit);
        if !is_end && let Some(last) = units.last().filter(is_high) {
            *high = Some(*last);
            units.pop();
        }
        let text = String::from_utf16_lossy(&units);
        self.converted = (text.into_bytes(), 0);
    }
}

impl<R: Read> Read for TextInput<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.encoding == TextEncoding::Utf8 || out.is_empty() {
            return self.input.read(out);
        }
        while self.converted.0.len() == self.converted.1 {
            let mut bytes = [0; 8 * 1024];
            let len = self.input.read(&mut bytes)?;
            if len == 0 && self.pending == (None, None) {
                return Ok(0);
            }
            self.convert(&bytes[..len], len == 0);
            if len == 0 && self.pending.1.take().is_some() {
                self.converted.0.extend_from_slice("\u{fffd}".as_bytes());
            }
        }
        let (converted, at) = &mut self.converted;
        let len = out.len().min(converted.len() - *at);
        out[..len].copy_from_slice(&converted[*at..*at + len]);
        *at += len;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> String {
        let mut text = String::new();
        let mut input = TextInput::new(bytes).expect("memory");
        input.read_to_string(&mut text).expect("UTF-8");
        text
    }

    #[test]
    fn a_text_is_read_in_each_encoding_with_and_without_its_mark() {
        let text = "id;n\u{e4}me\u{1f600}\r\n1;x";
        let units = || text.encode_utf16();
        let le: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        for (mark, bytes) in [
            (&b""[..], text.as_bytes()),
            (b"\xef\xbb\xbf", text.as_bytes()),
            (b"\xff\xfe", &le),
            (b"", &le),
            (b"\xfe\xff", &be),
            (b"", &be),
        ] {
            assert_eq!(read(&[mark, bytes].concat()), text, "{mark:?} {bytes:?}");
        }
        assert_eq!(read(b""), "");
        assert_eq!(read(b"\xff\xfe1\x00\x00"), "1\u{fffd}", "half a unit");
        let long: Vec<u8> = "\u{1f600}"
            .repeat(9_000)
            .encode_utf16()
            .flat_map(u16::to_be_bytes)
            .collect();
        assert_eq!(
            read(&[b"\xfe\xff\x00x", long.as_slice()].concat()).len(),
            1 + 36_000
        );
    }
}
