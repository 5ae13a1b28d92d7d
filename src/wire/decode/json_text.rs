//! Writes JSON piece by piece, for answers that consist mostly of pieces prepared beforehand.
//!
//! By hand and not by serde_json, which makes the same bytes of `Serialize` derived for the answers, with the widths of the
//! fields prepared as `RawValue` and each id encoded once. Instructions for decoding a text and writing its answer, each
//! the average of 1000 ids, counted by callgrind on x86-64 with AVX2; and what serde_json would add to `GET /decode/{id}`
//! as the router answers it, without the network:
//!
//! ```text
//!            in full, by hand   by serde_json   in brief, by hand   by serde_json   GET, by hand   serde_json adds
//! payment              36 854          66 870              12 503          17 182         43 919              68 %
//! siq                  39 305          67 128               6 562          13 775         51 713              54 %
//! snowflake            78 969         195 204              10 357          15 396         94 248             123 %
//! ulid                 48 488          67 855               4 176           8 063         50 030              39 %
//! uuid7                34 817          65 689               8 607          15 977         51 647              60 %
//! ```
//!
//! `tests/properties/answers.rs` holds the bytes to those of serde_json.

/// Appends pieces of JSON to a buffer. The caller sees to it that they make a whole.
#[derive(Debug)]
pub(super) struct JsonText<'a>(pub(super) &'a mut Vec<u8>);

impl JsonText<'_> {
    /// A piece as it is.
    pub(super) fn raw(&mut self, json: &str) -> &mut Self {
        self.0.extend_from_slice(json.as_bytes());
        self
    }

    /// A text in quotes.
    pub(super) fn string(&mut self, text: &str) -> &mut Self {
        if is_plain(text.as_bytes()) {
            self.0.push(b'"');
            self.0.extend_from_slice(text.as_bytes());
            self.0.push(b'"');
        } else {
            serde_json::to_writer(&mut *self.0, text).expect("memory takes every text");
        }
        self
    }

    /// A text in quotes, or `null`.
    pub(super) fn string_or_null(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.string(text),
            None => self.raw("null"),
        }
    }

    /// An array of texts.
    pub(super) fn strings<'a>(&mut self, texts: impl Iterator<Item = &'a str>) -> &mut Self {
        self.raw("[");
        for (at, text) in texts.enumerate() {
            self.raw(if at == 0 { "" } else { "," }).string(text);
        }
        self.raw("]")
    }

    /// A finite number.
    pub(super) fn number(&mut self, number: f64) -> &mut Self {
        serde_json::to_writer(&mut *self.0, &number).expect("memory takes every number");
        self
    }

    /// `true` or `false`.
    pub(super) fn bool(&mut self, value: bool) -> &mut Self {
        self.raw(if value { "true" } else { "false" })
    }

    /// The decimal digits of a number.
    pub(super) fn digits(&mut self, number: u128) -> &mut Self {
        match u64::try_from(number) {
            Ok(short) => self.raw(itoa::Buffer::new().format(short)),
            Err(_) => self.raw(itoa::Buffer::new().format(number)),
        }
    }
}

/// Whether a text needs no escape in JSON.
pub(super) fn is_plain(text: &[u8]) -> bool {
    // No early exit, so that the compiler can check many bytes at once.
    text.iter().fold(true, |plain, byte| {
        plain & (*byte >= b' ') & (*byte != b'"') & (*byte != b'\\')
    })
}
