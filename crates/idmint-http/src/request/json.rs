//! Parses JSON bodies strictly. Duplicate keys, deep nesting, and bytes after the value are errors.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::answer::{Problem, Slug};

/// The maximum nesting depth of arrays and objects.
pub(crate) const JSON_DEPTH_MAX: usize = 64;

/// The maximum number of members of an object. All member names are kept in memory to find
/// duplicates.
const MEMBERS_MAX: usize = 1024;

/// Parses a whole body as one JSON value of type `T`. `invalid` is the kind of problem for valid
/// JSON that is not a `T`.
///
/// The body is parsed twice. The first pass checks only the form, because a `T` that skips an
/// unknown value would not notice duplicate keys and deep nesting inside that value.
///
/// # Errors
/// Returns 400 `malformed-request` if the body is not JSON, has a duplicate key, is nested deeper
/// than [`JSON_DEPTH_MAX`], or has bytes after the value. Returns a problem of the kind `invalid`,
/// which names the position, if the JSON is not a `T`.
pub(crate) fn strict_json<'de, T: Deserialize<'de>>(
    body: &'de [u8],
    invalid: Slug,
) -> Result<T, Problem> {
    check_form(body)?;
    shallow_json(body, invalid)
}

/// Parses a whole body like [`strict_json`], but needs only one pass if the body is valid. `T` must
/// not skip any value. `T` may keep a value as raw JSON, but a strict parser must then read that
/// JSON later.
///
/// # Errors
/// Returns the errors of [`strict_json`], but does not find duplicate keys and deep nesting inside
/// raw JSON that `T` keeps.
pub(crate) fn shallow_json<'de, T: Deserialize<'de>>(
    body: &'de [u8],
    invalid: Slug,
) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        if inner.classify() != Category::Data {
            return unacceptable(&inner);
        }
        // serde_json gives a duplicate key the same error category, `Data`, as a value of the wrong
        // type. Return a duplicate key as malformed JSON instead.
        if let Err(malformed) = check_form(body) {
            return malformed;
        }
        let detail = match path.as_str() {
            "." => inner.to_string(),
            path => format!("{path}: {inner}"),
        };
        Problem::new(invalid, detail).reason("json_value")
    })?;
    json.end().map_err(|error| unacceptable(&error))?;
    Ok(value)
}

/// Parses the values of a JSON list one by one. Errors name the line and column in the whole body.
pub(crate) struct ListReader<'a> {
    body: &'a [u8],
    /// The number of bytes that were searched for line ends, and the number of line ends found.
    counted: (usize, usize),
    /// The offset at which the last line of the searched bytes begins.
    line_begin: usize,
}

impl<'a> ListReader<'a> {
    /// Creates a reader for the values of the JSON list `body`, checked by [`strict_json`].
    pub(crate) fn new(body: &'a [u8]) -> ListReader<'a> {
        ListReader {
            body,
            counted: (0, 0),
            line_begin: 0,
        }
    }

    /// Parses the value with this index in the list. `value` must be a slice of the body. The
    /// values must be passed in the order of the list.
    ///
    /// # Errors
    /// Returns the error `detail` that [`strict_json`] would return for the whole list.
    pub(crate) fn read<T: Deserialize<'a>>(
        &mut self,
        index: usize,
        value: &'a RawValue,
    ) -> Result<T, String> {
        let mut json = serde_json::Deserializer::from_str(value.get());
        serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = match error.path().to_string().as_str() {
                "." => String::new(),
                path => format!(".{path}"),
            };
            let inner = error.into_inner();
            let place = |line, column| format!(" at line {line} column {column}");
            let text = inner.to_string();
            let what = text.strip_suffix(&place(inner.line(), inner.column()));
            let (lines, columns) = self.before(value);
            let columns = if inner.line() == 1 { columns } else { 0 };
            let place = place(lines + inner.line(), columns + inner.column());
            let detail = format!("[{index}]{path}: {}{place}", what.unwrap_or(&text));
            // Create a `Problem` only for its detail, because `Problem::new` shortens long details.
            let problem = Problem::new(Slug::InvalidReport, detail);
            problem.detail().to_owned()
        })
    }

    /// Returns the number of lines before the line of a value, and the number of bytes before the
    /// value in its line.
    fn before(&mut self, value: &RawValue) -> (usize, usize) {
        let offset = value.get().as_ptr().addr() - self.body.as_ptr().addr();
        let (from, mut lines) = self.counted;
        for (at, byte) in (from..).zip(&self.body[from..offset]) {
            if *byte == b'\n' {
                lines += 1;
                self.line_begin = at + 1;
            }
        }
        self.counted = (offset, lines);
        (lines, offset - self.line_begin)
    }
}

fn unacceptable(error: &serde_json::Error) -> Problem {
    let problem = Problem::new(
        Slug::MalformedRequest,
        format!("the body is not valid JSON: {error}"),
    );
    problem.reason(if error.classify() == Category::Data {
        "json_form"
    } else {
        "json_syntax"
    })
}

/// A `T` parsed from JSON that must be an object. The `Deserialize` that serde derives for a struct
/// would also accept an array of the members' values.
#[derive(Debug, Default)]
pub(crate) struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(Object)
    }
}

