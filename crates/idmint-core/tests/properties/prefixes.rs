//! Checks that published TypeIDs are read correctly, and that no two ids share a text, whatever
//! their prefixes are.

use std::cell::Cell;
use std::collections::HashMap;

use idmint_core::id::{
    DecodeFilter, Decoder, Format, FormatDefinition, IdBlock, Liberty, Progression, is_type,
};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use crate::NOW;
use crate::laws::DECODER;
use idmint_testing::cases::{file, rows, text};

fn typeid() -> Format {
    Format::built_in("typeid").unwrap()
}

/// Returns the format, the type and the id of the best reading of a text.
fn read<'a>(
    decoder: &'a Decoder,
    id: &'a str,
    format: Option<&str>,
) -> Option<(&'a str, &'a str, u128)> {
    let decoded = decoder.at(NOW).decode(
        id,
        DecodeFilter {
            format,
            ..DecodeFilter::default()
        },
    );
    let found = decoded.matches.first()?;
    let (_, canonical) = found.encoding_at(0);
    let (prefix, rest) = id.split_at(found.prefix_len());
    assert_eq!(found.encoding().name(), canonical.name(), "{id}");
    assert_eq!(
        canonical.to_text(found.id()),
        rest,
        "{id}: what is read is written the same"
    );
    assert_eq!(
        decoder
            .at(NOW)
            .best(
                id,
                DecodeFilter {
                    format,
                    ..DecodeFilter::default()
                }
            )
            .map(|best| (best.id(), best.prefix_len())),
        Some((found.id(), prefix.len())),
        "{id}: in brief as in full"
    );
    Some((
        &found.format().name,
        found.format().prefixes.type_of(prefix)?,
        found.id(),
    ))
}

#[test]
fn every_valid_row_of_the_specification_is_read_and_written() {
    let vectors = file("typeid");
    let valid = rows(&vectors["valid"]);
    let any = Format::built_in("typeid-uuid").unwrap();
    for row in valid {
        let (id, of_type) = (
            text(&row["encodings"]["typeid"]),
            text(&row["fields"]["type"]),
        );
        let uuid = any
            .encoding("uuid")
            .unwrap()
            .read(&text(&row["fields"]["uuid"]))
            .unwrap();
        // The version and the variant of the UUID determine whether the text is a `typeid` or a
        // `typeid-uuid`. In both formats, the id is the UUID itself.
        let format = if typeid().split(uuid).is_ok() {
            "typeid"
        } else {
            "typeid-uuid"
        };
        // A text without a type that consists only of digits may belong to many formats, so name
        // the format.
        let pinned = of_type.is_empty().then_some(format);
        assert_eq!(
            read(&DECODER, &id, pinned),
            Some((format, of_type.as_str(), uuid)),
            "{row}"
        );
        let prefix = typeid().prefix_of_type(&of_type).unwrap();
        assert_eq!(
            format!("{}{}", prefix.as_str(), typeid().canonical().to_text(uuid)),
            id,
            "{row}"
        );
    }
    assert_eq!(valid.len(), 9);
}

#[test]
fn a_suffix_in_capitals_is_read_only_leniently() {
    let (suffix, capitals) = ("01h455vb4pex5vsknk084sn02q", "01H455VB4PEX5VSKNK084SN02Q");
    for format in ["typeid", "typeid-uuid"] {
        let filter = DecodeFilter {
            format: Some(format),
            ..DecodeFilter::default()
        };
        let meant = |liberty| {
            let filter = DecodeFilter { liberty, ..filter };
            DECODER.at(NOW).meant_text(capitals, filter)
        };
        assert_eq!(meant(Liberty::Specified), None, "{format}");
        assert_eq!(meant(Liberty::Lenient).as_deref(), Some(suffix), "{format}");
    }
}

#[test]
fn every_invalid_row_of_the_specification_is_refused_with_its_reason() {
    let vectors = file("typeid");
    let invalid = rows(&vectors["invalid"]);
    for row in invalid {
        for format in ["typeid", "typeid-uuid"] {
            let input = text(&row["input"]);
            let filter = DecodeFilter {
                format: Some(format),
                ..DecodeFilter::default()
            };
            let decoder = DECODER.at(NOW);
            let decoded = decoder.decode(&input, filter);
            let reasons: Vec<_> = decoded
                .rejected
                .iter()
                .map(|(_, why)| Value::from(why.code()))
                .collect();
            assert_eq!(
                (decoded.matches.len(), &reasons),
                (0, &vec![row["reason"].clone()]),
                "{format}: {row}"
            );
            assert!(decoder.best(&input, filter).is_none(), "{format}: {row}");
        }
    }
    assert_eq!(invalid.len(), 19);
}

