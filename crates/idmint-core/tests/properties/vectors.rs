//! Checks every value in the test vectors of every built-in format. The value must be written and
//! read as the vector says, and each refusal must have the vector's reason.

use std::collections::BTreeMap;
use std::sync::Arc;

use idmint_core::id::{DecodeFilter, Decoder, DomainHash, FieldKind, Format, Rejection};
use idmint_core::time::UnixTime;
use serde_json::Value;

use crate::NOW;
use crate::catalog;
use idmint_testing::cases::{self, FORMATS, Unreadable, Valid, digits, file, format_of, rows};

fn decoder() -> Decoder {
    catalog::decoder(FORMATS, &[])
}

fn format<'a>(decoder: &'a Decoder, name: &str) -> &'a Arc<Format> {
    decoder
        .formats()
        .iter()
        .find(|format| format.name == name)
        .unwrap_or_else(|| panic!("no format {name}"))
}

/// Reads a text in one encoding of one format, and returns the id.
fn read(decoder: &Decoder, format: &str, encoding: &str, text: &str) -> Result<u128, Rejection> {
    let decoded = decoder.at(NOW).decode(
        text,
        DecodeFilter {
            format: Some(format),
            encoding: Some(encoding),
            ..DecodeFilter::default()
        },
    );
    match (decoded.matches.as_slice(), decoded.rejected.as_slice()) {
        ([found], []) => Ok(found.id()),
        ([], [(_, rejection)]) => Err(*rejection),
        _ => panic!("{text:?} as {format} in {encoding}: {decoded:?}"),
    }
}

/// Packs the given fields into the layout of their type, and returns the id.
fn id_of(format: &Format, case: &Valid) -> Result<u128, Rejection> {
    let (names, values): (Vec<_>, Vec<_>) = case.fields.iter().copied().unzip();
    let word = case
        .fields
        .iter()
        .find(|(name, _)| *name == "qualifier")
        .map(|(_, word)| *word);
    let variants = format
        .variants
        .iter()
        .filter(|variant| variant.name == case.of_type);
    let layouts = variants.map(|variant| &variant.layout);
    let mut of_type = layouts.filter(|layout| {
        layout
            .field_of(FieldKind::Qualifier)
            .and_then(|qualifier| qualifier.constant)
            == word
    });
    let layout = of_type
        .next()
        .unwrap_or_else(|| panic!("{}: no layout of that type", case.name));
    assert_eq!(
        layout
            .fields()
            .iter()
            .map(|field| field.name.as_str())
            .collect::<Vec<_>>(),
        names,
        "{}",
        case.name
    );
    layout.pack(&values)
}

fn assert_both_ways(decoder: &Decoder, case: &Valid) {
    let format = format(decoder, &case.format);
    assert_eq!(
        format.ticks_at(UnixTime::from_nanos(case.unix_nanos)),
        Ok(case.fields[0].1),
        "{case:?}"
    );
    let id = id_of(format, case).unwrap_or_else(|rejection| panic!("{rejection}: {case:?}"));
    for (encoding, text) in &case.encodings {
        let spelled = format
            .encoding(encoding)
            .unwrap_or_else(|| panic!("{encoding}: {case:?}"))
            .to_text(id);
        assert_eq!(spelled, *text, "{encoding}: {case:?}");
        // One encoding writes zero as the empty text, but reading never accepts an empty text.
        let expected = if text.is_empty() {
            Err(Rejection::WrongLength)
        } else {
            Ok(id)
        };
        assert_eq!(
            read(decoder, &case.format, encoding, text),
            expected,
            "{encoding}: {case:?}"
        );
    }

    let parts = format.split(id).unwrap();
    let names = parts
        .layout
        .fields()
        .iter()
        .map(|field| field.name.as_str());
    assert!(
        names
            .zip(parts.values.iter().copied())
            .eq(case.fields.iter().copied()),
        "{parts:?}, {case:?}"
    );
    assert_eq!(format.variant_of(id).name, case.of_type, "{case:?}");
    let time = parts.time.unwrap();
    assert_eq!(time, UnixTime::from_nanos(case.unix_nanos), "{case:?}");
    let fraction = case
        .utc
        .as_ref()
        .and_then(|utc| utc.trim_end_matches('Z').split_once('.'));
    let second_digits = fraction.map_or(0, |(_, digits)| digits.len().try_into().unwrap());
    assert_eq!(time.to_text(second_digits), case.utc, "{case:?}");
}

/// Counts how often each name occurs.
fn counted<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    counts
}

