//! Converts JSON to canonical JSON. All JSON texts with the same value have the same canonical
//! text, which has no white space and has its keys in code point order.

use std::cmp::Ordering;

use super::scanner::{DEPTH_MAX, Scanner};
use super::string::unescape;
use crate::ledger::event_error::{EventError, clip};
use idmint_core::id::Rejection;

/// Converts a JSON text to its canonical form.
///
/// Keys are in code point order at every level, and arrays keep their order. Strings escape only
/// `"`, `\` and control characters. Numbers are treated as doubles, and printed as in ECMAScript.
/// The only difference from RFC 8785 is the order of the keys, because RFC 8785 sorts them by
/// UTF-16 code units.
///
/// ```
/// use idmint_records::ledger::canonical_json;
///
/// assert_eq!(canonical_json(br#"{ "b": 1.0, "a": ["\u00e9", 1E2] }"#)?, r#"{"a":["é",100],"b":1}"#);
/// # Ok::<(), idmint_records::ledger::EventError>(())
/// ```
///
/// # Errors
/// Returns [`Rejection::InvalidJson`] if the text is not JSON, contains a lone surrogate, or is
/// nested deeper than 64. Returns [`Rejection::DuplicateKey`] if an object repeats a key. Returns
/// [`Rejection::NumberNotInteroperable`] if a number is outside the range of doubles, or if an
/// integer (a number without fraction and exponent) would be printed with other digits.
pub fn canonical_json(json: &[u8]) -> Result<String, EventError> {
    let mut scanner = Scanner::new(json)?;
    let mut out = Vec::with_capacity(json.len());
    CanonicalJson::default().value(&mut scanner, 0, &mut out)?;
    scanner.end()?;
    Ok(String::from_utf8(out).expect("made of UTF-8 and ASCII"))
}

/// Converts JSON to canonical JSON in one pass. A value of this type can be reused, so that its
/// buffers are allocated only once.
#[derive(Debug, Default)]
pub(in crate::ledger) struct CanonicalJson {
    /// The members of all JSON objects that are being read, in one list. The members of the
    /// outermost object come first.
    members: Vec<Member>,
    /// A buffer for sorting the members of an object.
    sorted: Vec<u8>,
}

/// A member of an object, as a range of the canonical output.
#[derive(Debug, Clone, Copy)]
struct Member {
    start: usize,
    key_end: usize,
    end: usize,
    has_escapes: bool,
}

impl Member {
    /// Returns the key of this JSON member, without quotes, from the canonical JSON `out`.
    fn key(self, out: &[u8]) -> &[u8] {
        &out[self.start + 1..self.key_end - 1]
    }

    /// Compares the keys of two members by their code points. If both keys have no escapes, this is
    /// the order of their bytes.
    fn compare(self, other: Member, out: &[u8]) -> Ordering {
        if self.has_escapes || other.has_escapes {
            return unescape(self.key(out)).cmp(unescape(other.key(out)));
        }
        self.key(out).cmp(other.key(out))
    }
}

impl CanonicalJson {
    /// Reads one value, and writes its canonical form. `depth` is the number of arrays and objects
    /// around it.
    ///
    /// # Errors
    /// Returns the same errors as [`canonical_json`]. After an error, the output is incomplete.
    pub(in crate::ledger) fn value(
        &mut self,
        scanner: &mut Scanner<'_>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), EventError> {
        scanner.skip_space();
        if depth == DEPTH_MAX && matches!(scanner.peek(), Some(b'{' | b'[')) {
            return Err(scanner.invalid(&format!(
                "arrays and objects are nested deeper than {DEPTH_MAX} levels"
            )));
        }
        let word = match scanner.peek() {
            Some(b'"') => {
                scanner.at += 1;
                return scanner.string_to_json(out).map(|_| ());
            }
            Some(b'-' | b'0'..=b'9') => return scanner.number(out),
            Some(b'{') => return self.object(scanner, depth + 1, out),
            Some(b'[') => return self.array(scanner, depth + 1, out),
            Some(b't') => "true",
            Some(b'f') => "false",
            _ => "null",
        };
        out.extend_from_slice(word.as_bytes());
        scanner.word(word)
    }

    fn array(
        &mut self,
        scanner: &mut Scanner<'_>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), EventError> {
        scanner.at += 1;
        out.push(b'[');
        if !scanner.eat(b']') {
            loop {
                self.value(scanner, depth, out)?;
                if scanner.is_last_item(b']', "`,` or `]`")? {
                    break;
                }
                out.push(b',');
            }
        }
        out.push(b']');
        Ok(())
    }

    fn object(
        &mut self,
        scanner: &mut Scanner<'_>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), EventError> {
        scanner.at += 1;
        out.push(b'{');
        let first = self.members.len();
        let mut is_sorted = true;
        if !scanner.eat(b'}') {
            loop {
                let start = out.len();
                let has_escapes = scanner.key(out)?;
                let mut member = Member {
                    start,
                    key_end: out.len(),
                    end: 0,
                    has_escapes,
                };
                if is_sorted && let Some(last) = self.members[first..].last() {
                    match last.compare(member, out) {
                        Ordering::Less => {}
                        Ordering::Equal => return Err(duplicate_key(member.key(out))),
                        Ordering::Greater => is_sorted = false,
                    }
                }
                out.push(b':');
                self.value(scanner, depth, out)?;
                member.end = out.len();
                self.members.push(member);
                if scanner.is_last_item(b'}', "`,` or `}`")? {
                    break;
                }
                out.push(b',');
            }
        }
        if !is_sorted {
            self.sort(first, out)?;
        }
        self.members.truncate(first);
        out.push(b'}');
        Ok(())
    }

    /// Sorts the members of the JSON object at the end of `out` by their keys. `first` is the index
    /// of the object's first member in `self.members`. Returns an error if two keys are the same.
    fn sort(&mut self, first: usize, out: &mut [u8]) -> Result<(), EventError> {
        let members = &mut self.members[first..];
        let start = members[0].start;
        members.sort_unstable_by(|a, b| a.compare(*b, out));
        if let Some([same, _]) = members
            .array_windows()
            .find(|[a, b]| a.compare(*b, out).is_eq())
        {
            return Err(duplicate_key(same.key(out)));
        }
        self.sorted.clear();
        for member in members {
            if !self.sorted.is_empty() {
                self.sorted.push(b',');
            }
            self.sorted
                .extend_from_slice(&out[member.start..member.end]);
        }
        out[start..].copy_from_slice(&self.sorted);
        Ok(())
    }

    /// Removes the members of objects that an error left incomplete.
    pub(in crate::ledger) fn clear(&mut self) {
        self.members.clear();
    }
}

impl Scanner<'_> {
    /// Reads a key of an object and the colon after it, and writes the key in canonical JSON.
    /// Returns `true` if the written key contains an escape.
    fn key(&mut self, out: &mut Vec<u8>) -> Result<bool, EventError> {
        if !self.eat(b'"') {
            return Err(self.unexpected("a key"));
        }
        let has_escapes = self.string_to_json(out)?;
        if self.eat(b':') {
            Ok(has_escapes)
        } else {
            Err(self.unexpected("`:`"))
        }
    }
}

#[cold]
fn duplicate_key(key: &[u8]) -> EventError {
    EventError::new(
        Rejection::DuplicateKey,
        format!("key \"{}\" is given twice in one object", clip(key)),
    )
}
