//! What an import of journals has brought back, and what is lost.

use crate::conjunction::{Anchor, Pair};
use crate::ledger::{EventId, GivenNumbers};

/// What was done, and what cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reimported {
    /// Ledgers that were continued, or began.
    pub ledgers: u64,
    /// Their events.
    pub events: u64,
    /// Keys of requests that came with them.
    pub requests: u64,
    /// Conjunctions.
    pub conjunctions: u64,
    /// Series that were continued, or began.
    pub series: u64,
    /// Their numbers.
    pub numbers: u64,
    /// Numbers that are void again.
    pub voids: u64,
    /// Appends that are lost.
    pub lost: Vec<LostAppend>,
    /// Conjunctions that are lost.
    pub lost_conjunctions: Vec<LostConjunction>,
    /// Numbers that are lost.
    pub lost_numbers: Vec<LostNumbers>,
}

/// Appends of one transaction that are in a journal and cannot be brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostAppend {
    /// The place of the first event.
    pub first_place: u64,
    /// The events, which are of one ledger.
    pub events: Vec<EventId>,
    /// Whether the ledger has another event in their place; else no journal has what stands before them.
    pub is_replaced: bool,
}

/// A conjunction that is in a journal and cannot be brought back: another one of the same objects has come within its reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostConjunction {
    /// The name of the format.
    pub format: String,
    /// The objects.
    pub pair: Pair,
    /// Its anchor.
    pub anchor: Anchor,
}

/// Numbers that are in a journal and cannot be brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostNumbers {
    /// What the request was given.
    pub given: GivenNumbers,
    /// Whether others were given these numbers since; else no journal has those before them.
    pub is_replaced: bool,
}