#[test]
fn every_id_is_its_fields_and_each_of_its_spellings() {
    let (decoder, cases) = (decoder(), cases::valid());
    cases
        .iter()
        .for_each(|case| assert_both_ways(&decoder, case));
    let counts = BTreeMap::from([
        ("conjunction-v1", 21),
        ("conjunction-v1-doc14", 1),
        ("conjunction", 28),
        ("evently", 33),
        ("flax", 51),
        ("payment-2020", 10),
        ("payment-2022", 10),
        ("payment-2024", 28),
        ("siq", 71),
        ("snowflake", 28),
        ("twitter", 25),
        ("twitter-halves", 25),
    ]);
    assert_eq!(
        counted(cases.iter().map(|case| case.format.as_str())),
        counts
    );
}

#[test]
fn every_text_that_is_no_id_is_refused_with_its_reason() {
    let (decoder, cases) = (decoder(), cases::unreadable());
    for Unreadable {
        name,
        format,
        encoding,
        text,
        reason,
    } in &cases
    {
        let refusal = read(&decoder, format, encoding, text).map_err(Rejection::code);
        assert_eq!(
            refusal,
            Err(reason.as_str()),
            "{name}: {text:?} as {format} in {encoding}"
        );
    }
    let counts = BTreeMap::from([
        ("conjunction-v1", 5),
        ("conjunction", 30),
        ("evently", 16),
        ("flax", 20),
        ("payment", 12),
        ("siq", 86),
        ("snowflake", 15),
        ("twitter", 16),
    ]);
    assert_eq!(
        counted(cases.iter().map(|case| case.format.as_str())),
        counts
    );
}

/// Parses a number of a vector as a field value. Returns an error unless the number is whole and
/// not negative, because fields cannot hold other numbers.
fn value(number: &Value) -> Result<u128, Rejection> {
    digits(number).parse().map_err(|_| Rejection::OutOfRange)
}

/// Parses an instant that is given as a number of units of `unit_nanos` nanoseconds since 1970. The
/// number is negative for instants before 1970.
fn instant(units: &Value, unit_nanos: i128) -> UnixTime {
    UnixTime::from_nanos(digits(units).parse::<i128>().unwrap() * unit_nanos)
}

/// Packs the instant and the named values in a vector's `input` into an id.
fn pack(
    format: &Format,
    instant: UnixTime,
    input: &Value,
    keys: &[&str],
) -> Result<u128, Rejection> {
    let mut values = vec![format.ticks_at(instant)?];
    for key in keys {
        values.push(value(&input[*key])?);
    }
    format.variants[0].layout.pack(&values)
}

fn pack_siq(format: &Format, input: &Value) -> Result<u128, Rejection> {
    // The fraction has no field of its own. It is in the lowest 16 bits of the time.
    let fraction = u16::try_from(value(&input["fraction"])?).map_err(|_| Rejection::OutOfRange)?;
    let seconds = format.ticks_at(instant(&input["seconds"], 1_000_000_000))?;
    let layout = &format.variants[format.type_named(input["qualifier"].as_str().unwrap())?].layout;
    let word = layout
        .field_of(FieldKind::Qualifier)
        .unwrap()
        .constant
        .unwrap();
    let [shard, domain, serial] = ["shard", "domain_hash", "serial"].map(|key| value(&input[key]));
    layout.pack(&[
        seconds + u128::from(fraction),
        shard?,
        domain?,
        serial?,
        word,
    ])
}

fn domain_hash(input: &Value) -> Result<u128, Rejection> {
    let local_id = match &input["local_id"] {
        Value::Null => None,
        number => Some(u16::try_from(value(number)?).map_err(|_| Rejection::OutOfRange)?),
    };
    let hash = DomainHash::of(input["domain"].as_str().unwrap(), local_id)?;
    Ok(u128::from(hash.get()))
}

/// Returns the id of a vector row whose input is field values instead of a text. If the row is
/// refused, returns the reason.
fn id_of_row(decoder: &Decoder, file: &str, row: &Value) -> Result<u128, Rejection> {
    let input = &row["input"];
    let named = format_of(
        file,
        row,
        if file == "payment" {
            &input["epoch"]
        } else {
            &input["flavor"]
        },
    );
    match (row["operation"].as_str().unwrap(), named.as_str()) {
        ("domain_hash", _) => domain_hash(input),
        (_, "siq") => pack_siq(format(decoder, "siq"), input),
        (_, "conjunction") => {
            let keys = ["primary_norad_id", "secondary_norad_id"];
            pack(
                format(decoder, &named),
                instant(&input["tca_unix_s"], 1_000_000_000),
                input,
                &keys,
            )
        }
        (_, "conjunction-v1") => pack(
            format(decoder, &named),
            instant(&input["unix_ms"], 1_000_000),
            input,
            &["system_id", "sequence"],
        ),
        (_, "flax") => pack(
            format(decoder, "flax"),
            instant(&input["unix_ms"], 1_000_000),
            input,
            &["random"],
        ),
        (_, "snowflake" | "twitter") => {
            let format = format(
                decoder,
                if named == "twitter" {
                    "twitter-halves"
                } else {
                    "snowflake"
                },
            );
            pack(
                format,
                instant(&input["unix_ms"], 1_000_000),
                input,
                &["worker", "process", "increment"],
            )
        }
        (_, payment) => pack(
            format(decoder, payment),
            instant(&input["unix_s"], 1_000_000_000),
            input,
            &["worker", "counter"],
        ),
    }
}

