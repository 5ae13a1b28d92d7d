//! Reads the subset of YAML and JSON Schema that `openapi.yaml` uses. Any other syntax is an error,
//! so that no part of the document goes unchecked.

use std::iter::Peekable;

use regex_lite::Regex;
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// Returns `openapi.yaml` as JSON.
pub(crate) fn openapi() -> Value {
    value_of_yaml(include_str!("../../openapi.yaml"))
}

/// Parses a YAML text that contains a single document.
pub(crate) fn value_of_yaml(text: &str) -> Value {
    let events = Parser::new_from_str(text);
    let mut events = events.map(|event| event.expect("it is YAML").0).peekable();
    assert!(matches!(events.next(), Some(Event::StreamStart)));
    assert!(matches!(events.next(), Some(Event::DocumentStart(_))));
    let document = value_of(&mut events);
    assert!(matches!(events.next(), Some(Event::DocumentEnd)));
    assert!(
        matches!(events.next(), Some(Event::StreamEnd)),
        "one document"
    );
    document
}

fn value_of<'a>(events: &mut Peekable<impl Iterator<Item = Event<'a>>>) -> Value {
    match events.next().expect("a value") {
        Event::Scalar(text, ScalarStyle::Plain, 0, None) => plain(&text),
        Event::Scalar(text, _, 0, None) => Value::String(text.into_owned()),
        Event::SequenceStart(0, None) => {
            let mut items = Vec::new();
            while events
                .next_if(|event| matches!(event, Event::SequenceEnd))
                .is_none()
            {
                items.push(value_of(events));
            }
            Value::Array(items)
        }
        Event::MappingStart(0, None) => {
            let mut members = Map::new();
            while events
                .next_if(|event| matches!(event, Event::MappingEnd))
                .is_none()
            {
                let Value::String(key) = value_of(events) else {
                    panic!("keys are texts; quote the numbers among them")
                };
                assert!(
                    !members.contains_key(&key),
                    "{key} stands twice in {members:?}"
                );
                let value = value_of(events);
                members.insert(key, value);
            }
            Value::Object(members)
        }
        other => panic!("{other:?} has no place in this document: neither anchors nor tags"),
    }
}

/// Converts an unquoted scalar to a value, according to the core schema of YAML 1.2.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(integer), _) => Value::from(integer),
            // Require a digit at the end, because Rust also parses words such as `nan` as numbers.
            (_, Ok(fraction)) if text.ends_with(|last: char| last.is_ascii_digit()) => {
                Value::from(fraction)
            }
            _ => Value::from(text),
        },
    }
}

/// Returns the value that a `$ref` refers to. Returns any other value unchanged.
pub(crate) fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let Some(reference) = value.get("$ref") else {
        return value;
    };
    let pointer = reference
        .as_str()
        .and_then(|text| text.strip_prefix('#'))
        .expect("a reference within the document");
    let target = document
        .pointer(pointer)
        .unwrap_or_else(|| panic!("{reference} refers to nothing"));
    resolved(document, target)
}

/// Returns a message for each violation of `schema` by `value`.
pub(crate) fn faults(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(document, schema, value, "$", &mut faults);
    faults
}

