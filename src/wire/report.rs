//! `POST /ids/{format}` of a grouped format: reports, and the result for each.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, IgnoredAny, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Two objects that come close to each other, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportRequest<'a> {
    /// The time of closest approach in UTC, as RFC 3339 or CCSDS write it.
    #[serde(borrow)]
    pub tca: Cow<'a, str>,
    /// The catalogue number of the object reported first.
    #[serde(deserialize_with = "whole_number")]
    pub primary: u64,
    /// The catalogue number of the other object.
    #[serde(deserialize_with = "whole_number")]
    pub secondary: u64,
    /// The id that the report came back with.
    #[serde(
        rename = "CONJUNCTION_EVENT_ID",
        borrow,
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub noted: Option<Cow<'a, str>>,
}

/// A report as analysts post it back, in a file of many members of which these are read.
///
/// The objects are members of their own, `{"primary_object":{"norad_id":25544}}`, or as a table names them,
/// `"primary_object.norad_id"`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AnalysisRequest<'a> {
    /// The id that the report came back with.
    #[serde(borrow, default)]
    pub event_id: Option<Cow<'a, str>>,
    /// The time of closest approach in UTC, as RFC 3339 or CCSDS write it.
    #[serde(borrow)]
    pub tca: Cow<'a, str>,
    /// The object reported first.
    #[serde(alias = "primary_object.norad_id")]
    pub primary_object: AnalysedObject,
    /// The other object.
    #[serde(alias = "secondary_object.norad_id")]
    pub secondary_object: AnalysedObject,
}

/// An object of an [`AnalysisRequest`]: an object of JSON with its number among others, or the number alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnalysedObject {
    /// The catalogue number.
    pub norad_id: u64,
}

impl<'de> Deserialize<'de> for AnalysedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AnalysedObject, D::Error> {
        deserializer
            .deserialize_any(ObjectNumber)
            .map(|norad_id| AnalysedObject { norad_id })
    }
}

/// Reads a catalogue number, in quotes or not, or an object that has one as its `norad_id`.
struct ObjectNumber;

impl<'de> Visitor<'de> for ObjectNumber {
    type Value = u64;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a catalogue number from 1 up, or an object with it as `norad_id`")
    }

    fn visit_u64<E>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_digits.then(|| text.parse().ok()).flatten();
        number.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<u64, A::Error> {
        let mut found = None;
        while let Some(name) = members.next_key::<Cow<'de, str>>()? {
            if name == "norad_id" {
                found = Some(members.next_value::<AnalysedObject>()?.norad_id);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        found.ok_or_else(|| de::Error::missing_field("norad_id"))
    }
}

/// The result for one report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportDetail {
    /// The id it got.
    pub id: String,
    /// Whether it is the first of its conjunction; `None` where conjunctions are not stored, so that is unknown.
    pub created: Option<bool>,
    /// The time from which the id is made, to the microsecond: the report's own where conjunctions are not stored.
    pub anchor_tca: String,
    /// Microseconds from that time to the time of the report; 0 where conjunctions are not stored.
    pub tca_delta_us: i64,
    /// Whether the report came with another id than this; absent if not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub noted_differs: bool,
    /// The ids of the same two objects, in either order, within a minute of one that was created; absent if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<String>,
    /// What its sender should know of how the report was read; absent if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A stored conjunction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConjunctionInfo {
    /// Its id.
    pub id: String,
    /// The time from which the id is made, to the microsecond.
    pub anchor_tca: String,
    /// The catalogue number of the object reported first.
    pub primary: u64,
    /// The catalogue number of the other object.
    pub secondary: u64,
    /// Of anchors of the pair within two seconds the one of least rank is joined first.
    pub rank: u32,
    /// About how many reports there were; `None` where that is not known.
    pub reports: Option<u64>,
    /// When the first of them came.
    pub first_reported: Option<String>,
    /// When the last of them came.
    pub last_reported: Option<String>,
    /// The time of closest approach in the first of them.
    pub first_tca: Option<String>,
    /// The time of closest approach in the last of them.
    pub last_tca: Option<String>,
    /// The ids of the same two objects, in either order, within a minute.
    pub near: Vec<String>,
    /// The ids that other originators have given it, in the order in which they came.
    #[serde(default)]
    pub external: Vec<String>,
}

/// Some stored conjunctions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConjunctionInfos {
    /// The format of the ids.
    pub format: String,
    /// The conjunctions.
    pub conjunctions: Vec<ConjunctionInfo>,
    /// What `after` must be to get the next ones; `None` if these were the last.
    pub next: Option<String>,
}

/// The results for reports of which some may get no id.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartialReports<P> {
    /// The format of the ids.
    pub format: String,
    /// How many reports got an id.
    pub count: u64,
    /// The id of each report, or none.
    pub ids: Vec<Option<String>>,
    /// The result for each report.
    pub details: Vec<PartialDetail<P>>,
}

/// The result for one report that may get no id.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PartialDetail<P> {
    /// It got one.
    Id(ReportDetail),
    /// It got none.
    Refused {
        /// Why.
        problem: P,
    },
}

/// Reads a number without fraction, exponent or sign, with an error that says so.
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_u64(WholeNumber)
}

struct WholeNumber;

impl Visitor<'_> for WholeNumber {
    type Value = u64;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a catalogue number, a whole number from 1 up")
    }

    fn visit_u64<E>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }
}
