//! Requests and responses about ledgers.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use idmint_records::ledger::{ChainError, ChainVerdict};

/// The maximum length of a request body about ledgers, in bytes.
pub const LEDGER_BODY_LEN_MAX: usize = 1024 * 1024;

/// The maximum length of an event in a request, in bytes.
pub const EVENT_LEN_MAX: usize = 256 * 1024;

/// The maximum number of events in a request. Every store can write them in one transaction.
pub const EVENTS_MAX: usize = 10_000;

/// The body of a request to `POST /ledgers/{ledger}/events` or `POST /ids/evently`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppendRequest<'a> {
    /// The id of the ledger, as eight hexadecimal digits. If the URL contains the id, this member
    /// may be left out, or must be equal to it.
    #[serde(borrow, default)]
    pub ledger: Option<Cow<'a, str>>,
    /// The events, byte for byte as they were sent, because the checksum of an event depends on
    /// every character.
    #[serde(borrow)]
    pub events: Vec<&'a RawValue>,
    /// The id of the ledger's last event before the append, as the caller expects it.
    #[serde(borrow, default)]
    pub expected_previous: Option<Cow<'a, str>>,
}

/// The result for one appended event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventDetail {
    /// The id of the event.
    pub id: String,
    /// The time of the event in RFC 3339, to the microsecond.
    pub timestamp: String,
    /// The id of the previous event.
    pub previous: String,
    /// The position of the event in the ledger, counted from 1.
    pub place: u64,
}

/// A ledger, with its first and its last event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerInfo {
    /// The id of the ledger, as eight hexadecimal digits.
    pub ledger: String,
    /// The number of events in the ledger.
    pub events: u64,
    /// The id of the first event.
    pub genesis: String,
    /// The time of the first event.
    pub created: String,
    /// The id of the last event.
    pub head: String,
    /// The time of the last event.
    pub updated: String,
    /// `true` if the ledger is being imported and more parts will follow. Absent if `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub importing: bool,
}

/// One page of the list of ledgers, in the order of their ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerList {
    /// The ledgers of this page.
    pub ledgers: Vec<LedgerInfo>,
    /// The value of `after` that requests the next page, or null on the last page.
    pub next: Option<String>,
}

/// One page of the events in a ledger, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerIds {
    /// The ledger.
    pub ledger: String,
    /// The events of this page.
    pub ids: Vec<EventDetail>,
    /// The value of `after` that requests the next page, or null on the last page.
    pub next: Option<String>,
}

/// The response of `POST /ledgers/{ledger}/verify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LedgerCheck {
    /// `true` if each event's id fits the event's content and the id of the previous event.
    pub valid: bool,
    /// The number of events, including those after the first invalid one.
    pub events: u64,
    /// The id of the last event. Absent if the chain of events is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The first invalid event. Absent if the chain is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ChainError>,
}

impl LedgerCheck {
    /// Creates the response for a verdict on a chain.
    pub fn of(verdict: ChainVerdict) -> LedgerCheck {
        let valid_head = verdict.head.filter(|_| verdict.error.is_none());
        LedgerCheck {
            valid: verdict.error.is_none(),
            events: verdict.events,
            head: valid_head.map(|head| head.to_string()),
            error: verdict.error,
        }
    }
}
