//! A record that is decided on and not stored yet.

use crate::conjunction::AnchorPlan;
use crate::ledger::{AppendPlan, NumberPlan, VoidPlan};

/// One record as it will be stored, if what it was decided on still holds then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordPlan {
    /// Events at the end of a ledger.
    Append(AppendPlan),
    /// The first report of a conjunction.
    Anchor(AnchorPlan),
    /// Numbers at the end of a series.
    Number(NumberPlan),
    /// A number that is void from then on.
    Void(VoidPlan),
}
