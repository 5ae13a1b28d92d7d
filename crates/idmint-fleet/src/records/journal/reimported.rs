//! The result of an import of journals: the counts of recovered rows, and the rows that are lost.

use super::journal_copies::DamagedPart;
use idmint_records::conjunction::{Anchor, Pair};
use idmint_records::ledger::{EventId, GivenNumbers};

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reimported {
    /// The number of ledgers that were continued or created.
    pub ledgers: u64,
    /// The number of events that were added to these ledgers.
    pub events: u64,
    /// The number of idempotency keys that were recovered with the events.
    pub requests: u64,
    /// The number of conjunctions that were recovered.
    pub conjunctions: u64,
    /// The number of series that were continued or created.
    pub series: u64,
    /// The number of numbers that were added to these series.
    pub numbers: u64,
    /// The number of numbers that were voided again.
    pub voids: u64,
    /// The appends that are lost.
    pub lost: Vec<LostAppend>,
    /// The conjunctions that are lost.
    pub lost_conjunctions: Vec<LostConjunction>,
    /// The numbers that are lost.
    pub lost_numbers: Vec<LostNumbers>,
    /// The parts of the journal files that cannot be read. Their rows may be lost.
    pub damaged: Vec<DamagedPart>,
}

impl Reimported {
    /// `true` if journalled records could not be imported because the records before them are
    /// missing. The import writes no record after such a gap.
    pub fn has_gap(&self) -> bool {
        let mut appends = self.lost.iter().map(|lost| lost.is_replaced);
        let mut numbers = self.lost_numbers.iter().map(|lost| lost.is_replaced);
        !appends.all(|is_replaced| is_replaced) || !numbers.all(|is_replaced| is_replaced)
    }
}

/// Appends of one transaction that are in a journal but cannot be imported. The ledger has another
/// event in their place, or lacks the event before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostAppend {
    /// The position of the first lost event in its ledger.
    pub first_place: u64,
    /// The ids of the lost events. All of them belong to the same ledger.
    pub events: Vec<EventId>,
    /// `true` if the ledger has another event in the place of the first lost event. `false` if the
    /// ledger ends before that place, and the event just before it is missing, too.
    pub is_replaced: bool,
}

/// A journalled conjunction that cannot be imported, because the store has another conjunction of
/// the same objects that is too close in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostConjunction {
    /// The name of the format.
    pub format: String,
    /// The pair of objects.
    pub pair: Pair,
    /// The anchor of the conjunction.
    pub anchor: Anchor,
}

/// Journalled numbers that cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostNumbers {
    /// The lost numbers, and the request to which they were issued.
    pub given: GivenNumbers,
    /// `true` if the series has issued the first lost number again, to another request. `false` if
    /// the series ends before the lost numbers, and the number just before them is missing, too.
    pub is_replaced: bool,
}
