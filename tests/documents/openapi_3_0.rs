//! Generates `openapi-3.0.yaml`, which is `openapi.yaml` translated to OpenAPI 3.0. Some client
//! generators cannot read a newer version.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::schema::{openapi, resolved, value_of_yaml};

const FILE: &str = "openapi-3.0.yaml";

const HEAD: &str = "# Made of openapi.yaml, for generators that read OpenAPI 3.0 alone: UPDATE_DOCS=1 cargo test --test documents\n";

/// The top-level members of the document, in the order that is easiest to read.
const PARTS: [&str; 6] = ["openapi", "info", "servers", "tags", "paths", "components"];

#[test]
fn the_document_for_openapi_3_0_is_made_of_the_other() {
    let expected = document();
    let mut text = HEAD.to_owned();
    for part in PARTS {
        write_member(&mut text, 0, part, &expected[part]);
    }
    assert_eq!(
        expected.as_object().map(Map::len),
        Some(PARTS.len()),
        "a part is left out"
    );
    assert_eq!(value_of_yaml(&text), expected, "it is read as it was meant");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert!(
        fs::read_to_string(path).unwrap() == text,
        "{FILE} is not made of openapi.yaml: UPDATE_DOCS=1 makes it"
    );
}

#[test]
fn nothing_in_it_is_of_a_later_version() {
    let document = document();
    let mut schemas = 0;
    each(&document, &mut |value| {
        let Value::Object(members) = value else {
            return;
        };
        assert!(
            !members.contains_key("const") && !members.contains_key("identifier"),
            "{value}"
        );
        assert!(
            !members.contains_key("oneOf"),
            "a reader that overlooks what it does not know finds several: {value}"
        );
        assert!(
            !members.contains_key("$ref") || members.len() == 1,
            "what stands beside a $ref is not read: {value}"
        );
        let Some(name) = members
            .get("type")
            .and_then(|name| name.as_str().map(str::to_owned))
        else {
            assert!(!members.get("type").is_some_and(Value::is_array), "{value}");
            return;
        };
        assert!(name != "null" && name != "mutualTLS", "{value}");
        schemas += usize::from(name == "object" || name == "string" || name == "integer");
    });
    assert!(schemas > 100, "only {schemas} were looked at");
    assert_eq!(document["openapi"], "3.0.3");
    assert_eq!(
        document["paths"].as_object().unwrap().len(),
        openapi()["paths"].as_object().unwrap().len()
    );
}

/// Translates `openapi.yaml` to OpenAPI 3.0, and returns the result.
fn document() -> Value {
    let openapi = openapi();
    let mut document = translated(&openapi, &openapi);
    document["openapi"] = json!("3.0.3");
    let info = document["info"].as_object_mut().unwrap();
    info.remove("summary");
    info["license"]
        .as_object_mut()
        .unwrap()
        .remove("identifier");
    // Remove the client certificates and the token scopes, because OpenAPI 3.0 has neither.
    document["components"]["securitySchemes"]
        .as_object_mut()
        .unwrap()
        .remove("certificate");
    for operation in document["paths"]
        .as_object_mut()
        .unwrap()
        .values_mut()
        .flat_map(|path| path.as_object_mut().unwrap().values_mut())
    {
        let ways = operation["security"].as_array_mut().unwrap();
        ways.retain(|way| way.get("certificate").is_none());
        ways.iter_mut()
            .flat_map(|way| way.as_object_mut().unwrap().values_mut())
            .for_each(|scopes| *scopes = json!([]));
    }
    document
}

fn translated(openapi: &Value, value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| translated(openapi, item)).collect(),
        Value::Object(members) => {
            let members = in_one_form(openapi, members.clone()).into_iter();
            let members: Map<String, Value> = members
                .map(|(name, value)| (name, translated(openapi, &value)))
                .collect();
            without_null(beside_reference(of_content(members))).into()
        }
        other => other.clone(),
    }
}