fn check(document: &Value, schema: &Value, value: &Value, place: &str, faults: &mut Vec<String>) {
    let rules = schema
        .as_object()
        .unwrap_or_else(|| panic!("{place}: {schema} is no schema"));
    let mut must = |holds: bool, rule: &str| {
        if !holds {
            faults.push(format!("{place}: {value} breaks {rule}"));
        }
    };
    for (keyword, rule) in rules {
        match keyword.as_str() {
            "type" => must(
                names(rule).iter().any(|name| is_a(value, name)),
                &format!("type {rule}"),
            ),
            "const" => must(value == rule, &format!("const {rule}")),
            "enum" => must(
                rule.as_array().unwrap().contains(value),
                &format!("enum {rule}"),
            ),
            "minimum" => must(
                value.as_i64().is_none_or(|it| it >= rule.as_i64().unwrap()),
                &format!("minimum {rule}"),
            ),
            "maximum" => must(
                value.as_i64().is_none_or(|it| it <= rule.as_i64().unwrap()),
                &format!("maximum {rule}"),
            ),
            "minItems" | "maxItems" => {
                let (bound, len) = (
                    rule.as_u64().unwrap(),
                    value.as_array().map(|items| items.len() as u64),
                );
                let holds = len.is_none_or(|len| {
                    if keyword == "minItems" {
                        len >= bound
                    } else {
                        len <= bound
                    }
                });
                must(holds, &format!("{keyword} {rule}"));
            }
            "minLength" | "maxLength" => {
                let (bound, len) = (
                    rule.as_u64().unwrap(),
                    value.as_str().map(|text| text.chars().count() as u64),
                );
                let holds = len.is_none_or(|len| {
                    if keyword == "minLength" {
                        len >= bound
                    } else {
                        len <= bound
                    }
                });
                must(holds, &format!("{keyword} {rule}"));
            }
            "pattern" => {
                let pattern = Regex::new(rule.as_str().unwrap()).unwrap();
                must(
                    value.as_str().is_none_or(|text| pattern.is_match(text)),
                    &format!("pattern {rule}"),
                );
            }
            "required" => {
                for name in names(rule) {
                    must(
                        value
                            .as_object()
                            .is_none_or(|members| members.contains_key(name)),
                        &format!("required {name}"),
                    );
                }
            }
            "oneOf" | "anyOf" => {
                let fitting = rule
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|one| self::faults(document, one, value).is_empty());
                let count = fitting.count();
                must(count == 1 || count > 1 && keyword == "anyOf", keyword);
            }
            "allOf" => {
                for one in rule.as_array().unwrap() {
                    must(self::faults(document, one, value).is_empty(), keyword);
                }
            }
            "format" => must(
                rule == "int64" && (value.is_i64() || value.is_null()),
                &format!("format {rule}"),
            ),
            "$ref" | "properties" | "additionalProperties" | "items" | "description" => {}
            other => panic!("{place}: this test does not know the keyword {other}"),
        }
    }
    if schema.get("$ref").is_some() {
        check(document, resolved(document, schema), value, place, faults);
    }
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        if let Some(items) = schema.get("items") {
            check(document, items, item, &format!("{place}[{at}]"), faults);
        }
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        let place = format!("{place}.{name}");
        match (
            schema.get("properties").and_then(|known| known.get(name)),
            schema.get("additionalProperties"),
        ) {
            (Some(known), _) => check(document, known, member, &place, faults),
            (None, Some(Value::Bool(false))) => {
                faults.push(format!("{place} is not in the schema"))
            }
            (None, Some(other)) => check(document, other, member, &place, faults),
            (None, None) => {}
        }
    }
}

fn names(rule: &Value) -> Vec<&str> {
    match rule {
        Value::Array(names) => names.iter().map(|name| name.as_str().unwrap()).collect(),
        name => vec![name.as_str().unwrap()],
    }
}

fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type of JSON Schema that this document needs"),
    }
}

#[test]
fn what_a_schema_forbids_is_found() {
    let document = serde_json::json!({ "positive": { "type": "integer", "minimum": 1 } });
    let schema = serde_json::json!({
        "type": "object", "additionalProperties": false, "required": ["count"],
        "properties": { "count": { "$ref": "#/positive" }, "ids": { "type": "array", "items": { "pattern": "^a$" } } },
    });
    let fault = |value: Value| faults(&document, &schema, &value);
    assert_eq!(
        fault(serde_json::json!({ "count": 1, "ids": ["a"] })),
        [""; 0]
    );
    for wrong in [
        serde_json::json!([]),
        serde_json::json!({}),
        serde_json::json!({ "count": 0 }),
        serde_json::json!({ "count": "1" }),
        serde_json::json!({ "count": 1, "more": 1 }),
        serde_json::json!({ "count": 1, "ids": ["a", "b"] }),
    ] {
        assert_eq!(fault(wrong.clone()).len(), 1, "{wrong}");
    }
}
