//! `POST /ids/{format}`.

use serde::{Deserialize, Deserializer, Serialize};

use super::ledger::EventDetail;
use super::report::ReportDetail;

/// The body of a mint request, if it has one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MintRequest {
    /// How many ids; 1 if absent.
    #[serde(default, deserialize_with = "read_present", skip_serializing_if = "Option::is_none")]
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

/// The results for what ids were minted from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MintDetails {
    /// Of each report.
    Reports(Vec<ReportDetail>),
    /// Of each event.
    Events(Vec<EventDetail>),
}
