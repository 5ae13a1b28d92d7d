//! Writes JSON from chunks of text, most of which are prepared once and used in many responses.
//!
//! The output has the same bytes as a derived `Serialize` would write with serde_json, but takes
//! fewer instructions. The widths of fields are prepared, and each id is encoded only once.
//!
//! The table shows the number of instructions that it takes to decode a text and write its
//! response, averaged over 1000 ids. They were counted by callgrind on x86-64 with AVX2. The last
//! two columns are for `GET /decode/{id}`, with the router but without the network. The last one
//! shows how many more instructions serde_json would take.
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
//! `tests/answers.rs` checks that serde_json writes the same bytes.

/// Appends chunks of JSON to a buffer. The caller must ensure that the chunks together are valid
/// JSON.
#[derive(Debug)]
pub(super) struct JsonText<'a>(pub(super) &'a mut Vec<u8>);

impl JsonText<'_> {
    /// Appends a chunk unchanged.
    pub(super) fn raw(&mut self, json: &str) -> &mut Self {
        self.0.extend_from_slice(json.as_bytes());
        self
    }

    /// Appends a text as a JSON string.
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

    /// Appends a text as a JSON string, or `null`.
    pub(super) fn string_or_null(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.string(text),
            None => self.raw("null"),
        }
    }

    /// Appends texts as an array of JSON strings.
    pub(super) fn strings<'a>(&mut self, texts: impl Iterator<Item = &'a str>) -> &mut Self {
        self.list(texts, |json, text| {
            json.string(text);
        })
    }

    /// Appends a JSON array. `write` appends each item.
    pub(super) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) -> &mut Self {
        self.raw("[");
        for (at, item) in items.into_iter().enumerate() {
            write(self.raw(if at == 0 { "" } else { "," }), item);
        }
        self.raw("]")
    }

    /// Appends a number, which must be finite because JSON has no infinity.
    pub(super) fn number(&mut self, number: f64) -> &mut Self {
        serde_json::to_writer(&mut *self.0, &number).expect("memory takes every number");
        self
    }

    /// Appends `true` or `false`.
    pub(super) fn bool(&mut self, value: bool) -> &mut Self {
        self.raw(if value { "true" } else { "false" })
    }

    /// Appends the decimal digits of a number.
    pub(super) fn digits(&mut self, number: u128) -> &mut Self {
        match u64::try_from(number) {
            Ok(short) => self.raw(itoa::Buffer::new().format(short)),
            Err(_) => self.raw(itoa::Buffer::new().format(number)),
        }
    }
}

/// Returns `true` if a text can be written as a JSON string without escapes.
pub(super) fn is_plain(text: &[u8]) -> bool {
    // Check all bytes without an early exit, so that the compiler can check many bytes at a time.
    text.iter().fold(true, |plain, byte| {
        plain & (*byte >= b' ') & (*byte != b'"') & (*byte != b'\\')
    })
}
