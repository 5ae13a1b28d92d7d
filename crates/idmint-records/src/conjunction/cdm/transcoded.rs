//! Converts a document in another character encoding to UTF-8, and converts inserted text back to
//! the original encoding.
//!
//! A document in UTF-16 begins with a byte order mark. An XML document in ISO-8859-1 declares this
//! encoding in its XML declaration.

use super::error::{CdmError, quote};
use super::lines::LineCounter;

/// The maximum length in bytes of a document that is not in UTF-8. While such a document is read,
/// two copies of it are in memory.
const TRANSCODED_LEN_MAX: usize = 4 * 1024 * 1024;

/// The character encoding of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Charset {
    Latin1,
    Utf16Le,
    Utf16Be,
}

/// The character encoding that a document had before it was converted to UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    /// The original encoding, or `None` if the document was in UTF-8 already.
    charset: Option<Charset>,
    /// The length in bytes of the byte order mark at the beginning of the original document. The
    /// mark was removed.
    begin: usize,
}

impl Origin {
    /// The original encoding of a document that was in UTF-8 from the beginning.
    pub(super) const UTF_8: Origin = Origin {
        charset: None,
        begin: 0,
    };

    /// `true` if the document is in UTF-16.
    pub(super) fn is_utf16(self) -> bool {
        matches!(self.charset, Some(Charset::Utf16Le | Charset::Utf16Be))
    }

    /// Returns the number of bytes that `part`, a part of the converted text, had in the original
    /// document.
    pub(super) fn len_of(self, part: &str) -> usize {
        match self.charset {
            None => part.len(),
            Some(Charset::Latin1) => part.chars().count(),
            Some(Charset::Utf16Le | Charset::Utf16Be) => 2 * part.encode_utf16().count(),
        }
    }

    /// Returns the offset at which the text begins in the original document. It is the length in
    /// bytes of the byte order mark, which was removed.
    pub(super) fn begin(self) -> usize {
        self.begin
    }

    /// Appends `text` to `out` in the original encoding. A character that ISO-8859-1 does not have
    /// is written as a character reference, such as `&#8364;`.
    pub(super) fn encode(self, text: &str, out: &mut Vec<u8>) {
        match self.charset {
            None => out.extend_from_slice(text.as_bytes()),
            Some(Charset::Latin1) => {
                for letter in text.chars() {
                    match u8::try_from(letter) {
                        Ok(byte) => out.push(byte),
                        Err(_) => {
                            out.extend_from_slice(format!("&#{};", u32::from(letter)).as_bytes())
                        }
                    }
                }
            }
            Some(Charset::Utf16Le) => text
                .encode_utf16()
                .for_each(|unit| out.extend_from_slice(&unit.to_le_bytes())),
            Some(Charset::Utf16Be) => text
                .encode_utf16()
                .for_each(|unit| out.extend_from_slice(&unit.to_be_bytes())),
        }
    }

