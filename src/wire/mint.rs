//! `POST /ids/{format}`.

use serde::{Deserialize, Deserializer, Serialize};

use super::ledger::EventDetail;
use super::report::ReportDetail;
use crate::id::Progression;

/// The body of a mint request, if it has one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MintRequest {
    /// How many ids; 1 if absent.
    #[serde(
        default,
        deserialize_with = "read_present",
        skip_serializing_if = "Option::is_none"
    )]
    pub count: Option<u64>,
}

/// Reads a member that is present: `null` is an error.
fn read_present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    u64::deserialize(value).map(Some)
}

/// The ids of one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MintAnswer {
    /// The format they have.
    pub format: String,
    /// How many.
    pub count: u64,
    /// `development` for ids that belong to no domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The ids, always as strings.
    pub ids: Vec<String>,
    /// The result for each report or event, in their order; only of formats that are minted from these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<MintDetails>,
}

/// The ids of one request as numbers at equal distances, without their texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MintRows {
    /// The format they have.
    pub format: String,
    /// How many.
    pub count: u64,
    /// `development` for ids that belong to no domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The rows, in the order of the ids.
    pub rows: Vec<IdRow>,
}

/// Ids of one tick at equal distances: `first`, `first + step`, …, `count` of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdRow {
    /// The first id, in decimal digits: it may have 128 bits.
    pub first: String,
    /// The distance from one id to the next, in decimal digits.
    pub step: String,
    /// How many ids there are.
    pub count: u64,
}

impl IdRow {
    /// The row as numbers; `None` for what is none, or ends beyond 128 bits.
    ///
    /// ```
    /// use idmint::wire::IdRow;
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

/// The results for what ids were minted from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MintDetails {
    /// Of each report.
    Reports(Vec<ReportDetail>),
    /// Of each event.
    Events(Vec<EventDetail>),
}
