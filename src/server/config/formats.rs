//! Which formats there are, how their texts are told apart, and what single formats need beyond their layout.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::value::{self, distinct, some_between, some_whole, whole};
use crate::conjunction::{NoteForm, ObjectRules, PairOrder};
use crate::id::is_type;
use crate::ledger::{
    NumberBounds, NumberCheck, NumberKind, NumberRule, NumberRules, NumberTemplate, SeriesPattern,
};

/// The section `formats`: the list `enabled`, and one table a format.
///
/// Names and definitions are only carried here; whoever reads the definitions knows the formats and refuses unknown
/// ones. No format can be called `enabled`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FormatsConfig {
    /// The formats that are minted and tried by decode. Default: all that are on by themselves.
    pub enabled: Option<Vec<String>>,
    /// `formats.<name>.*`: changes to a built-in format, or a format of one's own.
    pub definitions: BTreeMap<String, toml::Table>,
}

impl<'de> Deserialize<'de> for FormatsConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FormatsVisitor)
    }
}

// By hand instead of `#[serde(flatten)]`, which forgets the path and the line of an error inside.
struct FormatsVisitor;

impl<'de> Visitor<'de> for FormatsVisitor {
    type Value = FormatsConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the list `enabled` and one table a format")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FormatsConfig, A::Error> {
        let mut formats = FormatsConfig::default();
        while let Some(name) = map.next_key::<String>()? {
            if name == "enabled" {
                formats.enabled = Some(map.next_value::<DistinctNames>()?.0);
            } else {
                formats
                    .definitions
                    .insert(name, map.next_value::<Definition>()?.0);
            }
        }
        Ok(formats)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<FormatsConfig, E> {
        Err(E::custom(NO_TABLE))
    }
}

/// What a text is refused with that stands where formats do. It is not quoted: a variable of the environment that is not
/// quite TOML is such a text, and there may be a salt in it.
const NO_TABLE: &str = "must be a table, in TOML";

struct Definition(toml::Table);

impl<'de> Deserialize<'de> for Definition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match toml::Value::deserialize(deserializer)? {
            toml::Value::Table(table) => Ok(Self(table)),
            _ => Err(de::Error::custom(NO_TABLE)),
        }
    }
}

#[derive(Deserialize)]
struct DistinctNames(#[serde(deserialize_with = "distinct")] Vec<String>);

/// The section `decode`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DecodeConfig {
    /// Formats in the order that decides between equal evidence; the others follow in their own. Default: empty.
    #[serde(deserialize_with = "distinct")]
    pub order: Vec<String>,
}

/// The section `siq`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SiqConfig {
    /// The type of a request that names none. Default: a request must name one.
    #[serde(rename = "type", deserialize_with = "some_type")]
    pub default_type: Option<String>,
    /// The domains that may be minted for; the first is the default. Default: none, development zeros.
    ///
    /// Shape: lower-case visible ASCII, because a domain is hashed as it is written and `Example.com` is another one.
    #[serde(deserialize_with = "domains")]
    pub domains: Vec<String>,
    /// Replaces the top byte of the domain's hash: 1 to 256, where 256 stands for 0. Default: the hash stays.
    #[serde(deserialize_with = "some_whole::<_, _, 1, 256>")]
    pub local_id: Option<u16>,
}

fn some_type<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let expected = "the name of a SIQ type such as \"message\"";
    value::read_text(deserializer, expected, |text| {
        (!text.is_empty()).then(|| text.to_owned())
    })
    .map(Some)
}

fn domains<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(distinct::<D, Domain>(deserializer)?
        .into_iter()
        .map(|domain| domain.0)
        .collect())
}

#[derive(PartialEq)]
struct Domain(String);

impl<'de> Deserialize<'de> for Domain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let is_domain = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase())
        };
        let expected =
            "a domain in lower-case ASCII such as \"example.com\" (international ones as xn--)";
        value::read_text(deserializer, expected, |text| {
            is_domain(text).then(|| Self(text.to_owned()))
        })
    }
}