    /// Returns `true` if the original document may declare the encoding `name` in its XML
    /// declaration. An ASCII document, for example, may name UTF-8 or ISO-8859-1.
    pub(super) fn is_declared_by(self, name: &str) -> bool {
        let names: &[&str] = match self.charset {
            // `None` means UTF-8. A document in ASCII is the same in all three encodings.
            None => &["utf-8", "us-ascii", "iso-8859-1"],
            Some(Charset::Latin1) => &["iso-8859-1"],
            Some(Charset::Utf16Le | Charset::Utf16Be) => &["utf-16"],
        };
        names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Returns the first line that is not blank in a document in UTF-16, without leading white space.
/// Returns `None` if the document does not begin with the byte order mark of UTF-16.
pub(super) fn first_line_of_utf16(document: &[u8]) -> Option<String> {
    let (unit_of, bytes): (fn([u8; 2]) -> u16, _) = match document {
        [0xff, 0xfe, bytes @ ..] => (u16::from_le_bytes, bytes),
        [0xfe, 0xff, bytes @ ..] => (u16::from_be_bytes, bytes),
        _ => return None,
    };
    let units = bytes.as_chunks().0.iter().map(|pair| unit_of(*pair));
    let letters = char::decode_utf16(units).map(|letter| letter.unwrap_or_default());
    let from_first = letters.skip_while(|letter| letter.is_whitespace());
    Some(
        from_first
            .take_while(|letter| !matches!(letter, '\r' | '\n'))
            .collect(),
    )
}

/// Converts a document to UTF-8. Returns the converted text and the original encoding. The
/// text is `None` if the document already is in UTF-8.
///
/// # Errors
/// Returns [`CdmError`] if a document that must be converted is too long, or if it is not in the
/// encoding that it claims.
pub(super) fn transcode(document: &[u8]) -> Result<(Option<String>, Origin), CdmError> {
    let charset = match document {
        [0xff, 0xfe, ..] => Charset::Utf16Le,
        [0xfe, 0xff, ..] => Charset::Utf16Be,
        _ if declares_latin1(document) && !document.is_ascii() => Charset::Latin1,
        _ => return Ok((None, Origin::UTF_8)),
    };
    if document.len() > TRANSCODED_LEN_MAX {
        let what = format!(
            "the document has {} bytes, but a document that is not in UTF-8 may have {TRANSCODED_LEN_MAX}; convert it \
             to UTF-8",
            document.len()
        );
        return Err(
            CdmError::at(1, "report_form", what).with_limit(Some(TRANSCODED_LEN_MAX.to_string()))
        );
    }
    let (text, begin) = match charset {
        Charset::Latin1 => (document.iter().map(|byte| char::from(*byte)).collect(), 0),
        Charset::Utf16Le => (decode_utf16(&document[2..], u16::from_le_bytes)?, 2),
        Charset::Utf16Be => (decode_utf16(&document[2..], u16::from_be_bytes)?, 2),
    };
    Ok((
        Some(text),
        Origin {
            charset: Some(charset),
            begin,
        },
    ))
}

fn decode_utf16(bytes: &[u8], unit_of: fn([u8; 2]) -> u16) -> Result<String, CdmError> {
    let (pairs, rest) = bytes.as_chunks();
    let mut text = String::with_capacity(bytes.len());
    let refuse = |text: &str, what| {
        let line = LineCounter::default().line_at(text.as_bytes(), text.len());
        Err(CdmError::at(line, "not_utf8", what))
    };
    for letter in char::decode_utf16(pairs.iter().map(|pair| unit_of(*pair))) {
        let Ok(letter) = letter else {
            let what = "the document is not UTF-16 from this line on; convert it to UTF-8";
            return refuse(&text, what);
        };
        text.push(letter);
    }
    if rest.is_empty() {
        return Ok(text);
    }
    let what = "the document ends inside a UTF-16 character; send the whole document";
    refuse(&text, what)
}

/// Returns `true` if the XML declaration says ISO-8859-1. The declaration must be in ASCII.
fn declares_latin1(document: &[u8]) -> bool {
    let Some(rest) = document.strip_prefix(b"<?xml".as_slice()) else {
        return false;
    };
    let end = rest.iter().position(|byte| *byte == b'>').unwrap_or(0);
    let declaration = String::from_utf8_lossy(&rest[..end]).to_ascii_lowercase();
    let Some((_, value)) = declaration.split_once("encoding") else {
        return false;
    };
    let value = value
        .trim_start()
        .strip_prefix('=')
        .unwrap_or_default()
        .trim_start();
    ["\"iso-8859-1\"", "'iso-8859-1'"]
        .iter()
        .any(|name| value.starts_with(name))
}

/// Returns the error message for an XML declaration that names another encoding.
pub(super) fn refuse_declared(name: &str) -> String {
    format!(
        "the encoding is {}, but must be UTF-8, UTF-16 with its byte order mark, or ISO-8859-1",
        quote(name)
    )
}
