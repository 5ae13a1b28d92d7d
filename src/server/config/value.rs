//! Parsers for single values. Each parser has a description of the values that it accepts. The
//! error for any other value quotes this description and the value.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, SeqAccess, Unexpected, Visitor,
};

use idmint_core::time::{format_duration, parse_duration};

/// Parses a whole number with the function `number`, or a text with the function `text`. The error
/// message uses `expected` as the description of the accepted values.
pub(super) fn read_number_or_text<'de, D: Deserializer<'de>, V>(
    deserializer: D,
    expected: impl fmt::Display,
    number: impl Fn(i64) -> Option<V>,
    text: impl Fn(&str) -> Option<V>,
) -> Result<V, D::Error> {
    deserializer.deserialize_any(NumberOrText {
        expected,
        number,
        text,
    })
}

/// Parses a text with `read`.
pub(super) fn read_text<'de, D: Deserializer<'de>, V>(
    deserializer: D,
    expected: impl fmt::Display,
    read: impl Fn(&str) -> Option<V>,
) -> Result<V, D::Error> {
    read_number_or_text(deserializer, expected, |_| None, read)
}

/// Parses a whole number from `MIN` to `MAX`, both included.
pub(super) fn whole<'de, D, N, const MIN: i64, const MAX: i64>(
    deserializer: D,
) -> Result<N, D::Error>
where
    D: Deserializer<'de>,
    N: TryFrom<i64>,
{
    let expected = format_args!("a whole number from {MIN} to {MAX}");
    let within = |number: &i64| (MIN..=MAX).contains(number);
    let read = |number| Some(number).filter(within)?.try_into().ok();
    read_number_or_text(deserializer, expected, read, |_| None)
}

/// Parses like [`whole`], for an optional setting.
pub(super) fn some_whole<'de, D, N, const MIN: i64, const MAX: i64>(
    deserializer: D,
) -> Result<Option<N>, D::Error>
where
    D: Deserializer<'de>,
    N: TryFrom<i64>,
{
    whole::<D, N, MIN, MAX>(deserializer).map(Some)
}

/// Parses a list without duplicates. A list that names an item twice is refused, because this is
/// always a mistake.
pub(super) fn distinct<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + PartialEq,
{
    deserializer.deserialize_seq(Distinct(PhantomData))
}

/// Parses a list without duplicates, each entry like [`read_text`].
pub(super) fn distinct_texts<'de, D, V>(
    deserializer: D,
    expected: &str,
    read: impl Fn(&str) -> Option<V>,
) -> Result<Vec<V>, D::Error>
where
    D: Deserializer<'de>,
    V: PartialEq,
{
    deserializer.deserialize_seq(Distinct(&TextEntry { expected, read }))
}

struct TextEntry<'a, R> {
    expected: &'a str,
    read: R,
}

impl<'de, V, R: Fn(&str) -> Option<V>> DeserializeSeed<'de> for &TextEntry<'_, R> {
    type Value = V;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V, D::Error> {
        read_text(deserializer, self.expected, &self.read)
    }
}

struct NumberOrText<E, N, T> {
    expected: E,
    number: N,
    text: T,
}

impl<V, E, N, T> Visitor<'_> for NumberOrText<E, N, T>
where
    E: fmt::Display,
    N: Fn(i64) -> Option<V>,
    T: Fn(&str) -> Option<V>,
{
    type Value = V;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.expected)
    }

    fn visit_i64<X: Error>(self, number: i64) -> Result<V, X> {
        (self.number)(number).ok_or_else(|| X::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_str<X: Error>(self, text: &str) -> Result<V, X> {
        (self.text)(text).ok_or_else(|| X::invalid_value(Unexpected::Str(text), &self))
    }
}

struct Distinct<S>(S);

impl<'de, S: DeserializeSeed<'de> + Copy> Visitor<'de> for Distinct<S>
where
    S::Value: PartialEq,
{
    type Value = Vec<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list such as [\"one\", \"another\"]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(next) = seq.next_element_seed(self.0)? {
            if let Some(first) = list.iter().position(|known| *known == next) {
                let (first, again) = (first + 1, list.len() + 1);
                return Err(A::Error::custom(format_args!(
                    "entry {again} of the list repeats entry {first}"
                )));
            }
            list.push(next);
        }
        Ok(list)
    }
}

/// Parses a duration from `MIN_MS` to `MAX_MS` milliseconds, both included.
pub(super) fn between<'de, D, const MIN_MS: u64, const MAX_MS: u64>(
    deserializer: D,
) -> Result<Duration, D::Error>
where
    D: Deserializer<'de>,
{
    let [min, max] = [MIN_MS, MAX_MS].map(Duration::from_millis);
    let [min_text, max_text] = [min, max].map(format_duration);
    let expected = format_args!(
        "a duration from \"{min_text}\" to \"{max_text}\", a whole number and one of us, ms, s, m, h, d"
    );
    read_text(deserializer, expected, |text| {
        parse_duration(text).filter(|duration| (min..=max).contains(duration))
    })
}

/// Parses like [`between`], for an optional setting.
pub(super) fn some_between<'de, D, const MIN_MS: u64, const MAX_MS: u64>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error>
where
    D: Deserializer<'de>,
{
    between::<D, MIN_MS, MAX_MS>(deserializer).map(Some)
}

/// Parses a size from `MIN_MIB` to `MAX_MIB` mebibytes, both included.
pub(super) fn mebibytes<'de, D, const MIN_MIB: usize, const MAX_MIB: usize>(
    deserializer: D,
) -> Result<usize, D::Error>
where
    D: Deserializer<'de>,
{
    let expected =
        format_args!("a size from \"{MIN_MIB}MiB\" to \"{MAX_MIB}MiB\", a whole number and MiB");
    read_text(deserializer, expected, |text| {
        let number = text.strip_suffix("MiB")?;
        let is_plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number
            .parse()
            .ok()
            .filter(|number| is_plain && (MIN_MIB..=MAX_MIB).contains(number))?;
        number.checked_mul(1024 * 1024)
    })
}
