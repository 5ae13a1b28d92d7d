//! Checks that all JSON texts with the same meaning give the same canonical text, and that
//! canonical JSON has the meaning of the original.

use std::fmt::Write;

use idmint_records::ledger::{ChainChecker, Event, canonical_json};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Number, Value};

/// Generates texts with all characters that must be escaped, and with characters that are sorted
/// differently by UTF-16 code units than by code points.
fn any_text() -> impl Strategy<Value = String> {
    let characters = prop_oneof![
        4 => prop::char::range(' ', '~'),
        1 => prop::char::range('\0', '\u{1f}'),
        1 => prop::sample::select(vec!['"', '\\', '/', '\u{7f}', 'é', '\u{2028}', '\u{fb33}', '\u{ffff}', '😀']),
    ];
    vec(characters, 0..12).prop_map(String::from_iter)
}

fn any_number() -> impl Strategy<Value = Number> {
    prop_oneof![
        (-(1_i64 << 53) + 1..1_i64 << 53).prop_map(Number::from),
        any::<f64>().prop_filter_map("finite", Number::from_f64),
        (-999_i32..1000, 0..6).prop_filter_map("finite", |(number, digits)| {
            Number::from_f64(f64::from(number) / 10_f64.powi(digits))
        }),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any_number().prop_map(Value::Number),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Value::from),
            btree_map(any_text(), inner, 0..8)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

/// A stream of choices that decides how the same document is written, such as its spacing and
/// escapes.
struct Choices<'a>(std::iter::Cycle<std::slice::Iter<'a, u8>>);

impl Choices<'_> {
    fn pick(&mut self, count: usize) -> usize {
        usize::from(*self.0.next().unwrap()) % count
    }

    fn space(&mut self, out: &mut String) {
        out.push_str(["", "", " ", "\n", "\t\r "][self.pick(5)]);
    }

    fn string(&mut self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            let must = matches!(c, '"' | '\\' | '\0'..='\u{1f}');
            match self.pick(4) {
                0 => c
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .for_each(|unit| write!(out, "\\u{unit:04X}").unwrap()),
                1 if c == '/' => out.push_str("\\/"),
                _ if must => {
                    let quoted = serde_json::to_string(&c).unwrap();
                    out.push_str(&quoted[1..quoted.len() - 1]);
                }
                _ => out.push(c),
            }
        }
        out.push('"');
    }

    fn value(&mut self, value: &Value, out: &mut String) {
        self.space(out);
        match value {
            Value::String(text) => self.string(text, out),
            Value::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    self.value(item, out);
                }
                self.space(out);
                out.push(']');
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                let len = members.len();
                (0..len).for_each(|at| members.swap(at, at + self.pick(len - at)));
                out.push('{');
                for (at, (key, item)) in members.into_iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    self.space(out);
                    self.string(key, out);
                    self.space(out);
                    out.push(':');
                    self.value(item, out);
                }
                self.space(out);
                out.push('}');
            }
            _ => write!(out, "{value}").unwrap(),
        }
        self.space(out);
    }
}

fn write_with(value: &Value, choices: &[u8]) -> String {
    let mut out = String::new();
    Choices(choices.iter().cycle()).value(value, &mut out);
    out
}

/// Returns `true` if two documents have the same meaning. Numbers are compared as doubles, and the
/// last bits may differ because serde_json is not exact.
fn says_the_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            a == b || a.to_bits().abs_diff(b.to_bits()) <= 16
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| says_the_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| says_the_same(a, b)))
        }
        _ => a == b,
    }
}

