//! Whether what may stand before a text leaves every id a text of its own.

use super::definition::FormatDefinition;
use super::format::Rule;
use super::format_error::Cause;
use super::prefixes::{Prefix, Prefixes, TYPE_RULE, is_type};
use crate::id::encoding::{Encoding, LetterSet};

/// Each is tried when a text is read.
const LISTED_MAX: usize = 64;

/// The longest prefix, as of an encoding.
const LEN_MAX: usize = 64;

/// The prefixes of a format with these encodings. `has_types`: whether its layout has types.
///
/// Texts of one length stay apart, since texts that are equal then have prefixes of one length. Of others, a prefix that ends
/// outside their letters is the only one that ends where it does.
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
            return Err(Cause::Rule(format!(
                "prefixes: there are {}, {LISTED_MAX} are the most",
                listed.len()
            )));
        }
        for (at, prefix) in listed.iter().enumerate() {
            if listed[..at].contains(prefix) {
                return Err(Cause::Rule(format!("prefixes: `{prefix}` is there twice")));
            }
            check_prefix(prefix, canonical, &encodings[1..])
                .map_err(|why| Cause::Rule(format!("prefixes: `{prefix}` {why}")))?;
        }
        return Ok(Prefixes::Listed(
            listed.iter().map(|prefix| Prefix::new(prefix)).collect(),
        ));
    };
    let refuse = |why: &str| Err(Cause::Rule(format!("types: {why}")));
    check_rule(definition.rule, "types", false)?;
    if has_types {
        return refuse("the last bits of its ids tell their type already");
    }
    if !listed.is_empty() {
        return refuse("its types are what stands before its ids, remove `prefixes`");
    }
    if canonical.fixed_len().is_none() {
        return refuse(&format!(
            "the texts of {} need to have one length, where a type ends is told by it",
            canonical.name()
        ));
    }
    if let Some(other) = encodings[1..]
        .iter()
        .find(|other| !other.prefix().is_empty())
    {
        return refuse(&format!("the prefix of {} could be a type", other.name()));
    }
    if let Some(other) = types.iter().find(|other| !is_type(other)) {
        return refuse(&format!("`{other}` is not {TYPE_RULE}"));
    }
    Ok(Prefixes::Types {
        minted: types.clone(),
    })
}

/// Ids of the other rules are looked for by their texts.
fn check_rule(rule: Rule, key: &str, is_absent: bool) -> Result<(), Cause> {
    match rule {
        Rule::Chained | Rule::Grouped if !is_absent => Err(Cause::Rule(format!(
            "{key}: ids of the rule `{}` have none",
            rule.name()
        ))),
        _ => Ok(()),
    }
}

/// What is wrong with this prefix of the canonical text, beside the other encodings.
fn check_prefix(prefix: &str, canonical: &Encoding, others: &[Encoding]) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    let Some(last) = prefix
        .bytes()
        .last()
        .filter(|_| prefix.len() <= LEN_MAX && prefix.bytes().all(is_plain))
    else {
        return Err(format!(
            "is not 1 to {LEN_MAX} printable ASCII characters without \" and \\"
        ));
    };
    if canonical.fixed_len().is_none() && LetterSet::of(&[last]).is_within(canonical.letters()) {
        let (name, last) = (canonical.name(), char::from(last));
        return Err(format!(
            "ends in `{last}`, which {name} has, too, in texts of many lengths: end it in another character, such as _"
        ));
    }
    let is_alike = |other: &&Encoding| {
        let of_encoding = other.prefix();
        !of_encoding.is_empty()
            && (prefix.starts_with(of_encoding) || of_encoding.starts_with(prefix))
    };
    match others.iter().find(is_alike) {
        Some(other) => Err(format!("begins like the prefix of {}", other.name())),
        None => Ok(()),
    }
}
