//! A document as UTF-8 that is written in another encoding, and where a place in the one is in the other.
//!
//! XML says its encoding itself: UTF-16 by a byte order mark, ISO-8859-1 in its declaration.

use super::error::{CdmError, quote};

/// The longest document in another encoding than UTF-8, in bytes: it is kept twice while it is read.
const TRANSCODED_LEN_MAX: usize = 4 * 1024 * 1024;

/// How the characters of a document are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Charset {
    Latin1,
    Utf16Le,
    Utf16Be,
}

/// What a document was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    /// `None` where nothing was changed.
    charset: Option<Charset>,
    /// The length of the byte order mark that was left out.
    begin: usize,
}

impl Origin {
    /// A document that is read as it is.
    pub(super) const UTF_8: Origin = Origin {
        charset: None,
        begin: 0,
    };

    /// The length of this part of the text in the document it came from.
    pub(super) fn len_of(self, part: &str) -> usize {
        match self.charset {
            None => part.len(),
            Some(Charset::Latin1) => part.chars().count(),
            Some(Charset::Utf16Le | Charset::Utf16Be) => 2 * part.encode_utf16().count(),
        }
    }

    /// The length of what stands before the text.
    pub(super) fn begin(self) -> usize {
        self.begin
    }

    /// Writes a text as the document was written. What ISO-8859-1 has no character for becomes a character reference.
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

    /// Whether an encoding that an XML declaration names is the one that the document has.
    pub(super) fn is_declared_by(self, name: &str) -> bool {
        let names: &[&str] = match self.charset {
            // Of letters of ASCII alone each of these is the same.
            None => &["utf-8", "us-ascii", "iso-8859-1"],
            Some(Charset::Latin1) => &["iso-8859-1"],
            Some(Charset::Utf16Le | Charset::Utf16Be) => &["utf-16"],
        };
        names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// An XML document in UTF-8, if it is written in another encoding, and how it was written.
///
/// # Errors
/// A document in another encoding than UTF-8 that is too long, or is not in the encoding it claims.
pub(super) fn transcode(document: &[u8]) -> Result<(Option<String>, Origin), CdmError> {
    let charset = match document {
        [0xff, 0xfe, ..] => Charset::Utf16Le,
        [0xfe, 0xff, ..] => Charset::Utf16Be,
        _ if declares_latin1(document) && !document.is_ascii() => Charset::Latin1,
        _ => return Ok((None, Origin::UTF_8)),
    };
    if document.len() > TRANSCODED_LEN_MAX {
        let what = format!(
            "the document has {} bytes, and one that is not in UTF-8 may have {TRANSCODED_LEN_MAX}",
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
    let mut lines = 1;
    for letter in char::decode_utf16(pairs.iter().map(|pair| unit_of(*pair))) {
        let Ok(letter) = letter else {
            return Err(CdmError::at(
                lines,
                "not_utf8",
                "the document is not UTF-16 from here on",
            ));
        };
        lines += u64::from(letter == '\n');
        text.push(letter);
    }
    if rest.is_empty() {
        return Ok(text);
    }
    Err(CdmError::at(
        lines,
        "not_utf8",
        "the document ends inside of a character of UTF-16",
    ))
}

/// Whether an XML declaration, in ASCII, names ISO-8859-1.
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

/// The refusal of a declaration that names another encoding.
pub(super) fn refuse_declared(name: &str) -> String {
    format!(
        "the encoding is {}, it must be UTF-8, UTF-16 with its byte order mark, or ISO-8859-1",
        quote(name)
    )
}
