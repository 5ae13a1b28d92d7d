//! Reads a definition from a TOML table. An error names the wrong key and says what is expected in
//! plain words, such as "a whole number from 0 to 255" instead of `u8`.

use std::fmt::Display;

use serde::de::value::StrDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use toml::{Table, Value};

/// Deserializes a TOML table. Errors contain the path of the wrong key, such as `fields[1].kind`.
///
/// # Errors
/// Returns [`ReadError`] if a key is unknown or missing, or a value has the wrong type.
pub(super) fn read_table<'de, T: Deserialize<'de>>(table: &'de Table) -> Result<T, ReadError> {
    T::deserialize(Keys(table))
}

/// A key that is unknown, missing, or has a wrong value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}{problem}")]
pub(super) struct ReadError {
    /// The path of the key, such as `fields[1].kind`.
    pub(super) key: String,
    /// The path of the key in words, as it appears in the error message, such as ``field `time`:
    /// kind: ``.
    place: String,
    problem: String,
}

impl ReadError {
    fn new(problem: String) -> ReadError {
        ReadError {
            key: String::new(),
            place: String::new(),
            problem,
        }
    }

    /// Adds `key` in front of the path. With `fields`, `[1].kind` becomes `fields[1].kind`.
    fn under_key(mut self, key: &str) -> ReadError {
        let is_item = self.key.starts_with('[');
        let dot = if is_item || self.key.is_empty() {
            ""
        } else {
            "."
        };
        self.key = format!("{key}{dot}{}", self.key);
        // Add nothing for an item of a list, because `under_item` has already added the item's name
        // to `place`, as in ``field `time`: ``.
        if !is_item {
            self.place = format!("{key}: {}", self.place);
        }
        self
    }

    /// Adds the index of a list item in front of the path. For example, `kind` in the second item
    /// becomes `[1].kind`. `list` is the key of the list, such as `fields`.
    fn under_item(mut self, list: &str, index: usize, item: &Value) -> ReadError {
        let dot = if self.key.is_empty() { "" } else { "." };
        self.key = format!("[{index}]{dot}{}", self.key);
        let end = if list.ends_with("xes") { "es" } else { "s" };
        let one = list.strip_suffix(end).unwrap_or(list);
        let name = item.get("name").and_then(Value::as_str);
        let item = name.map_or_else(
            || format!("{one} {}", index + 1),
            |name| format!("{one} `{name}`"),
        );
        self.place = format!("{item}: {}", self.place);
        self
    }
}

impl Error for ReadError {
    fn custom<T: Display>(problem: T) -> ReadError {
        ReadError::new(problem.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> ReadError {
        ReadError::new(format!("must be {}, got {}", words(expected), shown(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> ReadError {
        Error::invalid_type(found, expected)
    }

    fn invalid_length(len: usize, expected: &dyn Expected) -> ReadError {
        ReadError::new(format!("must be {}, got {len}", words(expected)))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> ReadError {
        let choice = choice(variant, expected);
        ReadError::new(format!("`{variant}` is not a possible value; {choice}"))
    }

    fn unknown_field(key: &str, expected: &'static [&'static str]) -> ReadError {
        ReadError::new(format!("unknown key; {}", choice(key, expected)))
    }

    fn missing_field(key: &'static str) -> ReadError {
        ReadError::new("this key is missing".to_owned()).under_key(key)
    }
}

fn choice(given: &str, expected: &[&str]) -> String {
    match nearest(given, expected.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("choose from `{}`", expected.join("`, `")),
    }
}

fn words(expected: &dyn Expected) -> String {
    let expected = expected.to_string();
    let words = match expected.as_str() {
        "u8" => "a whole number from 0 to 255",
        "u32" | "usize" => "a whole number from 0 to 4294967295",
        "string" | "a string" | "path string" => "a text",
        "a sequence" => "a list",
        "a boolean" => "true or false",
        "an array of length 2" => "a list of two numbers",
        "a map" => "a table",
        text if text.starts_with("struct ") => "a table",
        text => text,
    };
    words.to_owned()
}

fn shown(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(text) => format!("{text:?}"),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => number.to_string(),
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// Returns the word that is most similar to the misspelled word `given`. Returns `None` if more
/// than about a third of the letters differ in every word.
///
/// ```
/// use idmint_core::id::nearest;
///
/// assert_eq!(nearest("tiem", ["worker", "time"]), Some("time"));
/// assert_eq!(nearest("node", ["worker", "time"]), None);
/// ```
pub fn nearest<'a>(given: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = |word: &'a str| {
        let edits = edits(given.as_bytes(), word.as_bytes());
        (edits * 3 <= word.len() + 1).then_some((edits, word))
    };
    let nearest = words.into_iter().filter_map(near);
    nearest
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, word)| word)
}

/// Returns the edit distance of two words: the number of letters to add, remove, replace or swap
/// with a neighbour to turn one word into the other.
fn edits(one: &[u8], other: &[u8]) -> usize {
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
                let is_swap =
                    i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
                let swapped = if is_swap {
                    rows[i - 2][j - 2] + 1
                } else {
                    replaced
                };
                let shifted = rows[i - 1][j].min(rows[i][j - 1]) + 1;
                replaced.min(swapped).min(shifted)
            };
        }
    }
    rows[one.len()][other.len()]
}

/// A table that is being deserialized.
struct Keys<'de>(&'de Table);

