//! Test vectors for other implementations of an id format. Each vector is an id with known field
//! values, written in all encodings.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Map, Value, json};

use idmint_core::id::{Field, FieldKind, Format, IdOfFields};
use idmint_wire::EncodeAnswer;

/// Returns the test vectors of a format as JSON. The vectors are these ids, and an id that occurs
/// twice is listed once:
///
/// - the lowest and the highest id
/// - for each field of each id type, an id in which this field has its maximum and all others have
///   their minimum; constant fields are skipped
/// - `random` ids whose fields are generated from `seed`
///
/// `encoded` returns all encodings of an id, in the form in which `GET /encode/{format}` returns
/// them.
pub(super) fn vectors<'a>(
    format: &Format,
    random: u32,
    seed: u64,
    encoded: impl Fn(&IdOfFields) -> EncodeAnswer<'a>,
) -> Value {
    let mut generator = StdRng::seed_from_u64(seed);
    let mut seen = BTreeSet::new();
    let mut valid = Vec::new();
    let mut add = |name: String, source: &str, id: u128| {
        if seen.insert(id) {
            let made = IdOfFields {
                id,
                prefix: String::new(),
            };
            valid.push(vector(format, &name, source, &encoded(&made), &made));
        }
    };
    add("least".to_owned(), "boundary", format.least());
    for variant in &format.variants {
        let layout = &variant.layout;
        let least: Vec<u128> = layout
            .fields()
            .iter()
            .map(|field| field.constant.unwrap_or(0))
            .collect();
        let of_type = variant
            .name
            .as_ref()
            .map_or_else(String::new, |name| format!("{name}: "));
        for (at, field) in layout
            .fields()
            .iter()
            .enumerate()
            .filter(|(_, field)| field.constant.is_none())
        {
            let mut values = least.clone();
            values[at] = field.max;
            let id = layout
                .pack(&values)
                .expect("no value is greater than its field");
            add(
                format!("{of_type}{} {}", field.name, field.max),
                "boundary",
                id,
            );
        }
    }
    add("greatest".to_owned(), "boundary", format.greatest());
    for number in 0..random {
        let layout = &format.variants[generator.random_range(0..format.variants.len())].layout;
        let draw = |field: &Field| {
            field
                .constant
                .unwrap_or_else(|| generator.random_range(0..=field.max))
        };
        let values: Vec<u128> = layout.fields().iter().map(draw).collect();
        add(
            format!("random {number}"),
            "random",
            layout
                .pack(&values)
                .expect("no value is greater than its field"),
        );
    }
    json!({
        "format": format.name,
        "schema": 1,
        "notes": [
            "Integers are decimal strings. time_ticks counts ticks since the epoch.",
            format!("Made by idmint {} with seed {seed}: they hold another program to this one, and this one to nothing.", env!("CARGO_PKG_VERSION")),
        ],
        "parameters": { "tick": format.tick.map(|tick| tick.to_string()), "epoch": format.tick.map(|_| format.epoch.to_string()) },
        "valid": valid,
    })
}

fn vector(
    format: &Format,
    name: &str,
    source: &str,
    answer: &EncodeAnswer<'_>,
    made: &IdOfFields,
) -> Value {
    let parts = format.split(made.id).expect("fields make an id");
    let of = |(field, value, _): (&Field, u128, _)| {
        let name = if field.kind == FieldKind::Time {
            "time_ticks"
        } else {
            &field.name
        };
        (name.to_owned(), Value::String(value.to_string()))
    };
    let fields: Map<String, Value> = parts.numbers().map(of).collect();
    let mut written = Vec::new();
    answer.write_json(&mut written);
    let answer: Value = serde_json::from_slice(&written).expect("an answer is JSON");
    json!({ "name": name, "source": source, "fields": fields, "encodings": answer["encodings"] })
}
