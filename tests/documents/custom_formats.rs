//! Checks that `docs/CUSTOM-FORMATS.md` describes every key, field kind and encoding kind that the
//! code has.

use std::collections::BTreeSet;
use std::fmt::Write;

use idmint_core::id::{
    Encoding, EncodingDefinition, EncodingKind, FieldKind, FormatDefinition, Rule,
};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

use idmint_testing::generated::assert_generated;

const PAGE: &str = "docs/CUSTOM-FORMATS.md";

/// A row of a table: the key, the type or bounds of its value, the default, and the effect.
type Row = (&'static str, &'static str, &'static str, &'static str);

const FORMAT_KEYS: [Row; 23] = [
    ("summary", "text", "required", "a description in one line"),
    ("rule", "[rule](#rules)", "required", "how ids are made"),
    (
        "tick",
        "duration of 1 ns or more: `1s`, `100ns`, `1s/65536`",
        "required with a time",
        "the unit of the time",
    ),
    (
        "epoch",
        "instant of the years 0 to 9999; nothing is minted before it",
        "required with a time",
        "the instant at which the time is 0",
    ),
    (
        "fields",
        "1 to 16 tables, at most 128 bits",
        "required",
        "the layout, most significant field first: [keys](#keys-of-a-field), [kinds](#kinds-of-fields)",
    ),
    (
        "encodings",
        "1 or more words or tables",
        "required",
        "how ids are written, the canonical encoding first: [keys](#keys-of-an-encoding), [kinds](#kinds-of-encodings)",
    ),
    (
        "prefixes",
        "up to 64 texts of 1 to 64 printable ASCII characters without `\"` and `\\`",
        "none",
        "prefixes of the canonical text for [`?prefix=`](#prefixes)",
    ),
    (
        "types",
        "texts of 0 to 63 of a-z and `_`, with a letter at both ends",
        "none",
        "[types](#prefixes) before the canonical text; an empty list allows any type",
    ),
    (
        "first_worker",
        "number up to the greatest worker number",
        "`0`",
        "the lowest worker number that idmint mints with; fixed at the first start",
    ),
    (
        "worker_range",
        "two numbers, both included: `[0, 511]`",
        "all",
        "the worker numbers that idmint mints with; the lower one is fixed at the first start",
    ),
    (
        "lanes",
        "1 to all worker numbers",
        "`worker.lanes`",
        "the most worker numbers that one node mints with",
    ),
    (
        "sequence_spread",
        "1, or a power of two up to a quarter of the sequence",
        "`1`",
        "the number of sequences at which a tick can begin, so that single ids do not end alike",
    ),
    (
        "start_after",
        "an id in any encoding; only for `sequenced`",
        "none",
        "idmint mints no id up to [this one](#after-another-generator)",
    ),
    (
        "exclude",
        "a path; only for `sequenced`",
        "none",
        "a [sorted file](#after-another-generator) of ids whose ticks idmint skips",
    ),
    (
        "monotonic",
        "`clock`, `batch`, `process`, `off`",
        "`off`",
        "which ids of a `random` format [ascend](FORMATS.md#which-one)",
    ),
    (
        "labels",
        "table by worker number",
        "none",
        "names of worker numbers in decoded ids: `{ 1 = \"Berlin\" }`",
    ),
    (
        "mint_below",
        "number, or text above 2^63",
        "2^63 for layouts of 64 bits with a time, else none",
        "ids from this number on are decoded, but not minted",
    ),
    (
        "mint",
        "`true` or `false`",
        "`true`",
        "with `false`, the format is decoded and listed, but not minted",
    ),
    (
        "plausible_from",
        "instant",
        "`epoch`",
        "when the first ids were made: an earlier time counts as unlikely",
    ),
    (
        "plausible_ahead",
        "duration",
        "`24h`",
        "how far ahead of the clock the time of a plausible id can be",
    ),
    (
        "rarity",
        "0 to 255",
        "`0`",
        "the bits of evidence that decoding subtracts, because the format is rare",
    ),
    ("reveals", "text", "none", "what an id reveals"),
    (
        "enabled",
        "`true` or `false`",
        "`true`",
        "with `false`, the format is neither minted nor decoded; `mint = false` keeps decoding",
    ),
];

