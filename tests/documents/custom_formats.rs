//! `docs/CUSTOM-FORMATS.md` has every key, kind of field and kind of encoding that there is, with what the code says of it.

use std::collections::BTreeSet;
use std::fmt::Write;

use idmint::id::{Encoding, EncodingDefinition, EncodingKind, FieldKind, FormatDefinition, Rule};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

use crate::generated::assert_generated;

const PAGE: &str = "docs/CUSTOM-FORMATS.md";

/// Key, type, bounds, default, effect.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const FORMAT_KEYS: [Row; 21] = [
    (
        "summary",
        "text",
        "",
        "needed",
        "one line, for lists and descriptions",
    ),
    (
        "rule",
        "word",
        "`sequenced`, `random`, `grouped`, `chained`, `decode-only`",
        "needed",
        "how ids come to be, [below](#rules)",
    ),
    (
        "tick",
        "duration",
        "`1s`, `10ms`, `100ns`, `1s/65536`; from 1 ns",
        "needed with a time",
        "what one unit of the time is",
    ),
    (
        "epoch",
        "instant",
        "years 0 to 9999, in the past for what is to be minted",
        "needed with a time",
        "when the time was 0",
    ),
    (
        "fields",
        "list of tables",
        "1 to 16, most significant first, 128 bits together",
        "needed",
        "the layout: [keys](#keys-of-a-field), [kinds](#kinds-of-fields)",
    ),
    (
        "encodings",
        "list of words or tables",
        "at least 1",
        "needed",
        "how ids are written, the first is the canonical text: [keys](#keys-of-an-encoding), [kinds](#kinds-of-encodings)",
    ),
    (
        "prefixes",
        "list of texts",
        "up to 64, each 1 to 64 printable characters of ASCII without `\"` and `\\`",
        "none",
        "what callers may ask to stand before the canonical text by [`?prefix=`](#prefixes)",
    ),
    (
        "types",
        "list of texts",
        "0 to 63 of a-z and `_`, beginning and ending with a letter",
        "none",
        "the canonical text stands behind a type and `_`, as of a [`typeid`](FORMATS.md#typeid): one of these, or any if the list is empty",
    ),
    (
        "first_worker",
        "number",
        "up to the greatest of the worker field",
        "`0`",
        "numbers below are another generator's, which may run beside this one",
    ),
    (
        "worker_range",
        "two numbers",
        "`[0, 511]`, both included",
        "all",
        "the worker numbers that are minted with; the others decode",
    ),
    (
        "lanes",
        "number",
        "1 to all worker numbers",
        "`worker.lanes`",
        "over how many worker numbers one node spreads its ids at most",
    ),
    (
        "sequence_spread",
        "number",
        "1, or a power of two up to a quarter of the sequence",
        "`1`",
        "the first id of a tick takes one of so many first sequences, so that ids minted one at a time do not all end alike",
    ),
    (
        "start_after",
        "number or text",
        "an id in any encoding of the format; for `sequenced`",
        "none",
        "nothing at or below it is minted: [what another generator has issued](#after-another-generator)",
    ),
    (
        "exclude",
        "text",
        "a file of ids, one a line, sorted; for `sequenced`",
        "none",
        "a tick of a worker number that holds one of them is left out whole",
    ),
    (
        "monotonic",
        "word",
        "`clock`, `batch`, `process`, `off`",
        "`off`",
        "which ids of a `random` format [ascend](FORMATS.md#which-one)",
    ),
    (
        "labels",
        "table",
        "by worker number",
        "none",
        "names that a reading tells: `{ 1 = \"Berlin\" }`",
    ),
    (
        "mint_below",
        "number, or text above 2^63",
        "",
        "2^63 for layouts of 64 bits, else none",
        "no id at or above it is minted; they decode",
    ),
    (
        "plausible_ahead",
        "duration",
        "",
        "`24h`",
        "how far ahead of the clock a time may be before a reading counts as unlikely",
    ),
    (
        "rarity",
        "number",
        "0 to 255",
        "`0`",
        "bits by which a reading as this format counts less: for formats that are seldom met",
    ),
    (
        "reveals",
        "text",
        "",
        "none",
        "what an id tells whoever sees it",
    ),
    (
        "enabled",
        "`true` or `false`",
        "",
        "`true`",
        "`false`: neither minted nor tried when reading, unless asked for by name",
    ),
];

