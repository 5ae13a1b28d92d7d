//! Splits a document into lines. Any kind of line end is accepted.

use super::error::CdmError;

/// The byte order mark U+FEFF, which some editors write at the beginning of a file.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Removes the byte order mark from a document.
pub fn without_bom(document: &[u8]) -> &[u8] {
    document.strip_prefix(BOM).unwrap_or(document)
}

/// Converts a document to text, and removes its byte order mark.
///
/// # Errors
/// Returns [`CdmError`] with the line of the first byte that is not valid UTF-8. A document that
/// begins like UTF-16 is refused as well, although it may be valid UTF-8.
pub(super) fn text_of(document: &[u8]) -> Result<&str, CdmError> {
    let bytes = without_bom(document);
    let text = str::from_utf8(bytes).map_err(|error| {
        let line = LineCounter::default().line_at(bytes, error.valid_up_to());
        let what = "the document is not UTF-8 from this line on; convert it to UTF-8";
        CdmError::at(line, "not_utf8", what)
    })?;
    if let [0, ..] | [_, 0, ..] = bytes {
        let what = "the document looks like UTF-16 without a byte order mark; convert it to UTF-8";
        return Err(CdmError::at(1, "not_utf8", what));
    }
    Ok(text)
}

/// One line of a text, without its line end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) text: &'a str,
    /// The byte offset of the line end.
    pub(super) end: usize,
    /// The byte offset of the next line.
    pub(super) next: usize,
}

/// Splits a text into lines. A line may end in CR, LF, CR LF or LF CR (CCSDS 508.0-B-1, 6.2.2.4).
/// Line ends may be mixed.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let len = rest.bytes().position(is_line_end).unwrap_or(rest.len());
        let end = at + len;
        let next = end + line_end_len(&rest.as_bytes()[len..]);
        at = next;
        Some(Line {
            text: &rest[..len],
            end,
            next,
        })
    })
}

/// Returns the length in bytes (1 or 2) of the line end with which `rest` begins. Returns 0 if
/// `rest` is empty, because the last line may lack its line end.
fn line_end_len(rest: &[u8]) -> usize {
    match rest {
        [] => 0,
        [first, second, ..] if is_line_end(*second) && first != second => 2,
        _ => 1,
    }
}

/// `true` if the byte is a part of a line end.
pub(super) fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Converts byte offsets to line numbers. Offsets must be passed in ascending order, so that each
/// byte is read only once.
#[derive(Debug, Default)]
pub(super) struct LineCounter {
    at: usize,
    ends: u64,
}

impl LineCounter {
    /// Returns the number, counted from 1, of the line that contains the byte at `offset`.
    pub(super) fn line_at(&mut self, bytes: &[u8], offset: usize) -> u64 {
        while self.at < offset {
            let rest = &bytes[self.at..offset];
            let Some(len) = rest.iter().position(|byte| is_line_end(*byte)) else {
                self.at = offset;
                break;
            };
            self.at += len + line_end_len(&rest[len..]);
            self.ends += 1;
        }
        self.ends + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_end_ends_a_line() {
        let told: Vec<_> = lines("a\nb\r\nc\rd\n\re\n\n\r\n\r\nf")
            .map(|line| line.text)
            .collect();
        assert_eq!(told, ["a", "b", "c", "d", "e", "", "", "", "f"]);
        assert_eq!(lines("").count(), 0);
        assert_eq!(lines("a\n").count(), 1);
    }

    #[test]
    fn a_place_has_the_number_of_its_line() {
        let text = "a\nbb\r\nc\rd\n\re";
        let mut counter = LineCounter::default();
        let places = ["a", "bb", "c", "d", "e"].map(|part| text.find(part).expect("it is there"));
        assert_eq!(
            places.map(|place| counter.line_at(text.as_bytes(), place)),
            [1, 2, 3, 4, 5]
        );
        let numbers: Vec<_> = lines(text).map(|line| line.text).collect();
        assert_eq!(numbers.len(), 5);
    }

    #[test]
    fn what_is_not_utf8_is_refused_with_its_line() {
        let error = text_of(b"\xef\xbb\xbfa\nb\n\xff").expect_err("a byte that is none");
        assert_eq!((error.line, error.reason), (3, "not_utf8"));
        assert_eq!(text_of(b"\xef\xbb\xbfa"), Ok("a"));
        for document in [b"\0T\0C\0A", b"T\0C\0A\0"] {
            let error = text_of(document).expect_err("UTF-16");
            assert_eq!((error.line, error.reason), (1, "not_utf8"));
            assert!(error.to_string().contains("byte order mark"), "{error}");
        }
    }
}
