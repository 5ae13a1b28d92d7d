//! The texts in a request to decode. The whole body is checked first. The texts are then read one
//! by one from the body, which is kept in memory only once.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};

use super::json::{check_form, strict_json};
use crate::answer::{MediaType, Problem, Slug};
use idmint_wire::DECODED_LEN_MAX;

/// An iterator over the texts to decode in a request body. Only texts with JSON escapes are copied.
#[derive(Debug, Clone)]
pub(crate) struct DecodeInput {
    body: Bytes,
    /// The offset of the first unread byte in the body.
    at: usize,
    form: Form,
}

#[derive(Debug, Clone, Copy)]
enum Form {
    /// JSON strings, in an array or one per line. Between two strings there is no quotation mark,
    /// so the next quotation mark begins the next string.
    Quoted,
    /// One text per line.
    Lines,
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

impl DecodeInput {
    /// Reads a body in one of three forms: a JSON array of strings, one JSON string per line, or
    /// one text per line. Lines end with LF or CRLF. The last line may lack its line end.
    ///
    /// # Errors
    /// Returns 400 `malformed-request` if the body is not JSON or not UTF-8. Returns 422
    /// `invalid-parameter`, naming the position, if a JSON value is not a string or a text is
    /// longer than [`DECODED_LEN_MAX`] bytes.
    pub(crate) fn read(body: Bytes, media: MediaType) -> Result<DecodeInput, Problem> {
        let form = match media {
            MediaType::Text => check_lines(&body).map(|()| Form::Lines),
            MediaType::Ndjson => check_json_lines(&body).map(|()| Form::Quoted),
            _ => strict_json(&body, Slug::InvalidParameter).map(|Strings| Form::Quoted),
        }?;
        // Spreadsheets save a byte order mark before the first line.
        let is_marked = matches!(form, Form::Lines) && body.starts_with(BYTE_ORDER_MARK);
        let at = if is_marked { BYTE_ORDER_MARK.len() } else { 0 };
        Ok(DecodeInput { body, at, form })
    }

    /// Returns an upper bound for the number of texts in a body of this media type, without parsing
    /// it.
    pub(crate) fn count_max(body: &[u8], media: MediaType) -> usize {
        let count = |wanted: u8| body.iter().filter(|byte| **byte == wanted).count();
        match media {
            MediaType::Text | MediaType::Ndjson => count(b'\n') + 1,
            _ => count(b'"') / 2,
        }
    }

    /// Returns the next text.
    pub(crate) fn next(&mut self) -> Option<Cow<'_, str>> {
        let rest = &self.body[self.at..];
        match self.form {
            Form::Lines => {
                let (line, len) = first_line(rest)?;
                self.at += len;
                Some(Cow::Borrowed(
                    str::from_utf8(line).expect("checked when it came"),
                ))
            }
            Form::Quoted => {
                let open = rest.iter().position(|byte| *byte == b'"')?;
                let (len, is_plain) = quoted_len(&rest[open..]);
                self.at += open + len;
                let quoted = &rest[open..open + len];
                Some(if is_plain {
                    Cow::Borrowed(
                        str::from_utf8(&quoted[1..len - 1]).expect("checked when it came"),
                    )
                } else {
                    Cow::Owned(serde_json::from_slice(quoted).expect("checked when it came"))
                })
            }
        }
    }
}

/// Returns the first line without its line end, and its length including the line end.
fn first_line(rest: &[u8]) -> Option<(&[u8], usize)> {
    if rest.is_empty() {
        return None;
    }
    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
        return Some((rest, rest.len()));
    };
    let line = &rest[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), end + 1))
}

/// Returns the length of the JSON string at the start of `rest`, including its quotes. Also returns
/// `true` if the string has no escapes.
fn quoted_len(rest: &[u8]) -> (usize, bool) {
    let mut is_plain = true;
    let mut at = 1;
    loop {
        let step = rest[at..]
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\\'))
            .expect("checked when it came");
        at += step;
        if rest[at] == b'"' {
            return (at + 1, is_plain);
        }
        is_plain = false;
        at += 2;
    }
}

/// Returns every line with its line number, from 1.
fn lines(body: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut rest = body;
    let lines = std::iter::from_fn(move || {
        let (line, len) = first_line(rest)?;
        rest = &rest[len..];
        Some(line)
    });
    (1..).zip(lines)
}

fn check_lines(body: &[u8]) -> Result<(), Problem> {
    if let Err(error) = str::from_utf8(body) {
        let detail = format!("the body is not UTF-8 from byte {} on", error.valid_up_to());
        return Err(Problem::new(Slug::MalformedRequest, detail).reason("not_utf8"));
    }
    match lines(body).find(|(_, line)| line.len() > DECODED_LEN_MAX) {
        None => Ok(()),
        Some((number, line)) => Err(too_long(&format!("line {number}: {}", TooLong(line.len())))),
    }
}

fn check_json_lines(body: &[u8]) -> Result<(), Problem> {
    for (number, line) in lines(body) {
        if let Err(error) = serde_json::from_slice::<Text>(line) {
            let detail = format!("line {number}: {error}");
            return Err(match check_form(line) {
                Ok(()) => Problem::new(Slug::InvalidParameter, detail),
                Err(_) => Problem::new(Slug::MalformedRequest, detail).reason("json_syntax"),
            });
        }
    }
    Ok(())
}

fn too_long(detail: &str) -> Problem {
    Problem::new(Slug::InvalidParameter, detail).limit(format!("{DECODED_LEN_MAX} bytes"))
}

/// The error message for a text that is too long. The field is the text's length in bytes.
struct TooLong(usize);

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a text of {} bytes; at most {DECODED_LEN_MAX} are decoded",
            self.0
        )
    }
}