const FIELD_KEYS: [Row; 12] = [
    (
        "name",
        "text",
        "required",
        "the name in decoded ids; fields with the same name are added, with `scale`",
    ),
    (
        "kind",
        "[kinds](#kinds-of-fields)",
        "required",
        "the purpose of the field",
    ),
    (
        "bits",
        "1 to 127",
        "one width is required",
        "the field has 2^bits values",
    ),
    (
        "digits",
        "number, with `radix`",
        "",
        "the field has radix^digits values",
    ),
    ("radix", "2 to 64", "", "the base of `digits`"),
    (
        "cardinality",
        "1 to 2^127",
        "",
        "the number of values, such as 45",
    ),
    (
        "stride",
        "number above the greatest value of all lower fields",
        "the least possible",
        "how much one unit of the field adds to the id",
    ),
    (
        "value",
        "up to the greatest value",
        "none",
        "the value of a `constant`",
    ),
    (
        "max",
        "up to the greatest value of the width",
        "the greatest value of the width",
        "the greatest value of the field",
    ),
    (
        "scale",
        "number; `1` in minted formats, except for `random`; fields of one name must not overlap",
        "`1`",
        "how much one unit adds to the sum of all fields of this name",
    ),
    (
        "sequence",
        "text, for `qualifier`",
        "none",
        "the name of the sequence in the remaining bits",
    ),
    (
        "codes",
        "tables, for `qualifier`; every number must end in exactly one suffix",
        "none",
        "the types: `{ suffix = \"01\", name = \"order\" }`; a code without a name is unassigned; `aliases = [\"purchase\"]` adds names for `?type=`",
    ),
];

const ENCODING_KEYS: [Row; 16] = [
    (
        "kind",
        "[kinds](#kinds-of-encodings)",
        "required",
        "how a number becomes a text",
    ),
    (
        "name",
        "text",
        "the kind; for `radix`, `base` and the radix",
        "the name for `?encoding=`",
    ),
    (
        "prefix",
        "printable ASCII",
        "none",
        "the beginning of every text, such as `inv_`",
    ),
    (
        "radix",
        "2 to 62",
        "the length of `alphabet`",
        "the number of different digits",
    ),
    (
        "alphabet",
        "different printable ASCII characters",
        "digits, then letters",
        "the characters of the digits, smallest first",
    ),
    (
        "case",
        "`lower` or `upper`",
        "`lower` for hexadecimal, `base32hex` and `radix`, else `upper`",
        "the case of the letters",
    ),
    (
        "length",
        "from the length of the greatest id to 255",
        "the length of the greatest id; none for `decimal` and `crockford`",
        "the number of digits of every text, without the `check`",
    ),
    (
        "check",
        "`mod97`, for alphabets of 10 letters or more",
        "none",
        "two letters at the end that detect [typing errors](#a-check)",
    ),
    (
        "bytes",
        "up to 64",
        "the bytes of the greatest id",
        "the number of bytes of every text",
    ),
    (
        "strip",
        "`true` or `false`",
        "`false`",
        "`true`: no leading zeros; not in the first encoding",
    ),
    (
        "salt",
        "ASCII",
        "none",
        "shuffles the alphabet of `hashids`",
    ),
    (
        "salt_file",
        "path",
        "none",
        "a file with a [secret salt](#a-salt-that-is-a-secret)",
    ),
    (
        "min_length",
        "0 to 255",
        "`0`",
        "the least number of letters in a text",
    ),
    (
        "groups",
        "numbers whose sum is `min_length`",
        "none",
        "the lengths of the groups between hyphens: `[4, 4, 4]`",
    ),
    (
        "blocklist",
        "texts",
        "the published list",
        "words that no text of `sqids` contains",
    ),
    ("method", "text", "`siq`", "the method of a `did`"),
];

