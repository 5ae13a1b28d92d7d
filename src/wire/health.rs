//! `GET /health/ready`.

use serde::{Deserialize, Serialize};

/// Whether this node mints, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// Whether sequenced ids are minted.
    pub ready: bool,
    /// The slot this node holds; null while it has none.
    pub slot: Option<u32>,
    /// The first instant it has not reserved; null before it has reserved any.
    pub horizon: Option<String>,
    /// Why it is not ready: the slug of the problem that callers get.
    pub reason: Option<String>,
    /// The same for people.
    pub detail: Option<String>,
    /// `ready` if events are appended, which needs no horizon; else the slug of the problem that callers get.
    pub records: String,
}
