//! Settings of id formats: their definitions, how they are decoded, and options of single formats.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::value::{self, between, distinct, some_between, some_whole, whole};
use idmint_core::id::is_type;
use idmint_records::conjunction::{NoteForm, ObjectRules, PairOrder};
use idmint_records::ledger::{
    NumberBounds, NumberCheck, NumberKind, NumberRule, NumberRules, NumberTemplate, SeriesPattern,
    Years,
};

/// The section `formats`, which contains the list `enabled` and one table for each format.
///
/// The tables are not parsed yet. The [`Catalog`](crate::server::Catalog) of formats parses them,
/// and refuses unknown names. No format can have the name `enabled`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FormatsConfig {
    /// The names of the formats that are minted, and that are tried when a text is decoded.
    /// Default: all formats whose definition does not say `enabled = false`.
    pub enabled: Option<Vec<String>>,
    /// The tables `formats.<name>`. Each table changes a built-in format or defines a new format.
    pub definitions: BTreeMap<String, toml::Table>,
}

impl FormatsConfig {
    /// `true` if the configuration defines, changes or enables the format with this name.
    pub fn names(&self, format: &str) -> bool {
        let mut enabled = self.enabled.iter().flatten();
        self.definitions.contains_key(format) || enabled.any(|name| name == format)
    }
}

impl<'de> Deserialize<'de> for FormatsConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FormatsVisitor)
    }
}

// `Deserialize` is implemented by hand, because with `#[serde(flatten)]` an error inside a table
// would lose its path and line.
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

/// The error message if the value for a format is a text instead of a table. For example, an
/// environment variable whose table is not valid TOML is parsed as a text. The message does not
/// quote the text, because it may contain a salt.
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
    /// The formats that are preferred if a text fits several formats equally well, best first. All
    /// other formats follow in their usual order. Default: empty.
    #[serde(deserialize_with = "distinct")]
    pub order: Vec<String>,
}

/// The section `siq`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SiqConfig {
    /// The type of the minted ids if a request names no type. Default: none, which means that each
    /// request must name a type.
    #[serde(rename = "type", deserialize_with = "some_type")]
    pub default_type: Option<String>,
    /// The domains for which ids may be minted. The first domain is the default. Default: none,
    /// which means that every id contains zero, the hash for development.
    ///
    /// A domain consists of lower-case visible ASCII characters. The domain is hashed exactly as
    /// written, so `Example.com` would have a different hash than `example.com`.
    #[serde(deserialize_with = "domains")]
    pub domains: Vec<String>,
    /// A number that replaces the top byte of the domain's hash: 1 to 256, where 256 sets the byte
    /// to 0. Default: none, which means that the hash is not changed.
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
    let is_letter = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase();
    let expected =
        "a domain in lower-case ASCII such as \"example.com\" (international ones as xn--)";
    value::distinct_texts(deserializer, expected, |text| {
        let is_domain = !text.is_empty() && text.bytes().all(is_letter);
        is_domain.then(|| text.to_owned())
    })
}

/// The section `typeid`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TypeidConfig {
    /// The types that an id may have, such as `user`. An empty text in the list allows ids without
    /// a type. Default: all types, and no type.
    #[serde(deserialize_with = "types")]
    pub types: Vec<String>,
}

fn types<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let expected = "a type such as \"user\": 0 to 63 characters from a-z and _ that begin and end with a letter";
    value::distinct_texts(deserializer, expected, |text| {
        is_type(text).then(|| text.to_owned())
    })
}