/// Checks a JSON array of [`Text`]s. The values are discarded.
struct Strings;

impl<'de> Deserialize<'de> for Strings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Strings, D::Error> {
        deserializer.deserialize_seq(Strings)
    }
}

impl<'de> Visitor<'de> for Strings {
    type Value = Strings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of strings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Strings, A::Error> {
        while items.next_element::<Text>()?.is_some() {}
        Ok(Strings)
    }
}

/// Checks a JSON string and its length. The value is discarded.
struct Text;

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        deserializer.deserialize_str(Text)
    }
}

impl Visitor<'_> for Text {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        if text.len() <= DECODED_LEN_MAX {
            Ok(Text)
        } else {
            Err(E::custom(TooLong(text.len())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(body: &str, media: MediaType) -> Vec<String> {
        let mut texts = DecodeInput::read(Bytes::from(body.to_owned()), media).expect(body);
        let mut taken = Vec::new();
        while let Some(text) = texts.next() {
            taken.push(text.into_owned());
        }
        taken
    }

    fn refused(body: &[u8], media: MediaType) -> (Slug, String) {
        let problem = DecodeInput::read(Bytes::copy_from_slice(body), media).expect_err("no texts");
        (problem.slug(), problem.detail().to_owned())
    }

    #[test]
    fn strings_of_an_array_are_taken_as_they_are_or_unescaped() {
        let body = " [ \"a\" ,\"\",\"\\\"\",\"\\\\\", \"b\\u00e9\\\\\\\"]\" , \"é,\" ]\n";
        assert_eq!(
            taken(body, MediaType::Json),
            ["a", "", "\"", "\\", "bé\\\"]", "é,"]
        );
        assert_eq!(taken("[]", MediaType::Json), [""; 0]);
    }

    #[test]
    fn no_body_has_more_texts_than_its_bytes_tell() {
        for (body, media, texts_max) in [
            ("[\"a\",\"\"]", MediaType::Json, 2),
            ("[\"\\\"\\\"\"]", MediaType::Json, 2),
            ("a\nb", MediaType::Text, 2),
            ("\"a\"\n\"b\"\n", MediaType::Ndjson, 3),
        ] {
            assert_eq!(
                DecodeInput::count_max(body.as_bytes(), media),
                texts_max,
                "{body:?}"
            );
            assert!(taken(body, media).len() <= texts_max, "{body:?}");
        }
    }

    #[test]
    fn lines_end_in_lf_or_crlf_and_an_empty_last_one_is_none() {
        for (body, texts) in [
            ("", &[][..]),
            ("\n", &[""]),
            ("a", &["a"]),
            ("a\n", &["a"]),
            ("a\r\n\r\n\nb\r", &["a", "", "", "b\r"]),
            ("\"a\"\n é \n", &["\"a\"", " é "]),
        ] {
            assert_eq!(taken(body, MediaType::Text), texts, "{body:?}");
        }
        assert_eq!(
            taken("\"a\"\r\n \"\\n\" \n\"\"", MediaType::Ndjson),
            ["a", "\n", ""]
        );
        assert_eq!(taken("", MediaType::Ndjson), [""; 0]);
    }

    #[test]
    fn what_is_not_the_media_type_is_malformed() {
        for (body, media, words) in [
            (&b""[..], MediaType::Json, "EOF"),
            (b"[\"a\"", MediaType::Json, "EOF"),
            (b"[\"a\",]", MediaType::Json, "trailing comma"),
            (b"[\"\xff\"]", MediaType::Json, "unicode"),
            (b"[\"\\ud800\"]", MediaType::Json, "hex escape"),
            (b"\"a\"\n\n\"b\"", MediaType::Ndjson, "line 2: EOF"),
            (b"\"a\" \"b\"", MediaType::Ndjson, "line 1: trailing"),
            (b"\"a\"\n{\"b\":", MediaType::Ndjson, "line 2"),
            (b"a\xff\nb", MediaType::Text, "from byte 1"),
        ] {
            let (slug, detail) = refused(body, media);
            assert_eq!(slug, Slug::MalformedRequest, "{detail}");
            assert!(detail.contains(words), "{words}: {detail}");
        }
    }

    #[test]
    fn other_json_and_texts_that_are_too_long_are_invalid_and_their_place_is_named() {
        let long = "x".repeat(DECODED_LEN_MAX + 1);
        for (body, media, words) in [
            (
                "\"a\"".to_owned(),
                MediaType::Json,
                "expected an array of strings",
            ),
            (
                "{\"ids\":[]}".to_owned(),
                MediaType::Json,
                "expected an array of strings",
            ),
            (
                "[\"a\",7]".to_owned(),
                MediaType::Json,
                "[1]: invalid type: integer `7`, expected a string",
            ),
            ("[\"a\",null]".to_owned(), MediaType::Json, "[1]: "),
            (
                format!("[\"{long}\"]"),
                MediaType::Json,
                "[0]: a text of 8193 bytes; at most 8192",
            ),
            (
                "\"a\"\n7".to_owned(),
                MediaType::Ndjson,
                "line 2: invalid type: integer `7`",
            ),
            (
                format!("\"a\"\n\"{long}\""),
                MediaType::Ndjson,
                "line 2: a text of 8193 bytes",
            ),
            (
                format!("a\n{long}"),
                MediaType::Text,
                "line 2: a text of 8193 bytes",
            ),
        ] {
            let (slug, detail) = refused(body.as_bytes(), media);
            assert_eq!(slug, Slug::InvalidParameter, "{detail}");
            assert!(detail.contains(words), "{words}: {detail}");
        }
        assert_eq!(taken(&long[1..], MediaType::Text), [&long[1..]]);
    }
}