#[test]
fn every_input_that_makes_no_id_is_refused_with_its_reason() {
    let decoder = decoder();
    for (name, count) in [
        ("siq", 31),
        ("snowflake", 12),
        ("payment", 18),
        ("conjunction", 11),
        ("flax", 9),
    ] {
        let file = file(name);
        let encoded = rows(&file["invalid"])
            .iter()
            .filter(|row| row["input"].is_object());
        let refused = encoded.map(|row| {
            let refusal = id_of_row(&decoder, name, row).map_err(Rejection::code);
            assert_eq!(refusal.err(), row["reason"].as_str(), "{name}: {row}");
        });
        assert_eq!(refused.count(), count, "{name}");
    }
}

#[test]
fn every_domain_has_its_hash() {
    let file = file("siq");
    let with_domain = rows(&file["valid"])
        .iter()
        .filter(|row| row["domain"].is_string());
    let of_ids = with_domain.map(|row| (row, &row["fields"]["domain_hash"]));
    let listed = rows(&file["domain_hashes"])
        .iter()
        .map(|row| (row, &row["domain_hash"]));
    let hashed = listed
        .chain(of_ids)
        .map(|(row, hash)| assert_eq!(domain_hash(row), value(hash), "{row}"));
    assert_eq!(hashed.count(), 40 + 57);
}

#[test]
fn every_instant_of_a_siq_falls_in_its_tick() {
    let (decoder, file) = (decoder(), file("siq"));
    let siq = format(&decoder, "siq");
    let ticked = rows(&file["time_to_ticks"]).iter().map(|row| {
        assert_eq!(
            siq.ticks_at(instant(&row["unix_nanos"], 1)),
            value(&row["ticks"]),
            "{row}"
        )
    });
    assert_eq!(ticked.count(), 25);
}

#[test]
fn texts_listed_in_order_are_ids_in_order() {
    let decoder = decoder();
    for (name, lists, texts) in [
        ("siq", 2, 40),
        ("snowflake", 1, 19),
        ("payment", 1, 16),
        ("flax", 1, 20),
    ] {
        let file = file(name);
        let ordering = rows(&file["ordering"]);
        let in_order = ordering.iter().map(|list| {
            let encoding = match (name, list["codec"].as_str().unwrap()) {
                ("payment", _) => "base36",
                ("flax", _) => "base64_lex",
                (_, codec) => codec,
            };
            assert!(
                format(&decoder, name)
                    .encoding(encoding)
                    .unwrap()
                    .is_sortable(),
                "{name} in {encoding}"
            );
            let texts: Vec<_> = rows(&list["ascending"])
                .iter()
                .map(|text| text.as_str().unwrap())
                .collect();
            let ids: Vec<_> = texts
                .iter()
                .map(|text| read(&decoder, name, encoding, text).unwrap())
                .collect();
            assert!(
                texts.is_sorted_by(|a, b| a.as_bytes() < b.as_bytes()),
                "{name} in {encoding}"
            );
            assert!(ids.is_sorted_by(|a, b| a < b), "{name} in {encoding}");
            texts.len()
        });
        assert_eq!(in_order.sum::<usize>(), texts, "{name}");
        assert_eq!(ordering.len(), lists, "{name}");
    }
}

#[test]
fn what_fits_64_bits_and_what_fits_a_signed_column_is_known() {
    let (decoder, file) = (decoder(), file("conjunction"));
    let first_version = rows(&file["valid"])
        .iter()
        .filter(|row| row["encodings"]["fits_u64"].is_boolean());
    let checked = first_version.map(|row| {
        let (encodings, name) = (
            &row["encodings"],
            format_of("conjunction", row, &Value::Null),
        );
        let id = read(
            &decoder,
            &name,
            "decimal",
            encodings["decimal"].as_str().unwrap(),
        )
        .unwrap();
        assert_eq!(encodings["fits_u64"], u64::try_from(id).is_ok(), "{row}");
        assert_eq!(encodings["fits_i64"], i64::try_from(id).is_ok(), "{row}");
        assert!(
            name != "conjunction-v1"
                || encodings["fits_i64"] == (id < format(&decoder, &name).mint_below),
            "{row}"
        );
    });
    assert_eq!(checked.count(), 22);
}
