//! The vectors of the seed formats as cases of one shape, whatever each file calls its fields.
//!
//! Left out are two encodings of a conjunction that no encoding of ours has: `sqids_az20`, three numbers in one text,
//! and the `hex_padded` of `v1_doc14`, which has the 16 digits of 64 bits where the layout has 65. Of Evently's chains
//! there are the ids alone; what they are computed from is for those who verify chains.

use serde_json::Value;

/// The formats that the vectors need beside the built-in ones, as a configuration.
pub(crate) const FORMATS: &str = include_str!("formats.toml");

/// An id with all that is known about it.
#[derive(Debug)]
pub(crate) struct Valid {
    pub(crate) name: String,
    pub(crate) format: String,
    /// What its qualifier is called; `None` for none, or an unassigned one.
    pub(crate) of_type: Option<String>,
    /// The first nanosecond of its tick.
    pub(crate) unix_nanos: i128,
    /// The same as text; `None` after the year 9999.
    pub(crate) utc: Option<String>,
    /// Names and values of its fields, most significant first; time in ticks.
    pub(crate) fields: Vec<(&'static str, u128)>,
    /// Names of encodings and its text in each.
    pub(crate) encodings: Vec<(String, String)>,
}

/// A text that is no id of the format in that encoding.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) name: String,
    pub(crate) format: String,
    pub(crate) encoding: String,
    pub(crate) text: String,
    pub(crate) reason: String,
}

/// One file of vectors.
pub(crate) fn file(name: &str) -> Value {
    let text = match name {
        "siq" => include_str!("siq.json"),
        "snowflake" => include_str!("snowflake.json"),
        "payment" => include_str!("payment.json"),
        "conjunction" => include_str!("conjunction.json"),
        "flax" => include_str!("flax.json"),
        "evently" => include_str!("evently.json"),
        "typeid" => include_str!("typeid.json"),
        _ => panic!("no file of vectors is called {name}"),
    };
    serde_json::from_str(text).expect("the vectors are JSON")
}

/// Every id of every file.
pub(crate) fn valid() -> Vec<Valid> {
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

/// Every text of every file that is no id.
pub(crate) fn unreadable() -> Vec<Unreadable> {
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

pub(crate) fn rows(list: &Value) -> &[Value] {
    list.as_array().expect("a list of vectors")
}

/// The format of a row, by the file and what the row or its input says.
pub(crate) fn format_of(file: &str, row: &Value, epoch_or_flavor: &Value) -> String {
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
    let (seconds, fraction) = (signed(&fields["seconds"]), signed(&fields["fraction"]));
    let named = vec![
        ("time", number(&fields["ticks"])),
        ("shard", number(&fields["shard"])),
        ("domain", number(&fields["domain_hash"])),
        ("serial", number(&fields["serial"])),
        ("qualifier", suffix),
    ];
    // Rounded up: the first whole nanosecond of a tick of 15258.79 ns.
    let unix_nanos = seconds * 1_000_000_000 + (fraction * 1_000_000_000 + 65_535) / 65_536;
    let of_type = Some(text(&fields["qualifier"])).filter(|name| name != "unassigned");
    Valid {
        of_type,
        ..valid_of(
            row,
            "siq".to_owned(),
            unix_nanos,
            named,
            encodings(row, &[]),
        )
    }
}

/// A tweet twice: its machine number whole, and as two halves.
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
        let unix_nanos = signed(&fields["unix_ms"]) * 1_000_000;
        valid_of(
            row,
            format.to_owned(),
            unix_nanos,
            named,
            encodings(row, &[]),
        )
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
    valid_of(
        row,
        format,
        signed(&fields["unix_s"]) * 1_000_000_000,
        named,
        encodings(row, &[("string", "base36")]),
    )
}

fn flax(row: &Value) -> Valid {
    let fields = &row["fields"];
    let named = vec![
        ("time", number(&fields["timestamp"])),
        ("random", number(&fields["random"])),
    ];
    let texts = encodings(row, &[("string", "base64_lex"), ("hex", "hex_padded")]);
    valid_of(
        row,
        "flax".to_owned(),
        signed(&fields["unix_ms"]) * 1_000_000,
        named,
        texts,
    )
}

fn conjunction(row: &Value) -> Valid {
    let fields = &row["fields"];
    let format = format_of("conjunction", row, &Value::Null);
    let mut texts = encodings(row, &[("short", "hashids")]);
    let is_ours = |encoding: &str| match encoding {
        "sqids_az20" => false,
        "hex_padded" => format != "conjunction-v1-doc14",
        _ => true,
    };
    texts.retain(|(encoding, _)| is_ours(encoding));
    if format == "conjunction" {
        let named = vec![
            ("time", number(&fields["tca_unix_s"])),
            ("primary", number(&fields["primary_norad_id"])),
            ("secondary", number(&fields["secondary_norad_id"])),
        ];
        return valid_of(
            row,
            format,
            signed(&fields["tca_unix_s"]) * 1_000_000_000,
            named,
            texts,
        );
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
    valid_of(
        row,
        format,
        signed(&fields["unix_ms"]) * 1_000_000,
        named,
        texts,
    )
}

/// The id of one event of a chain.
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
    // As many digits of the second as it needs; a time of Evently has six.
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

/// The configured encoding of a short form, told by its salt.
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
    format: String,
    unix_nanos: i128,
    fields: Vec<(&'static str, u128)>,
    encodings: Vec<(String, String)>,
) -> Valid {
    let utc = row["fields"]["utc"].as_str().map(str::to_owned);
    Valid {
        name: text(&row["name"]),
        format,
        of_type: None,
        unix_nanos,
        utc,
        fields,
        encodings,
    }
}

/// The texts of a row by the names of our encodings, where those are others.
fn encodings(row: &Value, renamed: &[(&str, &str)]) -> Vec<(String, String)> {
    let name = |codec: &str| {
        renamed
            .iter()
            .find(|(theirs, _)| *theirs == codec)
            .map_or(codec, |(_, ours)| ours)
            .to_owned()
    };
    let texts = row["encodings"]
        .as_object()
        .expect("the encodings of an id");
    texts
        .iter()
        .filter_map(|(codec, text)| Some((name(codec), text.as_str()?.to_owned())))
        .collect()
}

pub(crate) fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} should be a text"))
        .to_owned()
}

/// A number, which the vectors write as a text where it may exceed 2^53.
fn number(value: &Value) -> u128 {
    digits(value)
        .parse()
        .unwrap_or_else(|_| panic!("{value} should be a number"))
}

fn signed(value: &Value) -> i128 {
    digits(value)
        .parse()
        .unwrap_or_else(|_| panic!("{value} should be a number"))
}

pub(crate) fn digits(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