proptest! {
    #[test]
    fn a_typeid_of_any_type_is_read_first_as_one(
        of_type in "[a-z]([a-z_]{0,61}[a-z])?", ticks in 1_700_000_000_000_u128..1_800_000_000_000, low: u64, high in 0_u128..4096,
    ) {
        let id = ticks << 80 | 7 << 76 | high << 64 | 2 << 62 | u128::from(low >> 2);
        let typeid = typeid();
        let prefix = typeid.prefix_of_type(&of_type).unwrap();
        let text = format!("{}{}", prefix.as_str(), typeid.canonical().to_text(id));
        prop_assert_eq!(read(&DECODER, &text, None), Some(("typeid", of_type.as_str(), id)));
        let decoded = DECODER.at(NOW);
        let decoded = decoded.decode(&text, DecodeFilter::default());
        prop_assert!(!decoded.is_ambiguous(), "{:?}", decoded.matches);
        let capitals = text.to_uppercase();
        prop_assert_eq!(DECODER.at(NOW).lenient_text(&capitals, DecodeFilter::default()), Some(text));
    }

    #[test]
    fn what_is_a_type_is_what_the_specification_says(text in "[a-z_A0]{0,66}") {
        let published = regex_lite::Regex::new("^([a-z]([a-z_]{0,61}[a-z])?)?$").unwrap();
        prop_assert_eq!(is_type(&text), published.is_match(&text));
    }

    #[test]
    fn a_block_is_written_as_its_ids_one_by_one(front in "[a-z_]{0,64}", first: u64, step in 1_u128..5000, count in 0_u64..70) {
        for format in DECODER.formats() {
            let first = u128::from(first).min(format.greatest().saturating_sub(step * 70));
            let row = Progression { first, step, count };
            let list: Vec<u128> = row.values().collect();
            let encoding = format.canonical();
            let expected: String = list.iter().map(|id| format!("{front}{}\",\"", encoding.to_text(*id))).collect();
            for block in [IdBlock::Progression(row), IdBlock::List(&list)] {
                let mut out = Vec::new();
                encoding.write_block_behind(&front, block, *b"\",\"", &mut out);
                prop_assert_eq!(String::from_utf8_lossy(&out), expected.as_str(), "{}", format.name);
            }
        }
    }
}

/// Canonical encodings for a small range of ids. Some have a fixed length.
const CANONICAL: [&str; 8] = [
    r#""decimal""#,
    r#""hex""#,
    r#"{ kind = "hex", prefix = "a" }"#,
    r#""hex_padded""#,
    r#"{ kind = "hex_padded", prefix = "1_" }"#,
    r#"{ kind = "radix", alphabet = "1a" }"#,
    r#"{ kind = "base64", bytes = 2 }"#,
    r#"{ kind = "crockford" }"#,
];

/// Prefixes to try with these encodings. Some contain letters of the encodings, and some are
/// prefixes of each other.
const PREFIXES: [&str; 14] = [
    "1", "11", "a", "a1", "aa", "_", "1_", "1_1", "a_", "a_a_", "-", "_-", "g", "1g",
];

