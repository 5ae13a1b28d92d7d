//! Checks that different ids have different texts, even if the ids have different prefixes.

use super::definition::FormatDefinition;
use super::format::Rule;
use super::format_error::Cause;
use super::prefixes::{Prefix, Prefixes, TYPE_RULE, is_type};
use crate::id::encoding::{Encoding, LetterSet};

/// The maximum number of prefixes that a format can have. Parsing a text tries each of them.
const LISTED_MAX: usize = 64;

/// The maximum length of an id's prefix in bytes. An encoding's own prefix has the same limit.
const LEN_MAX: usize = 64;

/// Checks the prefixes and types in the definition of a format, and returns them. `has_types` is
/// `true` if the layout already encodes types.
///
/// If the canonical texts have a fixed length, the length of a text shows where its prefix ends. If
/// they vary in length, each prefix must end in a character that canonical texts do not contain,
/// such as `_`. A prefix then ends at the last such character.
pub(super) fn check_prefixes(
    definition: &FormatDefinition,
    encodings: &[Encoding],
    has_types: bool,
) -> Result<Prefixes, Cause> {
    let canonical = &encodings[0];
    let listed = &definition.prefixes;
    let Some(types) = &definition.types else {
        check_rule(definition.rule, "prefixes", listed.is_empty())?;
        if listed.len() > LISTED_MAX {
            let count = listed.len();
            return Cause::rule_at(
                "prefixes",
                format!("prefixes: a format can have at most {LISTED_MAX} prefixes, got {count}"),
            );
        }
        for (at, prefix) in listed.iter().enumerate() {
            let key = format!("prefixes[{at}]");
            if listed[..at].contains(prefix) {
                return Cause::rule_at(key, format!("prefixes: `{prefix}` is listed twice"));
            }
            check_prefix(prefix, canonical, &encodings[1..])
                .map_err(|why| Cause::Rule(format!("prefixes: `{prefix}` {why}")).at(key))?;
        }
        return Ok(Prefixes::Listed(
            listed.iter().map(|prefix| Prefix::new(prefix)).collect(),
        ));
    };
    let refuse = |why: &str| Cause::rule_at("types", format!("types: {why}"));
    check_rule(definition.rule, "types", false)?;
    if has_types {
        return refuse("the last bits of the ids already encode the type; remove `types`");
    }
    if !listed.is_empty() {
        return refuse("a format with types cannot have other prefixes; remove `prefixes`");
    }
    if canonical.fixed_len().is_none() {
        return refuse(&format!(
            "all texts of the canonical encoding {} must have the same length, so that the end of a type can \
             be found",
            canonical.name()
        ));
    }
    if let Some(other) = encodings[1..]
        .iter()
        .find(|other| !other.prefix().is_empty())
    {
        return refuse(&format!(
            "the prefix of the encoding {} could be read as a type; remove that prefix",
            other.name()
        ));
    }
    if let Some(other) = types.iter().find(|other| !is_type(other)) {
        return refuse(&format!("`{other}` must be {TYPE_RULE}"));
    }
    Ok(Prefixes::Types {
        minted: types.clone(),
    })
}

/// Returns an error if a format of rule chained or grouped has a prefix or type. Stores look up
/// these ids by text, and a prefix would give an id several texts.
fn check_rule(rule: Rule, key: &str, is_absent: bool) -> Result<(), Cause> {
    match rule {
        Rule::Chained | Rule::Grouped if !is_absent => {
            let rule = rule.name();
            Cause::rule_at(
                key,
                format!("{key}: ids of the rule `{rule}` cannot have {key}; remove them"),
            )
        }
        _ => Ok(()),
    }
}

/// Checks that canonical texts can have this prefix. `others` are the other encodings of the
/// format. The error is a text without a subject, such as `must be 1 to 64 printable ASCII
/// characters`. The caller puts the prefix in front of it.
fn check_prefix(prefix: &str, canonical: &Encoding, others: &[Encoding]) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    let Some(last) = prefix
        .bytes()
        .last()
        .filter(|_| prefix.len() <= LEN_MAX && prefix.bytes().all(is_plain))
    else {
        return Err(format!(
            "must be 1 to {LEN_MAX} printable ASCII characters without \" and \\"
        ));
    };
    if canonical.fixed_len().is_none() && LetterSet::of(&[last]).is_within(canonical.letters()) {
        let (name, last) = (canonical.name(), char::from(last));
        return Err(format!(
            "ends in `{last}`, which the encoding {name} also uses, so the end of the prefix could not be \
             found: end it in another character, such as _"
        ));
    }
    let is_alike = |other: &&Encoding| {
        let of_encoding = other.prefix();
        !of_encoding.is_empty()
            && (prefix.starts_with(of_encoding) || of_encoding.starts_with(prefix))
    };
    match others.iter().find(is_alike) {
        Some(other) => Err(format!(
            "begins like the prefix of the encoding {}, so a text could be read both \
             ways; choose another prefix",
            other.name()
        )),
        None => Ok(()),
    }
}
