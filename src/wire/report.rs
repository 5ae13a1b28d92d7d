//! `POST /ids/{format}` of a grouped format: reports, and the result for each.

use std::borrow::Cow;
use std::fmt;

use serde::de::Visitor;
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