/// The section `conjunction`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConjunctionConfig {
    /// The rule for ids of reports. Default: `grouped` (reports of one close approach share an id).
    pub mode: ConjunctionMode,
    /// The rule that decides if the objects (a, b) and (b, a) are the same pair. Default:
    /// `reported`, with which they are two different pairs.
    pub pair_order: PairOrder,
    /// The maximum difference in time at which an analysis (a report with an `event_id`) joins the
    /// conjunction that its `event_id` names: 0 to 1 day. Both times are times of closest approach.
    /// A stored conjunction of the same two objects within a second takes precedence. 0 turns this
    /// off. Default: 10 min.
    #[serde(deserialize_with = "between::<_, 0, 86_400_000>")]
    pub analysis_reach: Duration,
    /// The time for which a stored conjunction accepts reports after its closest approach:
    /// 1 to 36 500 days. A report that arrives later gets a second id for the same conjunction.
    /// Default: no limit.
    #[serde(deserialize_with = "some_between::<_, 86_400_000, 3_153_600_000_000>")]
    pub retention: Option<Duration>,
    /// The names of the catalogues of space objects that use the numbers of SATCAT, the satellite
    /// catalogue of the USA. Upper and lower case do not matter. Default: SATCAT.
    #[serde(deserialize_with = "catalogs")]
    pub catalogs: Vec<String>,
    /// The catalogue numbers of objects that messages name by a text (a designator) instead of a
    /// number. A key is the designator, or the name of a catalogue, a slash and the designator.
    /// Default: none.
    pub designators: BTreeMap<Designator, CatalogueNumber>,
    /// The form in which a conjunction id is written into a Conjunction Data Message (CCSDS 508.0):
    /// as a comment, or as the keyword CONJUNCTION_ID. Default: a comment in version 1.0 of the
    /// message format, and the keyword from version 2.0 on.
    pub note: Option<NoteForm>,
}

impl Default for ConjunctionConfig {
    fn default() -> Self {
        Self {
            mode: ConjunctionMode::Grouped,
            pair_order: PairOrder::Reported,
            analysis_reach: Duration::from_secs(600),
            retention: None,
            catalogs: vec!["SATCAT".to_owned()],
            designators: BTreeMap::new(),
            note: None,
        }
    }
}

impl ConjunctionConfig {
    /// Returns the rules that map the designators (names) of objects in reports to object numbers.
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

/// A name of a catalogue or of a space object in a conjunction message. The name consists of
/// visible ASCII characters, and of spaces between them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Designator(String);

impl<'de> Deserialize<'de> for Designator {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let is_name = |text: &str| {
            let is_visible = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
            !text.is_empty() && text.trim_ascii() == text && text.bytes().all(is_visible)
        };
        let expected = "a name in visible ASCII without a space at either end, such as \"SATCAT\" or \"US SATCAT\"";
        value::read_text(deserializer, expected, |text| {
            is_name(text).then(|| Self(text.to_owned()))
        })
    }
}

/// The catalogue number of a space object: 1 to 9 007 199 254 740 991. When the object occurs in a
/// report, the number must also fit into the field of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct CatalogueNumber(
    #[serde(deserialize_with = "whole::<_, _, 1, 9_007_199_254_740_991>")] u64,
);

/// The rule by which a report gets its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConjunctionMode {
    /// A report joins a stored conjunction of the same pair of objects if their times of closest
    /// approach are within a second of each other. Otherwise the report creates a new conjunction.
    Grouped,
    /// The id of a report is computed from the report's own time of closest approach. The report is
    /// not stored, and independent systems mint the same id for the same report.
    Pure,
}

/// The section `numbers`: one table for each kind of series.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct NumbersConfig(BTreeMap<String, SeriesConfig>);

/// The default for `reserve`, which is the number of numbers that a series of the kind `blocks`
/// reserves at once.
const RESERVE: NonZeroU32 = NonZeroU32::new(1_000).expect("some");

/// The kind of a series, `gapless` or `blocks`. The kind determines if the numbers of the series
/// can have gaps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberKindName {
    /// No number is left out.
    #[default]
    Gapless,
    /// Numbers are reserved in blocks before they are requested. If the process ends, the unused
    /// numbers of a block remain a gap.
    Blocks,
}

