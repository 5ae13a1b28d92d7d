//! Ledgers: requests and answers.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The longest body of a request about ledgers, in bytes.
pub const LEDGER_BODY_LEN_MAX: usize = 1024 * 1024;

/// The longest event in a request, in bytes.
pub const EVENT_LEN_MAX: usize = 256 * 1024;

/// The most events in a request: they are stored together, in one transaction of whichever store.
pub const EVENTS_MAX: usize = 10_000;

/// The body of `POST /ledgers/{ledger}/events` and of `POST /ids/evently`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppendRequest<'a> {
    /// The ledger, eight hexadecimal digits; that of the address where the address has one.
    #[serde(borrow, default)]
    pub ledger: Option<Cow<'a, str>>,
    /// The events as they were sent: what a checksum covers depends on every digit of them.
    #[serde(borrow)]
    pub events: Vec<&'a RawValue>,
    /// The id of the last event that the caller knows of.
    #[serde(borrow, default)]
    pub expected_previous: Option<Cow<'a, str>>,
}

/// The result for one event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventDetail {
    /// The id it got.
    pub id: String,
    /// Its time, to the microsecond.
    pub timestamp: String,
    /// The id before it.
    pub previous: String,
    /// Its place in the ledger, from 1.
    pub place: u64,
}

/// One ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerInfo {
    /// Its id, eight hexadecimal digits.
    pub ledger: String,
    /// How many events it has.
    pub events: u64,
    /// The id of its first event.
    pub genesis: String,
    /// The time of its first event.
    pub created: String,
    /// The id of its last event.
    pub head: String,
    /// The time of its last event.
    pub updated: String,
    /// Whether it is being imported and more of it follows; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub importing: bool,
}

/// Some ledgers, in the order of their ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerList {
    /// The ledgers.
    pub ledgers: Vec<LedgerInfo>,
    /// What `after` must be to get the next ones; `None` if these were the last.
    pub next: Option<String>,
}

/// Some events of a ledger, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerIds {
    /// The ledger.
    pub ledger: String,
    /// Its events.
    pub ids: Vec<EventDetail>,
    /// What `after` must be to get the next ones; `None` if these were the last.
    pub next: Option<String>,
}
