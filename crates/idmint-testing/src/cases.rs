//! The test vectors of the built-in formats in a common form. The vector files themselves use
//! different names.
//!
//! `sqids_az20` of conjunctions is left out, because it encodes three numbers in one text, and
//! idmint has no such encoding.
//!
//! The ids of Evently's chains of events are included, but not the data from which they are
//! computed. That data is needed only to verify chains.

use std::str::FromStr;

use serde_json::Value;

/// A configuration file with the formats that the test vectors need in addition to the built-in
/// formats.
pub const FORMATS: &str = include_str!("../../../tests/vectors/formats.toml");

/// A valid id from the test vectors, with the type, time, fields and encodings that the vectors
/// state for it.
#[derive(Debug)]
pub struct Valid {
    pub name: String,
    pub format: String,
    /// The name of the id's type. `None` if the format has no types, or if the bits that select the
    /// type (the qualifier) belong to no type.
    pub of_type: Option<String>,
    /// The first nanosecond of the id's tick, since 1970.
    pub unix_nanos: i128,
    /// The time as text. `None` if it is after the year 9999.
    pub utc: Option<String>,
    /// The names and values of the fields, most significant first. The time is in ticks.
    pub fields: Vec<(&'static str, u128)>,
    /// The id as text in each encoding, as pairs of the name of the encoding and the text.
    pub encodings: Vec<(String, String)>,
}

/// A text that must be refused as an id of this format in this encoding.
#[derive(Debug)]
pub struct Unreadable {
    pub name: String,
    pub format: String,
    pub encoding: String,
    pub text: String,
    pub reason: String,
}

/// Returns the contents of one file of test vectors.
pub fn file(name: &str) -> Value {
    let text = match name {
        "siq" => include_str!("../../../tests/vectors/siq.json"),
        "snowflake" => include_str!("../../../tests/vectors/snowflake.json"),
        "payment" => include_str!("../../../tests/vectors/payment.json"),
        "conjunction" => include_str!("../../../tests/vectors/conjunction.json"),
        "flax" => include_str!("../../../tests/vectors/flax.json"),
        "evently" => include_str!("../../../tests/vectors/evently.json"),
        "typeid" => include_str!("../../../tests/vectors/typeid.json"),
        _ => panic!("no file of vectors is called {name}"),
    };
    serde_json::from_str(text).expect("the vectors are JSON")
}

/// Returns every valid id of all files of test vectors.
pub fn valid() -> Vec<Valid> {
    let of = |name: &str, read: fn(&Value) -> Vec<Valid>| {
        rows(&file(name)["valid"]).iter().flat_map(read).collect()
    };
    let chains = file("evently");
    let events = rows(&chains["chains"])
        .iter()
        .flat_map(|chain| rows(&chain["events"]));
    let files: [Vec<Valid>; 6] = [
        of("siq", |row| vec![siq(row)]),
        of("snowflake", snowflakes),
        of("payment", |row| vec![payment(row)]),
        of("conjunction", |row| vec![conjunction(row)]),
        of("flax", |row| vec![flax(row)]),
        events.map(event).collect(),
    ];
    files.into_iter().flatten().collect()
}

/// Returns every invalid text of all files of test vectors.
pub fn unreadable() -> Vec<Unreadable> {
    [
        "siq",
        "snowflake",
        "payment",
        "conjunction",
        "flax",
        "evently",
    ]
    .into_iter()
    .flat_map(|name| {
        rows(&file(name)["invalid"])
            .iter()
            .filter_map(|row| unreadable_of(name, row))
            .collect::<Vec<_>>()
    })
    .collect()
}

pub fn rows(list: &Value) -> &[Value] {
    list.as_array().expect("a list of vectors")
}

/// Returns the name of the format to which a row of a vector file belongs. The name depends on the
/// file, the row, and the epoch or flavor in the input of the row.
pub fn format_of(file: &str, row: &Value, epoch_or_flavor: &Value) -> String {
    match (file, epoch_or_flavor.as_str()) {
        ("snowflake", Some("twitter")) => "twitter".to_owned(),
        ("payment", Some(epoch)) => format!("payment-{epoch}"),
        ("conjunction", _) => match text(&row["layout"]).as_str() {
            "v2" => "conjunction".to_owned(),
            layout => format!("conjunction-{}", layout.replace('_', "-")),
        },
        _ => file.to_owned(),
    }
}

fn unreadable_of(file: &str, row: &Value) -> Option<Unreadable> {
    let operation = text(&row["operation"]);
    let canonical = match file {
        "payment" => "base36",
        "flax" => "base64_lex",
        "evently" => "hex_padded",
        _ => "hashids",
    };
    (operation.starts_with("decode") || operation == "parse_id").then(|| Unreadable {
        name: text(&row["name"]),
        format: format_of(file, row, &row["flavor"]),
        encoding: row["codec"].as_str().unwrap_or(canonical).to_owned(),
        text: text(&row["input"]),
        reason: text(&row["reason"]),
    })
}

fn siq(row: &Value) -> Valid {
    let fields = &row["fields"];
    let suffix = u128::from_str_radix(&text(&fields["suffix"]), 2).expect("binary digits");
    let (seconds, fraction): (i128, i128) =
        (number(&fields["seconds"]), number(&fields["fraction"]));
    let named = vec![
        ("time", number(&fields["ticks"])),
        ("shard", number(&fields["shard"])),
        ("domain", number(&fields["domain_hash"])),
        ("serial", number(&fields["serial"])),
        ("qualifier", suffix),
    ];
    // Round up to the first whole nanosecond of the tick, because a tick takes 15258.79 ns.
    let unix_nanos = seconds * 1_000_000_000 + (fraction * 1_000_000_000 + 65_535) / 65_536;
    let of_type = Some(text(&fields["qualifier"])).filter(|name| name != "unassigned");
    Valid {
        of_type,
        ..valid_of(row, "siq", unix_nanos, named, encodings(row, &[]))
    }
}

/// Returns the id of a row of the Snowflake vectors. A Discord message has one id, in the format
/// `snowflake`. A tweet has the same id in two formats: `twitter`, with the machine number as one
/// field, and `twitter-halves`, with two fields.
fn snowflakes(row: &Value) -> Vec<Valid> {
    let fields = &row["fields"];
    let of = |format: &str, workers: &[(&'static str, &str)]| {
        let mut named = vec![("time", number(&fields["timestamp"]))];
        named.extend(
            workers
                .iter()
                .map(|(field, key)| (*field, number(&fields[*key]))),
        );
        named.push(("sequence", number(&fields["increment"])));
        let millis: i128 = number(&fields["unix_ms"]);
        let texts = encodings(row, &[]);
        valid_of(row, format, millis * 1_000_000, named, texts)
    };
    match text(&fields["flavor"]).as_str() {
        "discord" => vec![of(
            "snowflake",
            &[("worker", "worker"), ("shard", "process")],
        )],
        _ => vec![
            of("twitter", &[("worker", "machine")]),
            of(
                "twitter-halves",
                &[("worker", "worker"), ("process", "process")],
            ),
        ],
    }
}

fn payment(row: &Value) -> Valid {
    let fields = &row["fields"];
    let named = vec![
        ("time", number(&fields["timestamp"])),
        ("worker", number(&fields["worker"])),
        ("sequence", number(&fields["counter"])),
    ];
    let format = format_of("payment", row, &fields["epoch"]);
    let seconds: i128 = number(&fields["unix_s"]);
    let texts = encodings(row, &[("string", "base36")]);
    valid_of(row, &format, seconds * 1_000_000_000, named, texts)
}

fn flax(row: &Value) -> Valid {
    let fields = &row["fields"];
    let named = vec![
        ("time", number(&fields["timestamp"])),
        ("random", number(&fields["random"])),
    ];
    let texts = encodings(row, &[("string", "base64_lex"), ("hex", "hex_padded")]);
    let millis: i128 = number(&fields["unix_ms"]);
    valid_of(row, "flax", millis * 1_000_000, named, texts)
}

fn conjunction(row: &Value) -> Valid {
    let fields = &row["fields"];
    let format = format_of("conjunction", row, &Value::Null);
    let mut texts = encodings(row, &[("short", "hashids")]);
    texts.retain(|(encoding, _)| encoding != "sqids_az20");
    if format == "conjunction" {
        let named = vec![
            ("time", number(&fields["tca_unix_s"])),
            ("primary", number(&fields["primary_norad_id"])),
            ("secondary", number(&fields["secondary_norad_id"])),
        ];
        let seconds: i128 = number(&fields["tca_unix_s"]);
        return valid_of(row, &format, seconds * 1_000_000_000, named, texts);
    }
    texts.extend(
        rows(&row["encodings"]["short"])
            .iter()
            .map(|short| (short_encoding(short), text(&short["value"]))),
    );
    let named = vec![
        ("time", number(&fields["timestamp"])),
        ("system", number(&fields["system_id"])),
        ("sequence", number(&fields["sequence"])),
    ];
    let millis: i128 = number(&fields["unix_ms"]);
    valid_of(row, &format, millis * 1_000_000, named, texts)
}

/// Returns the id of one event, with its fields and its texts.
fn event(event: &Value) -> Valid {
    let id = text(&event["event_id"]);
    let bits = u128::from_str_radix(&id, 16).expect("hexadecimal digits");
    let checksum = u128::from_str_radix(&text(&event["checksum"]), 16).expect("hexadecimal digits");
    let ledger_and_version = bits & 0xffff_ffff;
    let micros = number(&event["timestamp_us"]);
    let named = vec![
        ("time", micros),
        ("checksum", checksum),
        ("ledger", ledger_and_version >> 2),
        ("version", ledger_and_version & 3),
    ];
    let uuid = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]].join("-");
    let body: Value =
        serde_json::from_str(&text(&event["event_json"])).expect("the body of an event is JSON");
    // Pad the fraction of the timestamp to six digits, as Evently writes it. In the vectors, a
    // timestamp has only as many fraction digits as it needs.
    let stamp = text(&body["timestamp"]);
    let (seconds, fraction) = stamp
        .trim_end_matches('Z')
        .split_once('.')
        .unwrap_or((stamp.trim_end_matches('Z'), ""));
    Valid {
        name: id.clone(),
        format: "evently".to_owned(),
        of_type: None,
        unix_nanos: i128::try_from(micros).expect("far below the greatest") * 1_000,
        utc: Some(format!("{seconds}.{fraction:0<6}Z")),
        fields: named,
        encodings: vec![("hex_padded".to_owned(), id), ("uuid".to_owned(), uuid)],
    }
}