/// The table `numbers.<name>`. It contains the written form and the bounds of all series whose
/// names match `pattern`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SeriesConfig {
    /// The pattern for the names of the series to which this table applies, such as `invoice-*`.
    /// Required.
    #[serde(deserialize_with = "pattern")]
    pub pattern: Option<SeriesPattern>,
    /// The kind of these series. A `gapless` series leaves out no number. A `blocks` series may
    /// have small gaps, and its requests need no idempotency key. Default: `gapless`.
    pub kind: NumberKindName,
    /// The size of a block in series of the kind `blocks`: 1 to 1 000 000 000 numbers. At most this
    /// many numbers are lost when the process ends. Default: 1 000.
    #[serde(deserialize_with = "some_whole::<_, _, 1, 1_000_000_000>")]
    pub reserve: Option<u32>,
    /// The template for a number as text, such as `INV-{series}-{n:05}`. Default: only the digits
    /// of the number.
    #[serde(deserialize_with = "template")]
    pub text: Option<NumberTemplate>,
    /// The first number of a series: 1 to 9 223 372 036 854 775 807. Default: 1.
    #[serde(deserialize_with = "some_whole::<_, _, 1, 9_223_372_036_854_775_807>")]
    pub start: Option<u64>,
    /// The last number of a series: 1 to 9 223 372 036 854 775 807. Default: 9 223 372 036 854 775
    /// 807.
    #[serde(deserialize_with = "some_whole::<_, _, 1, 9_223_372_036_854_775_807>")]
    pub max: Option<u64>,
    /// The check characters after each number, which reveal typing errors: `luhn` or `mod97`.
    /// Default: none.
    #[serde(deserialize_with = "check")]
    pub check: Option<NumberCheck>,
    /// Former values of `text`. Numbers that were written with these templates can still be
    /// decoded. Default: none.
    #[serde(deserialize_with = "templates")]
    pub former: Vec<NumberTemplate>,
    /// The first and the last year that the part `year` of a series name can have. The range covers
    /// 1 to 100 years. Required for the placeholder `{year:last2}`, because two digits alone are
    /// ambiguous. Default: all years.
    #[serde(deserialize_with = "years")]
    pub years: Option<Years>,
    /// The periods in which series issue numbers, such as `["2025", "2026"]`. The period of a
    /// series is the part `year` of its name. If the pattern has no `year`, the period is the part
    /// `period`, or else the text in place of the star. Default: all periods.
    pub periods: Option<Vec<String>>,
}

impl NumbersConfig {
    /// Builds the rules for series of numbers from the tables in this section.
    ///
    /// # Errors
    /// Returns the key of the invalid setting, and the reason.
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
                former,
                years,
                periods,
            } = config;
            let refuse =
                |key: &str, problem: &str| (format!("numbers.{name}{key}"), problem.to_owned());
            let pattern = pattern
                .clone()
                .ok_or_else(|| refuse("", "pattern is missing: it names the series"))?;
            let whole = NumberBounds::default();
            let bounds = NumberBounds {
                start: start.unwrap_or(whole.start),
                max: max.unwrap_or(whole.max),
            };
            if bounds.start > bounds.max {
                let problem = format!(
                    "is {}, but start is {}: the series would be empty",
                    bounds.max, bounds.start
                );
                return Err(refuse(".max", &problem));
            }
            let kind = match kind {
                NumberKindName::Gapless if reserve.is_some() => {
                    return Err(refuse(
                        ".reserve",
                        "needs kind = \"blocks\": other numbers are written one by one",
                    ));
                }
                NumberKindName::Gapless => NumberKind::Gapless,
                NumberKindName::Blocks
                    if text.is_some() || check.is_some() || !former.is_empty() =>
                {
                    return Err(refuse(
                        ".kind",
                        "is blocks, which has no texts: leave out text, former and check",
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
                former: former.clone(),
                check: *check,
                bounds,
                years: *years,
                periods: periods.clone(),
            })
        };
        let rules = NumberRules::new(self.0.iter().map(rule).collect::<Result<_, _>>()?);
        rules.map_err(|error| {
            let key = format!("numbers.{}.{}", error.rule, error.key);
            (key, error.to_string())
        })
    }
}

fn pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SeriesPattern>, D::Error> {
    value::read_text(deserializer, SeriesPattern::RULE, SeriesPattern::from_text).map(Some)
}

fn template<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<NumberTemplate>, D::Error> {
    String::deserialize(deserializer)
        .and_then(|text| template_from(&text))
        .map(Some)
}

fn templates<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<NumberTemplate>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| template_from(text)).collect()
}

fn template_from<E: de::Error>(text: &str) -> Result<NumberTemplate, E> {
    let template = NumberTemplate::from_text(text);
    template.map_err(|error| E::custom(format_args!("{text:?} {error}")))
}

fn years<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Years>, D::Error> {
    let [first, last] = <[u16; 2]>::deserialize(deserializer)?;
    let years = Years::new(first, last).ok_or_else(|| {
        de::Error::custom(format_args!(
            "[{first}, {last}] must be the first and the last of 1 to 100 years up to 9999, such as [2000, 2099]"
        ))
    });
    years.map(Some)
}

fn check<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NumberCheck>, D::Error> {
    value::read_text(deserializer, "\"luhn\" or \"mod97\"", NumberCheck::named).map(Some)
}