proptest! {
    #[test]
    fn all_spellings_of_a_document_have_one_canonical_form(
        value in any_json(), first in vec(any::<u8>(), 1..40), second in vec(any::<u8>(), 1..40),
    ) {
        let spellings = [write_with(&value, &first), write_with(&value, &second)];
        let [one, other] = spellings.map(|text| canonical_json(text.as_bytes()));
        let canonical = one.unwrap();
        prop_assert_eq!(&canonical, &other.unwrap());
        prop_assert_eq!(canonical_json(canonical.as_bytes()).unwrap(), canonical.as_str());
        let read: Value = serde_json::from_str(&canonical).unwrap();
        prop_assert!(says_the_same(&read, &value), "{} from {}", canonical, value);
    }

    #[test]
    fn a_number_is_printed_as_the_nearest_double_is(token in "-?(0|[1-9][0-9]{0,14})\\.[0-9]{1,17}") {
        let value: f64 = token.parse().unwrap();
        let canonical = canonical_json(token.as_bytes()).unwrap();
        prop_assert_eq!(ryu_js::Buffer::new().format(value).to_owned(), canonical.as_str());
        prop_assert_eq!(canonical.parse::<f64>().unwrap(), value);
    }

    #[test]
    fn a_small_number_is_printed_as_the_nearest_double_is(token in "-?0\\.0{0,9}[0-9]{1,9}") {
        let value: f64 = token.parse().unwrap();
        prop_assert_eq!(ryu_js::Buffer::new().format(value).to_owned(), canonical_json(token.as_bytes()).unwrap());
    }

    #[test]
    fn a_double_survives(value in any::<f64>().prop_filter("finite", |value| value.is_finite())) {
        let canonical = canonical_json(format!("{value:e}").as_bytes()).unwrap();
        prop_assert_eq!(canonical.parse::<f64>().unwrap(), value);
    }

    #[test]
    fn an_integer_is_kept_or_refused_and_never_changed(value in any::<i128>(), shift in 60_u32..127) {
        let token = (value >> shift).to_string();
        match canonical_json(token.as_bytes()) {
            Ok(canonical) => prop_assert_eq!(canonical, token),
            Err(error) => prop_assert_eq!(error.reason(), "number_not_interoperable"),
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        drop((canonical_json(&bytes), Event::from_json(&bytes), ChainChecker::from_genesis().check(&bytes)));
    }

    #[test]
    fn a_document_that_lost_or_changed_a_byte_is_read_as_others_read_it(
        value in any_json(), choices in vec(any::<u8>(), 1..40), at in any::<prop::sample::Index>(), byte in b' '..b'~',
        is_lost in any::<bool>(),
    ) {
        let mut text = write_with(&value, &choices).into_bytes();
        let at = at.index(text.len());
        if is_lost { text.remove(at); } else { text[at] = byte; }
        let read = serde_json::from_slice::<Value>(&text);
        match (canonical_json(&text), read) {
            (Ok(canonical), Ok(read)) => {
                let again: Value = serde_json::from_str(&canonical).unwrap();
                prop_assert!(says_the_same(&again, &read), "{}", String::from_utf8_lossy(&text));
            }
            (Ok(canonical), Err(error)) => prop_assert!(false, "{canonical}: {error}"),
            // Canonical JSON is stricter than serde_json. It refuses duplicate keys, and integers
            // that a double cannot represent exactly.
            (Err(error), Ok(_)) => prop_assert!(
                ["duplicate_key", "number_not_interoperable"].contains(&error.reason()), "{}: {}", error, String::from_utf8_lossy(&text)
            ),
            (Err(_), Err(_)) => {}
        }
    }
}

#[test]
fn nesting_has_a_bound_and_is_refused_beyond_it() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(canonical_json(nested(64).as_bytes()), Ok(nested(64)));
    let error = canonical_json(nested(65).as_bytes()).unwrap_err();
    assert_eq!(error.reason(), "invalid_json");
    assert!(
        error.to_string().contains("nested deeper than 64 levels"),
        "{error}"
    );
    assert!(canonical_json("[".repeat(1_000_000).as_bytes()).is_err());
    let event = |depth| {
        format!(
            r#"{{"event":"a","entities":{{}},"data":{}}}"#,
            nested(depth)
        )
    };
    assert!(Event::from_json(event(63).as_bytes()).is_ok());
    assert!(Event::from_json(event(64).as_bytes()).is_err());
}

#[test]
fn a_number_that_other_readers_miss_is_kept() {
    // For this number, serde_json computes a double that is two units in the last place too large.
    // idmint must keep the number exactly.
    assert_eq!(
        canonical_json(b"9.267513576289265e-35").as_deref(),
        Ok("9.267513576289265e-35")
    );
}

#[test]
fn keys_are_ordered_and_told_apart_by_what_they_say() {
    // A quote in a key is written as `\"`. If the written form were sorted, the backslash would put
    // this key after `#`. The quote itself sorts before `#`.
    assert_eq!(
        canonical_json(br##"{"#":1,"\"":2,"\u0001":3,"a":4}"##).as_deref(),
        Ok(r##"{"\u0001":3,"\"":2,"#":1,"a":4}"##)
    );
    for json in [
        r#"{"a":1,"\u0061":2}"#,
        r#"{"b":1,"a":2,"b":3}"#,
        r#"{"\n":1,"a":2,"\u000A":3}"#,
    ] {
        assert_eq!(
            canonical_json(json.as_bytes()).unwrap_err().reason(),
            "duplicate_key",
            "{json}"
        );
    }
}