/// Returns the name of the configured encoding that writes this short form of an id. The name
/// depends on the scheme of the short form, such as `hashids`, and on its salt.
fn short_encoding(short: &Value) -> String {
    assert_eq!(
        (&short["alphabet"], &short["min_length"]),
        (&"default".into(), &0.into()),
        "{short}"
    );
    match (text(&short["scheme"]).as_str(), short["salt"].as_str()) {
        ("hashids", Some("")) => "hashids".to_owned(),
        ("hashids", Some(salt)) => format!("hashids-{}", salt.to_lowercase()),
        (scheme, _) => scheme.to_owned(),
    }
}

fn valid_of(
    row: &Value,
    format: &str,
    unix_nanos: i128,
    fields: Vec<(&'static str, u128)>,
    encodings: Vec<(String, String)>,
) -> Valid {
    let utc = row["fields"]["utc"].as_str().map(str::to_owned);
    Valid {
        name: text(&row["name"]),
        format: format.to_owned(),
        of_type: None,
        unix_nanos,
        utc,
        fields,
        encodings,
    }
}

/// Returns the texts of the id in a row, each with the name of its encoding. `renamed` maps the
/// names of encodings in the vector file to the names in idmint.
fn encodings(row: &Value, renamed: &[(&str, &str)]) -> Vec<(String, String)> {
    let name = |codec: &str| {
        let renamed = renamed.iter().find(|(theirs, _)| *theirs == codec);
        renamed.map_or(codec, |(_, ours)| ours).to_owned()
    };
    let texts = row["encodings"]
        .as_object()
        .expect("the encodings of an id");
    texts
        .iter()
        .filter_map(|(codec, text)| Some((name(codec), text.as_str()?.to_owned())))
        .collect()
}

pub fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} should be a text"))
        .to_owned()
}

/// Parses a number. In the vectors, numbers that may exceed 2^53 are strings.
fn number<N: FromStr>(value: &Value) -> N {
    digits(value)
        .parse()
        .unwrap_or_else(|_| panic!("{value} should be a number"))
}

pub fn digits(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