const RULES: [(Rule, &str, &str); 5] = [
    (
        Rule::Sequenced,
        "from the time, a worker number and a counter; no id repeats",
        "one `time`, one `sequence`; with several nodes also a `worker`",
    ),
    (
        Rule::Random,
        "from random bits, and optionally the time",
        "`random`; optionally `time` and `constant`",
    ),
    (
        Rule::Grouped,
        "from the first report of a [conjunction](CONJUNCTIONS.md); later reports get the same id",
        "one `time`, two `object`",
    ),
    (
        Rule::Chained,
        "from an event and the previous id: [ledgers](LEDGERS.md)",
        "the fields of `evently`, which `like` copies",
    ),
    (Rule::DecodeOnly, "never; ids are only decoded", "any"),
];

const KINDS: [(FieldKind, &str); 10] = [
    (FieldKind::Time, "ticks since the epoch"),
    (
        FieldKind::Worker,
        "the worker number, which the node's slot determines",
    ),
    (FieldKind::Shard, "the value of the setting `worker.shard`"),
    (
        FieldKind::Sequence,
        "the counter of one worker number within one tick",
    ),
    (FieldKind::Random, "a new random number for every id"),
    (
        FieldKind::Constant,
        "the same `value` in every id, such as a version or a region",
    ),
    (
        FieldKind::Object,
        "a catalogue number; in a sequenced format, the 32-bit hash of a domain in `siq.domains`",
    ),
    (FieldKind::Checksum, "a checksum; only for `chained`"),
    (
        FieldKind::Ledger,
        "the ledger of an event; only for `chained`",
    ),
    (
        FieldKind::Qualifier,
        "a type (`?type=`), which the last bits encode",
    ),
];

const ENCODINGS: [(EncodingKind, &str); 18] = [
    (
        EncodingKind::Decimal,
        "digits 0 to 9, without leading zeros unless `length` is set",
    ),
    (EncodingKind::Hex, "hexadecimal without leading zeros"),
    (EncodingKind::HexPadded, "hexadecimal with leading zeros"),
    (EncodingKind::Bytes16Hex, "hexadecimal of 16 bytes"),
    (EncodingKind::Radix, "any radix or alphabet"),
    (EncodingKind::Base36, "0 to 9 and A to Z"),
    (EncodingKind::Base62, "0 to 9, A to Z and a to z"),
    (
        EncodingKind::Base64,
        "RFC 4648 base64url of whole bytes, without `=`",
    ),
    (
        EncodingKind::Base64Lex,
        "base 64 with ascending letters, as in Firebase ids",
    ),
    (
        EncodingKind::Crockford,
        "Crockford's base 32, without leading zeros unless `length` is set",
    ),
    (
        EncodingKind::B32l,
        "RFC 4648 base 32 of whole bytes in lower case",
    ),
    (EncodingKind::Cb32, "Crockford's base 32 of whole bytes"),
    (EncodingKind::Base32hex, "RFC 4648 base32hex of whole bytes"),
    (EncodingKind::Hashids, "Hashids with shuffled letters"),
    (EncodingKind::Sqids, "Sqids, without rude words"),
    (EncodingKind::Uuid, "a UUID (RFC 9562), for 128 bits"),
    (
        EncodingKind::Uuid8,
        "a UUID of version 8 with up to 122 bits",
    ),
    (
        EncodingKind::Did,
        "a decentralised identifier with a checksum, for 112 bits",
    ),
];

/// A 63-bit id that the page shows in each encoding.
const EXAMPLE: u128 = 1_573_542_478_315_782_144;

