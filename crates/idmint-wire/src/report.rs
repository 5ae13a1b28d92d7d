//! The request and the response of `POST /ids/{format}` for formats whose ids are minted from
//! reports of close approaches of two objects in space. All reports of one close approach get the
//! same id.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, IgnoredAny, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// A report of a close approach of two objects in space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportRequest<'a> {
    /// The time of closest approach in UTC, in a text form of RFC 3339 or CCSDS.
    #[serde(borrow)]
    pub tca: Cow<'a, str>,
    /// The catalogue number of the object that is named first.
    #[serde(deserialize_with = "whole_number")]
    pub primary: u64,
    /// The catalogue number of the other object.
    #[serde(deserialize_with = "whole_number")]
    pub secondary: u64,
    /// The id that the sender attached to the report, if any. A sender gets this id from the
    /// response to an earlier report of the same close approach.
    #[serde(
        rename = "CONJUNCTION_EVENT_ID",
        borrow,
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub noted: Option<Cow<'a, str>>,
}

/// A report of a close approach from an analyst's file. The file may have many more members, which
/// are ignored.
///
/// An object in space is written as a JSON object, `{"primary_object":{"norad_id":25544}}`. In an
/// exported table, it is a member with a dot in its name, `{"primary_object.norad_id":25544}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AnalysisRequest<'a> {
    /// The id that this service or another one gave to the close approach, if any. It is a string
    /// or a number. Other values are ignored.
    #[serde(borrow, default, deserialize_with = "event_id")]
    pub event_id: Option<Cow<'a, str>>,
    /// The time of closest approach in UTC, in a text form of RFC 3339 or CCSDS.
    #[serde(borrow)]
    pub tca: Cow<'a, str>,
    /// The object that is named first.
    #[serde(alias = "primary_object.norad_id")]
    pub primary_object: AnalysedObject,
    /// The other object.
    #[serde(alias = "secondary_object.norad_id")]
    pub secondary_object: AnalysedObject,
}

/// An object in an [`AnalysisRequest`]: either a JSON object with the catalogue number, or the
/// catalogue number alone.
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

/// Reads an id that is a JSON string or number. A number is kept as text, because a long one would
/// lose digits as a floating-point number. Any other value counts as absent.
fn event_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    let json = <&RawValue>::deserialize(deserializer)?.get();
    match json.as_bytes().first() {
        Some(b'"') => {
            let StringOf(text) = serde_json::from_str(json).map_err(de::Error::custom)?;
            Ok(Some(text))
        }
        Some(b'-' | b'0'..=b'9') => Ok(Some(Cow::Borrowed(json))),
        _ => Ok(None),
    }
}

/// A JSON string. It is borrowed if it contains no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct StringOf<'a>(#[serde(borrow)] Cow<'a, str>);

/// A visitor that reads a catalogue number, with or without quotes, or a JSON object with the
/// number in its member `norad_id`.
struct ObjectNumber;

impl<'de> Visitor<'de> for ObjectNumber {
    type Value = u64;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a catalogue number from 1 up, or an object whose member `norad_id` is one")
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
    /// The id of the report's conjunction, which all of its reports have.
    pub id: String,
    /// `true` if the report is the first one of its conjunction. Null if the service does not store
    /// conjunctions, because it does not know earlier reports then.
    pub created: Option<bool>,
    /// The time of closest approach from which the id was made, in RFC 3339 with six fraction
    /// digits. If conjunctions are not stored and the report keeps the id that its sender attached,
    /// it is the time in that id. If conjunctions are not stored and the report gets a new id, it
    /// is the report's own time.
    pub anchor_tca: String,
    /// The report's time of closest approach minus `anchor_tca`, in microseconds. It is negative if
    /// the report's time is earlier.
    pub tca_delta_us: i64,
    /// `true` if the sender attached an id that differs from `id`. Otherwise absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub noted_differs: bool,
    /// The id of another conjunction of the same two objects that is nearer in time. Present only
    /// if the report has an `event_id` and joined the conjunction with that id, although the other
    /// one is nearer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearer_id: Option<String>,
    /// The ids of other conjunctions of the same two objects within one minute of this one. The
    /// order of the objects does not matter. Absent if empty, or if the report is not the first one
    /// of its conjunction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<String>,
    /// A warning for the sender about how the report was read. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// A stored conjunction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConjunctionInfo {
    /// The id of the conjunction.
    pub id: String,
    /// The time of closest approach from which the id was made, in RFC 3339 with six fraction
    /// digits.
    pub anchor_tca: String,
    /// The catalogue number of the object that is named first.
    pub primary: u64,
    /// The catalogue number of the other object.
    pub secondary: u64,
    /// The precedence of the conjunction among those of the same two objects. A report within one
    /// second of several conjunctions joins the one with the lowest rank.
    pub rank: u32,
    /// The approximate number of reports, or null if it is unknown.
    pub reports: Option<u64>,
    /// The time at which the first report arrived.
    pub first_reported: Option<String>,
    /// The time at which the last report arrived.
    pub last_reported: Option<String>,
    /// The time of closest approach in the first report.
    pub first_tca: Option<String>,
    /// The time of closest approach in the last report.
    pub last_tca: Option<String>,
    /// The ids of other conjunctions of the same two objects within one minute of this one. The
    /// order of the objects does not matter.
    pub near: Vec<String>,
    /// The ids that other originators gave to the conjunction, in the order of their arrival.
    #[serde(default)]
    pub external: Vec<String>,
}

/// One page of the list of stored conjunctions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConjunctionInfos {
    /// The format of the ids.
    pub format: String,
    /// The conjunctions of this page.
    pub conjunctions: Vec<ConjunctionInfo>,
    /// The value of `after` that requests the next page, or null on the last page.
    pub next: Option<String>,
}

/// The response of a request with `partial=true`. Valid reports get ids even if other reports are
/// invalid.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartialReports<P> {
    /// The format of the ids.
    pub format: String,
    /// The number of reports that got an id.
    pub count: u64,
    /// The id of each report, or null if the report got no id.
    pub ids: Vec<Option<String>>,
    /// The result for each report, in order.
    pub details: Vec<PartialDetail<P>>,
}

/// The result for one report in [`PartialReports`]: an id, or the reason why the report got none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PartialDetail<P> {
    /// The report got an id.
    Id(ReportDetail),
    /// The report got no id.
    Refused {
        /// The reason why the report got no id.
        problem: P,
    },
}

/// Reads a number without a fraction, an exponent or a sign. For any other value, the error says
/// what a catalogue number is, instead of naming the Rust type `u64`.
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
