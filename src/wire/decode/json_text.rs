//! Writes JSON piece by piece, for answers that consist mostly of pieces prepared beforehand.

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
    text.iter().fold(true, |plain, byte| plain & (*byte >= b' ') & (*byte != b'"') & (*byte != b'\\'))
}
