//! Closes series of numbers. A closed series keeps the numbers that it has given, and gives no new
//! numbers.

use super::number_plan::{SeriesHead, clipped};
use super::series_name::SeriesName;
use crate::ledger::events::EventTime;

/// A request to close a series of numbers. The series need not have given a number yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloseRequest {
    /// The name of the series to close.
    pub series: SeriesName,
    /// The name of the caller, or `None` if it is unknown.
    pub by: Option<String>,
}

/// The record of a closed series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedSeries {
    /// The name of the series.
    pub series: SeriesName,
    /// The last number of the series, or `None` if it was closed before its first number.
    pub last: Option<u64>,
    /// The time at which the series was closed. It is never earlier than the time of the last
    /// number.
    pub recorded: EventTime,
    /// The name of the caller, or `None` if it is unknown.
    pub by: Option<String>,
}

/// The change that closes a series, for the caller to store. The change is valid while the series
/// is open and its last number is `before`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosePlan {
    /// The last number of the series at the time when the plan was made, or `None` if the series
    /// had given no number.
    pub before: Option<SeriesHead>,
    /// The record to store.
    pub closed: ClosedSeries,
}

impl ClosePlan {
    /// Plans to close an open series after its last number `head`.
    pub fn make(request: &CloseRequest, head: Option<SeriesHead>, now: EventTime) -> ClosePlan {
        let closed = ClosedSeries {
            series: request.series.clone(),
            last: head.map(|head| head.last),
            recorded: head.map_or(now, |head| head.recorded.max(now)),
            by: request.by.as_deref().map(|by| clipped(by).to_owned()),
        };
        ClosePlan {
            before: head,
            closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_closed_at_its_last_number_and_not_before_it() {
        let at = |micros| EventTime::from_micros(micros).expect("in range");
        let request = CloseRequest {
            series: SeriesName::from_text("acme").expect("a name"),
            by: Some("é".repeat(200)),
        };
        let head = SeriesHead {
            last: 7,
            recorded: at(50),
        };
        // The clock of this node is behind the clock of the node that gave the last number.
        let plan = ClosePlan::make(&request, Some(head), at(40));
        assert_eq!((plan.before, plan.closed.last), (Some(head), Some(7)));
        assert_eq!(plan.closed.recorded, at(50));
        assert_eq!(plan.closed.by.map(|by| by.len()), Some(256));
        let unbegun = ClosePlan::make(&request, None, at(40)).closed;
        assert_eq!((unbegun.last, unbegun.recorded), (None, at(40)));
    }
}
