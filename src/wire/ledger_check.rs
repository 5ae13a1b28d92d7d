//! `POST /ledgers/{ledger}/verify`: whether a chain of events holds.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::ledger::{ChainError, ChainVerdict};

/// Whether a chain holds, and where it does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerCheck {
    /// Whether every event got the id it carries, after the one before it.
    pub valid: bool,
    /// How many events there are, with those after the first that does not hold.
    pub events: u64,
    /// The id of the last event of a chain that holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The first event that does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<LedgerFault>,
}

/// The first event of a chain that does not hold. Those after it were not looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerFault {
    /// Which event, counted from 0.
    pub index: u64,
    /// Why, as one word a program can match on.
    pub reason: Cow<'static, str>,
    /// What the event and those before it call for: a ledger, a time, the earliest time, or an id.
    pub expected: Option<String>,
    /// What there is instead.
    pub found: Option<String>,
    /// The reason in words.
    pub detail: String,
}

impl LedgerCheck {
    /// What is told of a verdict.
    pub fn of(verdict: ChainVerdict) -> LedgerCheck {
        let ChainVerdict { events, head, error } = verdict;
        LedgerCheck {
            valid: error.is_none(),
            events,
            head: head.filter(|_| error.is_none()).map(|head| head.to_string()),
            error: error.map(LedgerFault::of),
        }
    }
}

impl LedgerFault {
    fn of(error: ChainError) -> LedgerFault {
        let ChainError { index, reason, expected, found, detail } = error;
        LedgerFault { index, reason: reason.code().into(), expected, found, detail }
    }
}