/// Replaces a `oneOf` of several objects by one object that may have the members of all of them.
///
/// Generated Java clients ignore unknown members. Several of the objects would therefore match a
/// response, and these clients treat that as an error.
fn in_one_form(openapi: &Value, mut members: Map<String, Value>) -> Map<String, Value> {
    let Some(Value::Array(forms)) = members.get("oneOf").cloned() else {
        return members;
    };
    let forms: Vec<&Value> = forms
        .iter()
        .map(|form| resolved(openapi, form))
        .filter(|form| form["type"] != "null")
        .collect();
    let [first, others @ ..] = forms.as_slice() else {
        panic!("{members:?} has no form")
    };
    if others.is_empty() {
        return members;
    }
    let names = |form: &Value| {
        form["required"]
            .as_array()
            .expect("several forms differ")
            .clone()
    };
    let required: Vec<Value> = names(first)
        .into_iter()
        .filter(|name| others.iter().all(|form| names(form).contains(name)))
        .collect();
    let mut properties = Map::new();
    for (name, property) in forms
        .iter()
        .flat_map(|form| form["properties"].as_object().expect("forms are objects"))
    {
        properties.entry(name).or_insert_with(|| property.clone());
    }
    let said = members
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let names_of = |form: &&Value| {
        names(form)
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join("`, `")
    };
    let of_forms: Vec<String> = forms
        .iter()
        .map(|form| format!("`{}`", names_of(form)))
        .collect();
    let said = format!("{said} It has {}.", of_forms.join("; or "))
        .trim_start()
        .to_owned();
    members.remove("oneOf");
    members.insert("description".to_owned(), said.into());
    members.insert("type".to_owned(), json!("object"));
    members.insert("additionalProperties".to_owned(), json!(false));
    if !required.is_empty() {
        members.insert("required".to_owned(), required.into());
    }
    members.insert("properties".to_owned(), properties.into());
    members
}

/// Translates a body of bytes to a file, and `const` to an `enum` with one value.
fn of_content(mut members: Map<String, Value>) -> Map<String, Value> {
    if let Some(schema) = members
        .get_mut("application/octet-stream")
        .and_then(|media| media["schema"].as_object_mut())
    {
        schema.insert("type".to_owned(), json!("string"));
        schema.insert("format".to_owned(), json!("binary"));
        // Generators cannot check the length of a file.
        schema.remove("minLength");
    }
    if let Some(only) = members.remove("const") {
        members.insert("type".to_owned(), json!("string"));
        members.insert("enum".to_owned(), json!([only]));
    }
    members
}

/// Wraps a `$ref` in `allOf` if it has other keys next to it. OpenAPI 3.0 would ignore these keys.
fn beside_reference(mut members: Map<String, Value>) -> Map<String, Value> {
    if members.len() > 1
        && let Some(reference) = members.remove("$ref")
    {
        members.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
    }
    members
}

/// Translates a type that may be null to the keyword `nullable`.
fn without_null(mut members: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Array(names)) = members.get("type").cloned() {
        let names: Vec<Value> = names.into_iter().filter(|name| name != "null").collect();
        let [name] = names.as_slice() else {
            panic!("{members:?} is of several types")
        };
        members.insert("type".to_owned(), name.clone());
        members.insert("nullable".to_owned(), json!(true));
    }
    if let Some(Value::Array(choices)) = members.get("oneOf").cloned()
        && choices.iter().any(|choice| choice["type"] == "null")
    {
        let rest: Vec<Value> = choices
            .into_iter()
            .filter(|choice| choice["type"] != "null")
            .collect();
        members.remove("oneOf");
        members.insert("allOf".to_owned(), rest.into());
        members.insert("nullable".to_owned(), json!(true));
    }
    members
}

fn each(value: &Value, see: &mut dyn FnMut(&Value)) {
    see(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| each(item, see)),
        Value::Object(members) => members.values().for_each(|member| each(member, see)),
        _ => {}
    }
}

fn write_member(text: &mut String, indent: usize, name: &str, value: &Value) {
    let is_plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && !["null", "true", "false"].contains(&name);
    let name = if is_plain {
        name.to_owned()
    } else {
        json!(name).to_string()
    };
    let _ = write!(text, "{:indent$}{name}:", "");
    write_value(text, indent, value);
}

/// Writes a value after a name or a dash. A short value is written on the same line. A longer one
/// is written on the following lines with more indentation.
fn write_value(text: &mut String, indent: usize, value: &Value) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            text.push('\n');
            members
                .iter()
                .for_each(|(name, value)| write_member(text, indent + 2, name, value));
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            for item in items {
                let _ = write!(text, "{:indent$}  -", "");
                write_value(text, indent + 2, item);
            }
        }
        short => {
            let _ = writeln!(text, " {short}");
        }
    }
}