/// A value that is being deserialized, and its key.
struct Keyed<'de> {
    key: &'de str,
    value: &'de Value,
}

impl<'de> Deserializer<'de> for Keys<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_map(Rows {
            rows: self.0.iter(),
            next: None,
        })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

impl<'de> Deserializer<'de> for Keyed<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.value {
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Boolean(value) => visitor.visit_bool(*value),
            Value::Datetime(_) => Err(ReadError::new("an instant must be in quotes".to_owned())),
            Value::Array(items) => visitor.visit_seq(Items {
                list: self.key,
                items,
                index: 0,
            }),
            Value::Table(table) => Keys(table).deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.value {
            Value::String(text) => visitor.visit_enum(into_deserializer(text)),
            _ => Err(ReadError::new(format!(
                "must be one of `{}`",
                variants.join("`, `")
            ))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Rows<'de> {
    rows: toml::map::Iter<'de, String, Value>,
    next: Option<(&'de String, &'de Value)>,
}

impl<'de> MapAccess<'de> for Rows<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        self.next = self.rows.next();
        let Some((key, _)) = self.next else {
            return Ok(None);
        };
        let read = seed.deserialize(into_deserializer(key));
        read.map(Some).map_err(|error| error.under_key(key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let (key, value) = self.next.take().expect("a key comes before its value");
        seed.deserialize(Keyed { key, value })
            .map_err(|error| error.under_key(key))
    }
}

struct Items<'de> {
    list: &'de str,
    items: &'de [Value],
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        let (list, index) = (self.list, self.index);
        let Some(value) = self.items.get(index) else {
            return Ok(None);
        };
        self.index += 1;
        let read = seed.deserialize(Keyed { key: list, value });
        read.map(Some)
            .map_err(|error| error.under_item(list, index, value))
    }
}

fn into_deserializer(text: &str) -> StrDeserializer<'_, ReadError> {
    text.into_deserializer()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::format::FormatDefinition;

    fn error_of(toml: &str) -> (String, String) {
        let table: Table = toml.parse().expect("TOML");
        let error = read_table::<FormatDefinition>(&table).expect_err(toml);
        (error.key.clone(), error.to_string())
    }

    #[test]
    fn an_error_has_the_path_of_its_key_and_the_place_in_words() {
        for (toml, key, text) in [
            (
                "epok = 1",
                "epok",
                "epok: unknown key; did you mean `epoch`?",
            ),
            (
                "fields = [{ name = 'a', codes = [{ suffix = 1 }], kind = 'time' }]",
                "fields[0].codes[0].suffix",
                "field `a`: code 1: suffix: must be a text, got 1",
            ),
            (
                "fields = [3]",
                "fields[0]",
                "field 1: must be a table, got 3",
            ),
            (
                "encodings = [{ kind = 'hashids', salt = true }]",
                "encodings[0].salt",
                "encoding 1: salt: a salt must be a text",
            ),
            (
                "encodings = []\nfields = []\nrule = 'random'",
                "summary",
                "summary: this key is missing",
            ),
            (
                "encodings = []\nepoch = 2025-01-01",
                "epoch",
                "epoch: an instant must be in quotes",
            ),
        ] {
            assert_eq!(error_of(toml), (key.to_owned(), text.to_owned()), "{toml}");
        }
    }

    #[test]
    fn a_similar_word_is_nearer_than_a_short_one() {
        for (given, near) in [
            ("tiem", Some("time")),
            ("bist", Some("bits")),
            ("wroker", Some("worker")),
            ("payments", Some("payment")),
            ("node", None),
            ("", None),
        ] {
            let words = ["time", "bits", "worker", "payment", "name", "id"];
            assert_eq!(nearest(given, words), near, "{given}");
        }
    }
}