/// The section `typeid`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TypeidConfig {
    /// The types that are minted, the empty one among them only if it is named. Default: any.
    #[serde(deserialize_with = "types")]
    pub types: Vec<String>,
}

fn types<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(distinct::<D, TypeName>(deserializer)?
        .into_iter()
        .map(|name| name.0)
        .collect())
}

#[derive(PartialEq)]
struct TypeName(String);

impl<'de> Deserialize<'de> for TypeName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected =
            "a type such as \"user\": 0 to 63 of a-z and _, beginning and ending with a letter";
        value::read_text(deserializer, expected, |text| {
            is_type(text).then(|| Self(text.to_owned()))
        })
    }
}

/// The section `conjunction`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConjunctionConfig {
    /// How a report finds its id. Default: grouped.
    pub mode: ConjunctionMode,
    /// Whether (a, b) and (b, a) are one pair. Default: reported, two pairs.
    pub pair_order: PairOrder,
    /// How long a stored conjunction can still be joined after its time of closest approach: 1 to 36 500 days. Default:
    /// for ever, because a report that comes later than this gets a second id for the same conjunction.
    #[serde(deserialize_with = "some_between::<_, 86_400_000, 3_153_600_000_000>")]
    pub retention: Option<Duration>,
    /// The catalogues whose numbers are those of SATCAT, in any case of their letters. Default: SATCAT.
    #[serde(deserialize_with = "catalogs")]
    pub catalogs: Vec<String>,
    /// The catalogue numbers that other designators stand for: by designator, or by catalogue and designator with a slash
    /// between them. Default: none.
    pub designators: BTreeMap<Designator, CatalogueNumber>,
    /// Where ids are put into messages of CCSDS 508.0. Default: in 1.0 a comment, from 2.0 on the keyword.
    pub note: Option<NoteForm>,
}

impl Default for ConjunctionConfig {
    fn default() -> Self {
        Self {
            mode: ConjunctionMode::Grouped,
            pair_order: PairOrder::Reported,
            retention: None,
            catalogs: vec!["SATCAT".to_owned()],
            designators: BTreeMap::new(),
            note: None,
        }
    }
}

impl ConjunctionConfig {
    /// Which objects the designators of reports stand for.
    pub fn object_rules(&self) -> ObjectRules {
        let designators = self
            .designators
            .iter()
            .map(|(designator, number)| (designator.0.as_str(), number.0));
        ObjectRules::new(self.catalogs.iter().map(String::as_str), designators)
    }
}

fn catalogs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(distinct::<D, Designator>(deserializer)?
        .into_iter()
        .map(|name| name.0)
        .collect())
}

/// A name in a message: visible characters of ASCII.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Designator(String);

impl<'de> Deserialize<'de> for Designator {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let is_name =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let expected = "a name in visible ASCII without spaces such as \"SATCAT\" or \"L3972\"";
        value::read_text(deserializer, expected, |text| {
            is_name(text).then(|| Self(text.to_owned()))
        })
    }
}

/// The number of an object: 1 to 9 007 199 254 740 991. Whether a format has room for it is seen when it is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct CatalogueNumber(
    #[serde(deserialize_with = "whole::<_, _, 1, 9_007_199_254_740_991>")] u64,
);

/// How a report finds its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConjunctionMode {
    /// It joins a stored conjunction of the same pair within a second, else it founds one.
    Grouped,
    /// It takes its own time of closest approach: independent systems agree, nothing is stored.
    Pure,
}

/// The section `numbers`: one table for each way in which series are written.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct NumbersConfig(BTreeMap<String, SeriesConfig>);

/// How many numbers of a block are reserved at once, unless it is said.
const RESERVE: NonZeroU32 = NonZeroU32::new(1_000).expect("some");

/// What is promised of the numbers of a series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberKindName {
    /// None is left out.
    #[default]
    Gapless,
    /// They are reserved ahead.
    Blocks,
}

