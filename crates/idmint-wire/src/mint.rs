//! The request and the response of `POST /ids/{format}`.

use serde::{Deserialize, Deserializer, Serialize};

use super::ledger::EventDetail;
use super::report::ReportDetail;
use idmint_core::id::Progression;

/// The body of a mint request. A request may also have no body.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MintRequest {
    /// The number of ids. 1 if the member is absent.
    #[serde(
        default,
        deserialize_with = "read_present",
        skip_serializing_if = "Option::is_none"
    )]
    pub count: Option<u64>,
}

/// Reads a number and refuses `null`. To ask for the default, a request must leave the member out.
fn read_present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    u64::deserialize(value).map(Some)
}

/// The response of a mint request, with the ids as texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MintAnswer {
    /// The format of the ids.
    pub format: String,
    /// The number of ids.
    pub count: u64,
    /// `development` if the ids contain 0 in place of the hash of a domain name, for example
    /// because neither the request nor the configuration names a domain. Otherwise absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The ids. They are strings in every format.
    pub ids: Vec<String>,
    /// The result for each report or event in the request, in order. Absent for formats whose ids
    /// are made from neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<MintDetails>,
}

/// The response of a mint request in compact form, in which one row describes many ids. For
/// example, the row with the first id 98, the step 2 and the count 3 describes the ids 98, 100 and
/// 102.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MintRows {
    /// The format of the ids.
    pub format: String,
    /// The number of ids.
    pub count: u64,
    /// `development` if the ids contain 0 in place of the hash of a domain name, for example
    /// because neither the request nor the configuration names a domain. Otherwise absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The rows, in the order of the ids.
    pub rows: Vec<IdRow>,
}

/// A row of `count` ids of the same tick at a constant distance: `first`, `first + step`, `first +
/// 2 * step`, and so on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdRow {
    /// The first id in decimal digits. It is a string, because many programs read only 53 bits of a
    /// JSON number.
    pub first: String,
    /// The distance from one id to the next, in decimal digits.
    pub step: String,
    /// The number of ids in the row.
    pub count: u64,
}

impl IdRow {
    /// Converts the row to numbers. Returns `None` if the row is empty, if a member is not a
    /// decimal number, or if an id would exceed 128 bits.
    ///
    /// ```
    /// use idmint_wire::IdRow;
    ///
    /// let row = IdRow { first: "98".to_owned(), step: "2".to_owned(), count: 3 };
    /// let ids = row.progression().expect("decimal digits");
    /// assert_eq!(ids.values().collect::<Vec<_>>(), [98, 100, 102]);
    /// ```
    pub fn progression(&self) -> Option<Progression> {
        let (first, step) = (decimal(&self.first)?, decimal(&self.step)?);
        let beyond_first = u128::from(self.count.checked_sub(1)?).checked_mul(step)?;
        first.checked_add(beyond_first)?;
        Some(Progression {
            first,
            step,
            count: self.count,
        })
    }
}

fn decimal(text: &str) -> Option<u128> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// The results for the reports or the events in the request, one for each id in the response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MintDetails {
    /// The result for each report.
    Reports(Vec<ReportDetail>),
    /// The result for each event.
    Events(Vec<EventDetail>),
}
