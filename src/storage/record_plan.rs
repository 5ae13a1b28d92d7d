//! What lasts of ids with memory.

use crate::conjunction::AnchorPlan;
use crate::ledger::AppendPlan;

/// One record as it will be stored, if what it was decided on still holds then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordPlan {
    /// Events at the end of a ledger.
    Append(AppendPlan),
    /// The first report of a conjunction.
    Anchor(AnchorPlan),
}
