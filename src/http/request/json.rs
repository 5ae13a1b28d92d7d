//! JSON bodies, read strictly: nothing given twice, nothing nested without end, nothing left over.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

use crate::http::answer::{Problem, Slug};

/// How deep arrays and objects may be nested.
pub(crate) const JSON_DEPTH_MAX: usize = 64;

/// How many members an object may have of which every name is kept, to see that none is given twice.
const MEMBERS_MAX: usize = 1024;

/// Reads a whole body as one JSON value of this type; `invalid` is the kind of problem if the JSON is another value.
///
/// Two passes: the first looks only at the form, because a type that skips an unknown value would also skip the
/// duplicate keys and the nesting inside it.
///
/// # Errors
/// 400 `malformed-request` for what is not JSON, a key given twice, nesting deeper than [`JSON_DEPTH_MAX`], or bytes
/// after the value; `invalid` for JSON that is not a `T`, naming the place.
pub(crate) fn strict_json<'de, T: Deserialize<'de>>(
    body: &'de [u8],
    invalid: Slug,
) -> Result<T, Problem> {
    check_form(body)?;
    shallow_json(body, invalid)
}

/// As [`strict_json`], in one pass: for a `T` that skips no value, and keeps those of unknown form as they are for another
/// strict reader.
///
/// # Errors
/// As [`strict_json`], but not for keys given twice and nesting inside values that `T` keeps as they are.
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
        let detail = match path.as_str() {
            "." => inner.to_string(),
            path => format!("{path}: {inner}"),
        };
        Problem::new(invalid, detail).reason("json_value")
    })?;
    json.end().map_err(|error| unacceptable(&error))?;
    Ok(value)
}

fn unacceptable(error: &serde_json::Error) -> Problem {
    let problem = Problem::new(
        Slug::MalformedRequest,
        format!("the body is not acceptable JSON: {error}"),
    );
    problem.reason(if error.classify() == Category::Data {
        "json_form"
    } else {
        "json_syntax"
    })
}

/// A `T` that is written as a JSON object and as nothing else: what derives `Deserialize` also reads a list of its members.
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

/// Whether this is exactly one JSON value, without duplicate keys and not nested too deep.
///
/// # Errors
/// 400 `malformed-request`, as [`strict_json`].
pub(crate) fn check_form(body: &[u8]) -> Result<(), Problem> {
    let mut json = serde_json::Deserializer::from_slice(body);
    Form { depth: 0 }
        .deserialize(&mut json)
        .and_then(|()| json.end())
        .map_err(|error| unacceptable(&error))
}

/// Looks at the form of a value, `depth` levels down, and keeps nothing of it.
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