const FIELD_KEYS: [Row; 12] = [
    (
        "name",
        "text",
        "",
        "needed",
        "what a reading calls it; several of one name add up, with `scale`",
    ),
    (
        "kind",
        "word",
        "[below](#kinds-of-fields)",
        "needed",
        "what it is for",
    ),
    (
        "bits",
        "number",
        "1 to 127",
        "one width is needed",
        "2^bits values",
    ),
    (
        "digits",
        "number",
        "with `radix`",
        "",
        "radix^digits values",
    ),
    ("radix", "number", "2 to 64", "", "the base of `digits`"),
    (
        "cardinality",
        "number",
        "1 to 2^127",
        "",
        "so many values, such as 45",
    ),
    (
        "stride",
        "number",
        "above the greatest value of all fields below",
        "one more than that",
        "what one unit adds to the number",
    ),
    (
        "value",
        "number",
        "up to the greatest",
        "none",
        "the value of a `constant`",
    ),
    (
        "max",
        "number",
        "up to what the width has room for",
        "that",
        "the greatest value, where it is less",
    ),
    (
        "scale",
        "number",
        "shares must not overlap",
        "`1`",
        "what one unit adds to the sum of all fields of this name",
    ),
    (
        "sequence",
        "text",
        "for `qualifier`",
        "none",
        "the name of the sequence in the bits that its words leave",
    ),
    (
        "codes",
        "list of tables",
        "for `qualifier`: every number ends in exactly one",
        "none",
        "its words: `{ suffix = \"01\", name = \"order\" }`, without a name if unassigned; `aliases = [\"purchase\"]` are other names for it in `?type=`",
    ),
];

const ENCODING_KEYS: [Row; 16] = [
    (
        "kind",
        "word",
        "[below](#kinds-of-encodings)",
        "needed",
        "how numbers become texts",
    ),
    (
        "name",
        "text",
        "",
        "the kind; for `radix` `base` and the radix",
        "what callers ask for by `?encoding=`",
    ),
    (
        "prefix",
        "text",
        "printable ASCII",
        "none",
        "stands before every text: `inv_`",
    ),
    (
        "radix",
        "number",
        "2 to 62",
        "as many as `alphabet` has",
        "how many digits there are",
    ),
    (
        "alphabet",
        "text",
        "different printable letters of ASCII",
        "digits, then letters",
        "the letters that stand for digits, smallest first",
    ),
    (
        "case",
        "`lower` or `upper`",
        "",
        "`lower` for hexadecimal and `radix`, else `upper`",
        "the case of its letters",
    ),
    (
        "length",
        "number",
        "as many as the greatest id needs, to 255",
        "that, or none for `decimal` and `crockford`",
        "digits of every text, a `check` not counted",
    ),
    (
        "check",
        "`mod97`",
        "10 letters or more",
        "none",
        "two more letters that tell a mistyped id: [a check](#a-check)",
    ),
    (
        "bytes",
        "number",
        "up to 64",
        "as many as the greatest id needs",
        "bytes of every text",
    ),
    (
        "strip",
        "`true` or `false`",
        "",
        "`false`",
        "leading zeros are left out",
    ),
    (
        "salt",
        "text",
        "ASCII",
        "none",
        "shuffles the alphabet of `hashids`; it hinders guessing and protects nothing",
    ),
    (
        "salt_file",
        "text",
        "",
        "none",
        "a file with the salt in its only line: [a salt that is a secret](#a-salt-that-is-a-secret)",
    ),
    (
        "min_length",
        "number",
        "0 to 255",
        "`0`",
        "letters of every text at least",
    ),
    (
        "groups",
        "list of numbers",
        "together `min_length`",
        "none",
        "hyphens after so many letters: `[4, 4, 4]`",
    ),
    (
        "blocklist",
        "list of texts",
        "",
        "the published one",
        "words that no text of `sqids` contains",
    ),
    ("method", "text", "", "`siq`", "the method of a `did`"),
];

