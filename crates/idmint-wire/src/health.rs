//! The response of `GET /health/ready`.

use serde::{Deserialize, Serialize};

/// The readiness of this node to mint ids and to store records. If it is not ready, the members
/// give the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// `true` if the node can mint sequenced ids.
    pub ready: bool,
    /// The slot that this node holds, or null if it holds none.
    pub slot: Option<u32>,
    /// The horizon, which is the end of the time that this node has reserved for minting. Null
    /// before the first reservation.
    pub horizon: Option<String>,
    /// The reason why the node is not ready, for example `draining`. Mint requests then get the
    /// problem `/problems/draining`. Null if the node is ready.
    pub reason: Option<String>,
    /// The reason as a sentence for people. Null if the node is ready.
    pub detail: Option<String>,
    /// `ready` if the node stores new events, numbers and conjunctions, which may be the case even
    /// while it cannot mint. Otherwise the reason why it does not, as the last part of the URL of
    /// the problem that such requests get.
    pub records: String,
    /// The reason why records are not stored, as a sentence with a remedy. Null if `records` is
    /// `ready`.
    #[serde(default)]
    pub records_detail: Option<String>,
    /// Warnings about certificates, revocation lists and tokens that expire within 30 days or have
    /// expired.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