/// Checks that `body` is exactly one JSON value, without duplicate keys or too deep nesting.
///
/// # Errors
/// Returns 400 `malformed-request`, like [`strict_json`].
pub(crate) fn check_form(body: &[u8]) -> Result<(), Problem> {
    let mut json = serde_json::Deserializer::from_slice(body);
    Form { depth: 0 }
        .deserialize(&mut json)
        .and_then(|()| json.end())
        .map_err(|error| unacceptable(&error))
}

/// A visitor that checks a JSON value at nesting level `depth` for duplicate keys and deep nesting.
/// It discards the value.
#[derive(Clone, Copy)]
struct Form {
    depth: usize,
}

impl Form {
    fn inside<E: de::Error>(self) -> Result<Self, E> {
        if self.depth == JSON_DEPTH_MAX {
            return Err(E::custom(format_args!(
                "nested deeper than {JSON_DEPTH_MAX} levels"
            )));
        }
        Ok(Self {
            depth: self.depth + 1,
        })
    }
}

impl<'de> DeserializeSeed<'de> for Form {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Form {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inside = self.inside()?;
        while items.next_element_seed(inside)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let inside = self.inside()?;
        let mut keys = HashSet::new();
        while let Some(key) = members.next_key::<Key<'de>>()? {
            if let Some(Key(repeated)) = keys.replace(key) {
                return Err(de::Error::custom(format_args!(
                    "key {repeated:?} is given twice"
                )));
            }
            if keys.len() > MEMBERS_MAX {
                return Err(de::Error::custom(format_args!(
                    "an object has more than {MEMBERS_MAX} members"
                )));
            }
            members.next_value_seed(inside)?;
        }
        Ok(())
    }
}

#[derive(Deserialize, PartialEq, Eq, Hash)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        count: u32,
    }

    #[test]
    fn an_object_is_no_list_of_its_members() {
        let read =
            |body: &str| strict_json::<Object<Wanted>>(body.as_bytes(), Slug::InvalidParameter);
        assert_eq!(read("{\"count\":7}").expect("an object").0.count, 7);
        let problem = read("[7]").expect_err("a list");
        assert!(
            problem.detail().contains("expected an object"),
            "{}",
            problem.detail()
        );
        assert!(
            strict_json::<Wanted>(b"[7]", Slug::InvalidParameter).is_ok(),
            "what the wrapper is for"
        );
    }

    fn slug_of(body: &str) -> Slug {
        strict_json::<Wanted>(body.as_bytes(), Slug::InvalidParameter)
            .expect_err(body)
            .slug()
    }

    #[test]
    fn what_is_wanted_is_read() {
        let wanted: Wanted =
            strict_json(b" {\"count\": 7}\r\n", Slug::InvalidParameter).expect("valid");
        assert_eq!(wanted.count, 7);
    }

    #[test]
    fn what_is_not_json_is_malformed() {
        for body in [
            "",
            " ",
            "{",
            "{\"count\":7}{}",
            "{\"count\":7},",
            "{\"count\":07}",
            "{'count':7}",
            "[1,]",
            "nul",
            "{\"count\":7,\"count\":7}",
            "{\"count\":7,\"c\\u006funt\":7}",
            "[{\"a\":[{\"b\":1,\"b\":2}]}]",
            "\"\\ud800\"",
        ] {
            assert_eq!(slug_of(body), Slug::MalformedRequest, "{body}");
        }
        let not_utf8 = strict_json::<Value>(b"{\"a\":\"\xff\"}", Slug::InvalidParameter)
            .expect_err("not UTF-8");
        assert_eq!(not_utf8.slug(), Slug::MalformedRequest);
    }

    #[test]
    fn a_key_given_twice_is_malformed_in_one_pass_too() {
        for (body, slug) in [
            ("{\"count\":7,\"count\":7}", Slug::MalformedRequest),
            ("{\"x\":7,\"x\":7}", Slug::MalformedRequest),
            ("{\"count\":7,\"x\":7}", Slug::InvalidEvent),
        ] {
            let problem = shallow_json::<Wanted>(body.as_bytes(), Slug::InvalidEvent);
            assert_eq!(problem.expect_err(body).slug(), slug, "{body}");
        }
    }

    #[test]
    fn another_value_is_invalid_and_its_place_is_named() {
        for body in [
            "{}",
            "[]",
            "7",
            "{\"count\":-1}",
            "{\"count\":1e3}",
            "{\"count\":\"7\"}",
            "{\"count\":7,\"x\":1}",
        ] {
            assert_eq!(slug_of(body), Slug::InvalidParameter, "{body}");
        }
        let problem =
            strict_json::<Wanted>(b"{\"count\":\"7\"}", Slug::InvalidEvent).expect_err("a string");
        assert!(
            problem.detail().starts_with("count: invalid type: string"),
            "{}",
            problem.detail()
        );
    }

    #[test]
    fn nesting_ends_at_the_limit() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let nested = |depth| format!("{}1{}", open.repeat(depth), close.repeat(depth));
            assert!(check_form(nested(JSON_DEPTH_MAX).as_bytes()).is_ok());
            assert!(check_form(nested(JSON_DEPTH_MAX + 1).as_bytes()).is_err());
            assert!(check_form(nested(100_000).as_bytes()).is_err());
        }
    }
}
