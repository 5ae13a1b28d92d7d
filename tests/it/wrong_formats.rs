//! Checks that an error about the definition of a format names the line and the key.

use std::fs;

use idmint::server::Catalog;
use idmint::server::config::Config;

/// Three formats, written in the ways that TOML offers.
const FORMATS: &str = r#"# Ids of the shop
[formats.order]
summary   = "Order: 53 bits for JavaScript"
rule      = "sequenced"
tick      = "100ms"
epoch     = "2025-01-01T00:00:00Z"
fields    = [
    { name = "time", kind = "time", bits = 34 },
    { name = "site", kind = "constant", bits = 2, value = 1 },
    { name = "worker", kind = "worker", bits = 7 },
    { name = "sequence", kind = "sequence", bits = 10 },
]
encodings = [
    "decimal",
    { kind = "radix", name = "code", alphabet = "346789BCDFGHJKMPQRTW", check = "mod97" },
]
worker_range    = [0, 63]
plausible_from  = "2025-03-01T00:00:00Z"
plausible_ahead = "36h"
labels          = { 1 = "Berlin" }

[formats.ticket]
like            = "payment"
encodings       = [
    { kind = "hashids", salt = "ours", min_length = 12, groups = [4, 4, 4] },
    { kind = "base36", length = 9 },
]
prefixes        = [
    "tk_",
    "ev_",
]
first_worker    = 3
lanes           = 2
sequence_spread = 4
mint_below      = "101559956668416"
rarity          = 0
reveals         = "when it was sold"
enabled         = true
[formats.ticket.labels]
3 = "Oslo"

[formats.event]
summary   = "Event"
rule      = "random"
tick      = "1ms"
epoch     = "2024-01-01T00:00:00Z"
monotonic = "process"

[[formats.event.fields]]
name = "instant"
kind = "time"
bits = 48

[[formats.event.fields]]
name = "noise"
kind = "random"
bits = 80

[[formats.event.encodings]]
kind   = "crockford"
length = 26
prefix = "evt_"

[[formats.event.encodings]]
kind = "hex_padded"
case = "lower"
"#;