#[test]
fn no_two_ids_of_a_format_have_one_text_whatever_stands_before_them() {
    let (sound, refused) = (Cell::new(0), Cell::new(0));
    let drawn = (
        select(CANONICAL.to_vec()),
        subsequence(PREFIXES.to_vec(), 1..=6),
    );
    let mut runner = TestRunner::new(Config {
        cases: 2_000,
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&drawn, |(canonical, prefixes)| {
            let toml = format!(
                "summary = 'any'\nrule = 'decode-only'\nfields = [{{ name = 'n', kind = 'object', bits = 9 }}]
                 encodings = [{canonical}]\nprefixes = {prefixes:?}"
            );
            let Ok(format) = FormatDefinition::from_toml("any", &toml).unwrap().compile("any") else {
                refused.set(refused.get() + 1);
                return Ok(());
            };
            sound.set(sound.get() + 1);
            let mut texts = HashMap::new();
            for id in 0..=format.greatest() {
                for prefix in prefixes.iter().copied().chain([""]) {
                    let text = format!("{prefix}{}", format.canonical().to_text(id));
                    let read = format.prefixes.read(&text, format.canonical());
                    match prefix {
                        // An id without a prefix may start with the letters of a prefix, but must
                        // not be read as if it had one.
                        "" => prop_assert!(
                            !matches!(read, Some(Ok((_, other))) if other <= format.greatest()),
                            "{text}: {read:?}"
                        ),
                        prefix => prop_assert_eq!(read, Some(Ok((prefix, id))), "{}", text),
                    }
                    let other = texts.insert(text.clone(), (prefix, id));
                    prop_assert_eq!(other, None, "{} is also {} of {}", text, id, prefix);
                }
            }
            Ok(())
        })
        .unwrap();
    let (sound, refused) = (sound.get(), refused.get());
    println!("{sound} formats have ids of one text each, {refused} are refused");
    assert!(
        sound > 500 && refused > 300,
        "{sound} sound, {refused} refused"
    );
}

#[test]
fn prefixes_that_could_be_mistaken_are_refused_with_what_is_wrong() {
    let refusal = |settings: &str| {
        let toml = format!(
            "summary = ''\nfields = [{{ name = 'n', kind = 'random', bits = 64 }}]\n{settings}"
        );
        let definition = FormatDefinition::from_toml("any", &toml).unwrap();
        definition
            .compile("any")
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    let random = |keys: &str| refusal(&format!("rule = 'random'\n{keys}"));
    let decimal = "encodings = ['decimal', { kind = 'hex', prefix = 'in' }]";
    for (refusal, named) in [
        (
            random(&format!("{decimal}\nprefixes = ['pi_', 'ch_', 'i']")),
            &["begins like the prefix of the encoding hex"][..],
        ),
        (
            random(&format!("{decimal}\nprefixes = ['inv_']")),
            &["`inv_` begins like the prefix of the encoding hex"],
        ),
        (
            random(&format!("{decimal}\nprefixes = ['pi_', 'p1']")),
            &[
                "`p1` ends in `1`",
                "decimal",
                "the end of the prefix could not be found",
            ],
        ),
        (
            random(&format!("{decimal}\nprefixes = ['pi_', 'pi_']")),
            &["`pi_` is listed twice"],
        ),
        (
            random(&format!("{decimal}\nprefixes = ['']")),
            &["1 to 64 printable ASCII"],
        ),
        (
            random(&format!("{decimal}\nprefixes = ['a\"_']")),
            &["1 to 64 printable ASCII"],
        ),
        (
            random(&format!("{decimal}\nprefixes = ['{}_']", "a".repeat(64))),
            &["1 to 64 printable ASCII"],
        ),
        (
            random(&format!("{decimal}\ntypes = []")),
            &["types", "decimal", "the same length"],
        ),
        (
            random("encodings = ['hex_padded']\ntypes = ['user', 'User']"),
            &["`User` must be 0 to 63 characters from a-z and _"],
        ),
        (
            random("encodings = ['hex_padded']\ntypes = []\nprefixes = ['pi_']"),
            &["remove `prefixes`"],
        ),
        (
            random("encodings = ['hex_padded', { kind = 'hex', prefix = 'user_' }]\ntypes = []"),
            &["the prefix of the encoding hex could be read as a type"],
        ),
    ] {
        assert!(
            named.iter().all(|named| refusal.contains(named)),
            "{named:?}: {refusal:?}"
        );
    }
    assert_eq!(random(&format!("{decimal}\nprefixes = ['pi_', 'ch_']")), "");
    assert_eq!(
        random("encodings = ['hex_padded']\nprefixes = ['a', 'ab', 'abc']"),
        "",
        "texts of one length stay apart"
    );
    let of_rule = |name: &str, key: &str| {
        let preset = idmint_core::id::PRESETS
            .iter()
            .find(|preset| preset.name == name)
            .unwrap();
        let compiled = FormatDefinition::from_toml(name, &format!("{key}\n{}", preset.toml))
            .unwrap()
            .compile(name);
        compiled
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert!(of_rule("conjunction", "prefixes = ['ce_']").contains("rule `grouped` cannot have"));
    assert!(of_rule("evently", "types = []").contains("rule `chained` cannot have"));
    assert!(of_rule("siq", "types = []").contains("already encode the type"));
}

#[test]
fn a_canonical_text_without_letters_is_refused() {
    let compiled = |encodings: &str, value: &str| {
        let toml = format!(
            "summary = ''\nrule = 'decode-only'\nencodings = [{encodings}]\nprefixes = ['pi_']\n\
             fields = [{{ name = 'n', kind = 'object', bits = 7 }}, {{ name = 'one', {value}, bits = 1 }}]"
        );
        FormatDefinition::from_toml("any", &toml)
            .unwrap()
            .compile("any")
    };
    let (stripped, any, one) = (
        "{ kind = 'b32l', bytes = 5, strip = true }",
        "kind = 'random'",
        "kind = 'constant', value = 1",
    );
    let error = compiled(stripped, any).unwrap_err();
    assert_eq!(error.key(), "encodings[0].strip");
    assert!(error.to_string().contains("would be empty"), "{error}");
    compiled("{ kind = 'b32l', bytes = 5 }", any).unwrap();
    compiled(&format!("'decimal', {stripped}"), any).unwrap();
    compiled(stripped, one).unwrap();
}