/// Returns the words that an error message of serde or of a format lists as possible.
fn expected_by(error: &str) -> BTreeSet<String> {
    let before = ["choose from", "expected"];
    let (_, list) = before
        .iter()
        .find_map(|words| error.rsplit_once(words))
        .expect("the error lists the possible words");
    let list = list.lines().next().expect("one line");
    list.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn words<T: for<'de> Deserialize<'de>>() -> BTreeSet<String> {
    let word: StrDeserializer<'_, Error> = "nosuch".into_deserializer();
    expected_by(
        &T::deserialize(word)
            .err()
            .expect("no such word")
            .to_string(),
    )
}

fn names(rows: &[Row]) -> BTreeSet<String> {
    rows.iter().map(|row| row.0.to_owned()).collect()
}

fn format_error(toml: &str) -> String {
    FormatDefinition::from_toml("mine", toml)
        .expect_err(toml)
        .to_string()
}

#[test]
fn the_page_has_every_key_and_every_kind() {
    assert_eq!(
        names(&FORMAT_KEYS),
        expected_by(&format_error("nosuch = 1"))
    );
    assert_eq!(
        names(&FIELD_KEYS),
        expected_by(&format_error("fields = [{ nosuch = 1 }]"))
    );
    assert_eq!(
        names(&ENCODING_KEYS),
        expected_by(&format_error("encodings = [{ nosuch = 1 }]"))
    );
    let named = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(named(&RULES.map(|(rule, ..)| rule.name())), words::<Rule>());
    assert_eq!(
        named(&KINDS.map(|(kind, _)| kind.name())),
        words::<FieldKind>()
    );
    assert_eq!(
        named(&ENCODINGS.map(|(kind, _)| kind.name())),
        words::<EncodingKind>()
    );
}

#[test]
fn the_tables_are_those_of_the_code() {
    assert_generated(PAGE, "rules", &rules());
    assert_generated(PAGE, "format-keys", &keys(&FORMAT_KEYS));
    assert_generated(PAGE, "field-keys", &keys(&FIELD_KEYS));
    assert_generated(PAGE, "field-kinds", &kinds());
    assert_generated(PAGE, "encoding-keys", &keys(&ENCODING_KEYS));
    assert_generated(PAGE, "encodings", &encodings());
}

fn rules() -> String {
    let mut text = "\n| rule | ids are made | fields |\n|---|---|---|\n".to_owned();
    for (rule, made, fields) in RULES {
        writeln!(text, "| `{}` | {made} | {fields} |", rule.name()).unwrap();
    }
    text + "\n"
}

fn keys(rows: &[Row]) -> String {
    let mut text = "\n| key | value | default | what |\n|---|---|---|---|\n".to_owned();
    for (key, value, default, effect) in rows {
        writeln!(text, "| `{key}` | {value} | {default} | {effect} |").unwrap();
    }
    text + "\n"
}

fn kinds() -> String {
    let mut text = "\n| kind | what |\n|---|---|\n".to_owned();
    for (kind, what) in KINDS {
        writeln!(text, "| `{}` | {what} |", kind.name()).unwrap();
    }
    text + "\n"
}

fn encodings() -> String {
    let mut text = format!(
        "\n| kind | what | keys beside `name` and `prefix` | {EXAMPLE} |\n|---|---|---|---|\n"
    );
    for (kind, what) in ENCODINGS {
        let mut definition = EncodingDefinition::from(kind);
        if kind == EncodingKind::Radix {
            definition.radix = Some(20);
        }
        let greatest = if kind == EncodingKind::Did {
            (1 << 112) - 1
        } else {
            (1 << 63) - 1
        };
        let greatest = if kind == EncodingKind::Uuid {
            u128::MAX
        } else {
            greatest
        };
        let encoding = Encoding::new(&definition, greatest).unwrap();
        let keys: Vec<_> = kind.keys().iter().map(|key| format!("`{key}`")).collect();
        let (name, keys, example) = (kind.name(), keys.join(", "), encoding.to_text(EXAMPLE));
        writeln!(text, "| `{name}` | {what} | {keys} | `{example}` |").unwrap();
    }
    text + "\n"
}