/// `numbers.<name>`: how the series are written that match its pattern, and how far they go.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SeriesConfig {
    /// The series that it is for, such as `invoice-*`. Needed.
    #[serde(deserialize_with = "pattern")]
    pub pattern: Option<SeriesPattern>,
    /// What is promised of their numbers: `gapless`, or `blocks` for numbers close together without a key. Default: gapless.
    pub kind: NumberKindName,
    /// For blocks, how many numbers are reserved at once, and lost at most when the process ends: 1 to 1 000 000 000. Default 1 000.
    #[serde(deserialize_with = "some_whole::<_, _, 1, 1_000_000_000>")]
    pub reserve: Option<u32>,
    /// How a number is written, such as `INV-{series}-{n:05}`. Default: the number alone.
    #[serde(deserialize_with = "template")]
    pub text: Option<NumberTemplate>,
    /// The first number of a series: 1 to 9 223 372 036 854 775 807. Default 1.
    #[serde(deserialize_with = "some_whole::<_, _, 1, 9_223_372_036_854_775_807>")]
    pub start: Option<u64>,
    /// The last number that there can be, in the same bounds. Default: the last of them.
    #[serde(deserialize_with = "some_whole::<_, _, 1, 9_223_372_036_854_775_807>")]
    pub max: Option<u64>,
    /// The check characters at the end. Default: none.
    #[serde(deserialize_with = "check")]
    pub check: Option<NumberCheck>,
}

impl NumbersConfig {
    /// The rules that the tables make.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    pub(super) fn rules(&self) -> Result<NumberRules, (String, String)> {
        let rule = |(name, config): (&String, &SeriesConfig)| {
            let SeriesConfig {
                pattern,
                kind,
                reserve,
                text,
                start,
                max,
                check,
            } = config;
            let refuse =
                |key: &str, problem: &str| (format!("numbers.{name}{key}"), problem.to_owned());
            let pattern = pattern
                .clone()
                .ok_or_else(|| refuse("", "pattern is missing: the series that it is for"))?;
            let whole = NumberBounds::default();
            let bounds = NumberBounds {
                start: start.unwrap_or(whole.start),
                max: max.unwrap_or(whole.max),
            };
            if bounds.start > bounds.max {
                let problem = format!(
                    "is {}, and start is {}: there would be no number",
                    bounds.max, bounds.start
                );
                return Err(refuse(".max", &problem));
            }
            let kind = match kind {
                NumberKindName::Gapless if reserve.is_some() => {
                    return Err(refuse(
                        ".reserve",
                        "is for kind = \"blocks\": others are written one by one",
                    ));
                }
                NumberKindName::Gapless => NumberKind::Gapless,
                NumberKindName::Blocks if text.is_some() || check.is_some() => {
                    return Err(refuse(
                        ".kind",
                        "is blocks, whose numbers are answered as numbers: text and check are for others",
                    ));
                }
                NumberKindName::Blocks => {
                    let reserve = reserve.and_then(NonZeroU32::new).unwrap_or(RESERVE);
                    NumberKind::Blocks { reserve }
                }
            };
            let template = text.clone().unwrap_or_else(NumberTemplate::plain);
            Ok(NumberRule {
                name: name.clone(),
                pattern,
                kind,
                template,
                check: *check,
                bounds,
            })
        };
        let rules = NumberRules::new(self.0.iter().map(rule).collect::<Result<_, _>>()?);
        rules.map_err(|error| (format!("numbers.{}.pattern", error.rule), error.to_string()))
    }
}

fn pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SeriesPattern>, D::Error> {
    value::read_text(deserializer, SeriesPattern::RULE, SeriesPattern::from_text).map(Some)
}

fn template<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<NumberTemplate>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let template = NumberTemplate::from_text(&text);
    template
        .map(Some)
        .map_err(|error| de::Error::custom(format_args!("{text:?} {error}")))
}

fn check<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NumberCheck>, D::Error> {
    value::read_text(deserializer, "\"luhn\" or \"mod97\"", NumberCheck::named).map(Some)
}