const RULES: [(Rule, &str, &str); 5] = [
    (
        Rule::Sequenced,
        "from the time, a worker number and a counter: never twice, ascending for each worker number",
        "one `time`, one `sequence`; a `worker` as soon as there are two nodes",
    ),
    (
        Rule::Random,
        "from random bits, after a time if there is one: as unlikely to repeat as its random bits are many",
        "`random`, and perhaps `time` and `constant`",
    ),
    (
        Rule::Grouped,
        "all reports of one happening get the same id: [conjunctions](CONJUNCTIONS.md)",
        "one `time`, two `object`",
    ),
    (
        Rule::Chained,
        "each id names the one before it: [ledgers](LEDGERS.md)",
        "those of `evently`: `like` copies them",
    ),
    (Rule::DecodeOnly, "read, and never made", "any"),
];

const KINDS: [(FieldKind, &str); 10] = [
    (FieldKind::Time, "ticks since the epoch"),
    (
        FieldKind::Worker,
        "keeps two nodes apart: from the node's slot, or over several of them (`lanes`)",
    ),
    (
        FieldKind::Shard,
        "a second number, from `worker.shard` of the configuration as it is",
    ),
    (
        FieldKind::Sequence,
        "counts the ids of one worker number within one tick",
    ),
    (FieldKind::Random, "drawn anew for every id"),
    (
        FieldKind::Constant,
        "the same in every id, its `value`: a version, a region",
    ),
    (
        FieldKind::Object,
        "what the id is about: a catalogue number; in a sequenced format, 32 bits, the hash of a domain out of `siq.domains`",
    ),
    (
        FieldKind::Checksum,
        "made of the rest, so that damage is seen; of `chained` alone",
    ),
    (
        FieldKind::Ledger,
        "the ledger of an event; of `chained` alone",
    ),
    (
        FieldKind::Qualifier,
        "a type, told by the last bits: `?type=`",
    ),
];

const ENCODINGS: [(EncodingKind, &str); 18] = [
    (
        EncodingKind::Decimal,
        "digits 0 to 9, no zeros in front unless `length` is given",
    ),
    (EncodingKind::Hex, "hexadecimal, no zeros in front"),
    (
        EncodingKind::HexPadded,
        "hexadecimal, as many digits as the greatest id has",
    ),
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
        "64 letters in ascending order, as Firebase and Flax have them",
    ),
    (
        EncodingKind::Crockford,
        "Crockford's base 32, no zeros in front unless `length` is given",
    ),
    (
        EncodingKind::B32l,
        "RFC 4648 base 32 of whole bytes in lower case",
    ),
    (EncodingKind::Cb32, "Crockford's base 32 of whole bytes"),
    (EncodingKind::Base32hex, "RFC 4648 base32hex of whole bytes"),
    (EncodingKind::Hashids, "Hashids: shuffled letters"),
    (
        EncodingKind::Sqids,
        "Sqids: shuffled letters without rude words",
    ),
    (EncodingKind::Uuid, "the form of RFC 9562, for 128 bits"),
    (
        EncodingKind::Uuid8,
        "up to 122 bits around version and variant of a UUID 8",
    ),
    (
        EncodingKind::Did,
        "a decentralised identifier with a checksum, for 112 bits",
    ),
];

/// An id of 63 bits, of which each encoding shows what it makes.
const EXAMPLE: u128 = 1_573_542_478_315_782_144;

/// The words that an error message says would have been right.
fn expected_by(error: &str) -> BTreeSet<String> {
    let list = error
        .rsplit_once("expected")
        .expect("serde says what it knows")
        .1;
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
    let mut text = "\n| key | type | bounds | default | what |\n|---|---|---|---|---|\n".to_owned();
    for (key, kind, bounds, default, effect) in rows {
        writeln!(
            text,
            "| `{key}` | {kind} | {bounds} | {default} | {effect} |"
        )
        .unwrap();
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
