//! `POST /ledgers/{ledger}/verify`: whether a chain of events is valid.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::ledger::{ChainError, ChainVerdict};

/// Whether a chain is valid, and if not, the first invalid event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerCheck {
    /// Whether every event got the id it carries, after the one before it.
    pub valid: bool,
    /// The number of events, those after the first invalid one included.
    pub events: u64,
    /// The id of the last event of a valid chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The first invalid event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<LedgerFault>,
}

/// The first invalid event of a chain. Those after it were not checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerFault {
    /// The index of the event, from 0.
    pub index: u64,
    /// The reason as one word.
    pub reason: Cow<'static, str>,
    /// The value that follows from the event and those before it: a ledger, a time, the earliest time, or an id.
    pub expected: Option<String>,
    /// The value that the event has.
    pub found: Option<String>,
    /// The reason in words.
    pub detail: String,
}

impl LedgerCheck {
    /// The answer for a verdict.
    pub fn of(verdict: ChainVerdict) -> LedgerCheck {
        let ChainVerdict {
            events,
            head,
            error,
            steps: _,
        } = verdict;
        LedgerCheck {
            valid: error.is_none(),
            events,
            head: head
                .filter(|_| error.is_none())
                .map(|head| head.to_string()),
            error: error.map(LedgerFault::of),
        }
    }
}

impl LedgerFault {
    fn of(error: ChainError) -> LedgerFault {
        let ChainError {
            index,
            reason,
            expected,
            found,
            detail,
        } = error;
        LedgerFault {
            index,
            reason: reason.code().into(),
            expected,
            found,
            detail,
        }
    }
}