/// A mistake: a right part of [`FORMATS`], its wrong replacement, and a part of the error.
type Mistake = (&'static str, &'static str, &'static str);

const MISTAKES: [Mistake; 60] = [
    // Format `order`
    (
        "[formats.order]",
        "[formats.Order]",
        "format `Order`: the name must be",
    ),
    (
        "\"Order: 53 bits for JavaScript\"",
        "53",
        "summary: must be a text, got 53",
    ),
    (
        "\"sequenced\"",
        "\"sequence\"",
        "rule: `sequence` is not a possible value; did you mean `sequenced`?",
    ),
    ("\"100ms\"", "\"100 ms\"", "tick: `100 ms` is not a tick"),
    (
        "\"2025-01-01T00:00:00Z\"",
        "\"2025-01-01\"",
        "epoch: `2025-01-01` is not a time",
    ),
    (
        "epoch     = \"2025",
        "epok      = \"2025",
        "epok: unknown key; did you mean `epoch`?",
    ),
    (
        "kind = \"time\", bits = 34",
        "kind = \"tiem\", bits = 34",
        "field `time`: kind: `tiem` is not a possible value; did you mean `time`?",
    ),
    (
        "bits = 34",
        "bits = \"34\"",
        "field `time`: bits: must be a whole number from 0 to 4294967295, got \"34\"",
    ),
    (
        "value = 1",
        "value = 4",
        "field `site`: a field of kind constant needs a `value` of at most 3",
    ),
    (
        "bits = 2, value",
        "bist = 2, value",
        "field `site`: bist: unknown key; did you mean `bits`?",
    ),
    (
        "value = 1",
        "value = true",
        "field `site`: value: must be a whole number",
    ),
    (
        "name = \"worker\"",
        "nmae = \"worker\"",
        "field 3: nmae: unknown key; did you mean `name`?",
    ),
    (
        "kind = \"worker\"",
        "kind = \"node\"",
        "field `worker`: kind: `node` is not a possible value; choose from `time`, `worker`",
    ),
    ("bits = 10", "bits = 0", "field `sequence`: width 0 bits"),
    (
        "name = \"sequence\"",
        "name = \"time\"",
        "two fields are named `time`",
    ),
    (
        "\"decimal\"",
        "\"decimals\"",
        "encoding 1: `decimals` is not a possible value; did you mean `decimal`?",
    ),
    (
        "\"mod97\"",
        "\"luhn\"",
        "encoding `code`: check: `luhn` is not a possible value; choose from `mod97`",
    ),
    (
        "346789BCDFGHJKMPQRTW",
        "346789BCDFGHJKMPQRTT",
        "encoding code: alphabet",
    ),
    (
        "[0, 63]",
        "[63, 0]",
        "worker_range: write the lowest number first",
    ),
    (
        "[0, 63]",
        "[0]",
        "worker_range: must be a list of two numbers, got 1",
    ),
    (
        "\"2025-03-01T00:00:00Z\"",
        "\"March\"",
        "plausible_from: `March` is not a time",
    ),
    (
        "\"36h\"",
        "\"36 hours\"",
        "plausible_ahead = `36 hours` is not a duration",
    ),
    (
        "{ 1 = \"Berlin\" }",
        "{ one = \"Berlin\" }",
        "labels = `one` is not a whole number",
    ),
    // Format `ticket`
    (
        "\"payment\"",
        "\"payments\"",
        "like = `payments` is not a format; did you mean `payment`?",
    ),
    (
        "\"payment\"",
        "\"ticket\"",
        "its `like` refers back to itself",
    ),
    (
        "\"hashids\"",
        "\"hashid\"",
        "encoding 1: kind: `hashid` is not a possible value; did you mean `hashids`?",
    ),
    ("\"ours\"", "7", "encoding 1: salt: a salt must be a text"),
    (
        "min_length = 12",
        "min_length = 300",
        "encoding hashids: min_length is 300",
    ),
    ("[4, 4, 4]", "[4, 4]", "encoding hashids: groups"),
    ("length = 9", "length = 5", "encoding base36: length is 5"),
    (
        "length = 9",
        "bytes = 9",
        "encoding base36: the kind base36 has no setting bytes",
    ),
    (
        "\"base36\"",
        "\"base36\", name = \"hashids\"",
        "two encodings are named `hashids`",
    ),
    ("\"ev_\"", "\"tk_\"", "prefixes: `tk_` is listed twice"),
    ("\"ev_\"", "3", "prefix 2: must be a text, got 3"),
    (
        "= 3\nlanes",
        "= -1\nlanes",
        "first_worker: must be a whole number from 0 to 4294967295, got -1",
    ),
    (
        "first_worker",
        "frist_worker",
        "frist_worker: unknown key; did you mean `first_worker`?",
    ),
    (
        "= 2\n",
        "= \"two\"\n",
        "lanes: must be a whole number from 0 to 4294967295, got \"two\"",
    ),
    (
        "sequence_spread = 4",
        "sequence_spread = 3",
        "sequence_spread = 3 is neither 1 nor a power of two",
    ),
    ("\"101559956668416\"", "1000", "above mint_below = 1000"),
    (
        "rarity          = 0",
        "rarity          = 256",
        "rarity: must be a whole number from 0 to 255, got 256",
    ),
    (
        "\"when it was sold\"",
        "[\"when\"]",
        "reveals: must be a text, got a list",
    ),
    (
        "= true",
        "= \"yes\"",
        "enabled: must be true or false, got \"yes\"",
    ),
    ("\"Oslo\"", "4", "labels: 3: must be a text, got 4"),
    (
        "3 = \"Oslo\"",
        "Oslo = \"3\"",
        "labels = `Oslo` is not a whole number",
    ),
    // Format `event`
    (
        "name = \"instant\"",
        "name = 7",
        "field 1: name: must be a text, got 7",
    ),
    (
        "summary   = \"Event\"",
        "sumary    = \"Event\"",
        "sumary: unknown key; did you mean `summary`?",
    ),
    (
        "rule      = \"random\"",
        "rule      = \"radnom\"",
        "rule: `radnom` is not a possible value; did you mean `random`?",
    ),
    ("\"1ms\"", "1", "tick: must be a text, got 1"),
    (
        "\"2024-01-01T00:00:00Z\"",
        "2024-01-01T00:00:00Z",
        "epoch: an instant must be in quotes",
    ),
    (
        "\"process\"",
        "\"proces\"",
        "monotonic: `proces` is not a possible value; did you mean `process`?",
    ),
    (
        "kind = \"time\"\n",
        "kind = \"clock\"\n",
        "field `instant`: kind: `clock` is not a possible value; choose from `time`",
    ),
    (
        "bits = 48",
        "bits = 49",
        "field `instant` makes ids longer than 128 bits",
    ),
    (
        "bits = 48",
        "digits = 48",
        "field `instant`: give either `bits`, or `digits` and `radix`",
    ),
    (
        "name = \"noise\"",
        "title = \"noise\"",
        "field 2: title: unknown key",
    ),
    (
        "bits = 80",
        "bits = 80.5",
        "field `noise`: bits: must be a whole number from 0 to 4294967295, got 80.5",
    ),
    (
        "length = 26",
        "lenght = 26",
        "encoding 1: lenght: unknown key; did you mean `length`?",
    ),
    ("\"evt_\"", "\"évt_\"", "encoding crockford: prefix"),
    (
        "kind = \"hex_padded\"",
        "kind = 7",
        "encoding 2: kind: must be one of `decimal`",
    ),
    (
        "\"lower\"",
        "\"small\"",
        "encoding 2: case: `small` is not a possible value",
    ),
    (
        "case = \"lower\"",
        "bytes = 16",
        "encoding hex_padded: the kind hex_padded has no setting bytes",
    ),
];

/// Returns the error for a configuration file with these formats.
fn error_of(formats: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.toml");
    fs::write(&path, formats).unwrap();
    let config = match Config::load(Some(&path), std::iter::empty(), toml::Table::new()) {
        Ok(config) => config,
        Err(error) => return Some(error.to_string()),
    };
    Catalog::of(&config).err().map(|error| error.to_string())
}

#[test]
fn each_of_60_mistakes_in_formats_is_reported_with_its_line_and_its_key() {
    assert_eq!(error_of(FORMATS), None);
    let wrong = MISTAKES.iter().filter_map(|(from, to, words)| {
        let text = FORMATS;
        let place = text.find(from).unwrap_or_else(|| panic!("{from}"));
        assert_eq!(text.matches(from).count(), 1, "{from} is there once");
        let line = text[..place].matches('\n').count() + 1;
        let error = error_of(&text.replacen(from, to, 1)).unwrap_or_default();
        let is_named = error.contains(&format!("f.toml, line {line}: ")) && error.contains(words);
        (!is_named).then(|| format!("line {line}, {to}: {error}"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(
        wrong.is_empty(),
        "{} of 60:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn a_missing_key_is_reported_at_the_table_in_which_it_is_missing() {
    for (key, table, words) in [
        (
            "rule      = \"sequenced\"\n",
            "[formats.order]",
            "rule: this key is missing",
        ),
        (
            "tick      = \"100ms\"\n",
            "[formats.order]",
            "a time field needs `tick` and `epoch`",
        ),
        (
            ", bits = 34",
            "{ name = \"time\"",
            "field `time`: give either `bits`",
        ),
        (
            "name = \"noise\"\n",
            "[[formats.event.fields]]\nkind",
            "field 2: name: this key is missing",
        ),
        (
            "kind   = \"crockford\"\n",
            "[[formats.event.encodings]]\nlength",
            "encoding 1: kind: this key is missing",
        ),
    ] {
        let text = FORMATS.replacen(key, "", 1);
        let place = text.find(table).unwrap_or_else(|| panic!("{table}"));
        let line = text[..place].matches('\n').count() + 1;
        let error = error_of(&text).unwrap_or_default();
        assert!(
            error.contains(&format!("f.toml, line {line}: ")) && error.contains(words),
            "line {line}, {key}: {error}"
        );
    }
}

#[test]
fn a_mistake_in_a_variable_that_changes_a_format_names_the_variable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.toml");
    fs::write(&path, FORMATS).unwrap();
    let name = "IDMINT_FORMATS__ORDER__TICK".to_owned();
    let env = [(name, "'soon'".to_owned())].into_iter();
    let config = Config::load(Some(&path), env, toml::Table::new()).unwrap();
    let error = Catalog::of(&config).unwrap_err().to_string();
    let place = "environment variable IDMINT_FORMATS__ORDER__TICK: format `order`: tick: `soon`";
    assert!(error.starts_with(place), "{error}");
}
