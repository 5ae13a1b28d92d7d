//! Types for listing stored conjunctions, and for the background task that removes old
//! conjunctions.

use std::ops::RangeInclusive;

use idmint_records::conjunction::{Anchor, ExternalId, Pair, ReportCount, Tca};

/// A stored conjunction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredConjunction {
    /// The two objects of the conjunction.
    pub pair: Pair,
    /// The anchor, which is the first report of the conjunction.
    pub anchor: Anchor,
    /// The number of reports of this close approach, with the first and the last report. `None` if
    /// the store has not counted any report of it.
    pub report_count: Option<ReportCount>,
}

/// The key of a stored anchor. Keys are ordered by format, pair of objects and time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AnchorKey {
    /// The name of the format.
    pub format: String,
    /// The two objects of the conjunction.
    pub pair: Pair,
    /// The time of closest approach in the anchor.
    pub tca: Tca,
}

/// The key and the report count of an anchor. From these, the daily sweep decides whether the
/// conjunction is old and is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedAnchor {
    /// The key of the anchor.
    pub key: AnchorKey,
    /// The number of reports of the conjunction, with the first and the last report. `None` if no
    /// report was counted.
    pub report_count: Option<ReportCount>,
}

/// All stored anchors of two objects in one format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPair {
    /// The name of the format.
    pub format: String,
    /// The two objects of the anchors.
    pub pair: Pair,
    /// The anchors, sorted by time. Never empty.
    pub anchors: Vec<StoredAnchor>,
}

/// An anchor with all data that is stored for its conjunction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnchor {
    /// The anchor itself: its time and rank.
    pub anchor: Anchor,
    /// The number of reports of the conjunction, with the first and the last report. `None` if no
    /// report was counted.
    pub report_count: Option<ReportCount>,
    /// The external ids attached to the conjunction.
    pub externals: Vec<ExternalId>,
}

/// The position of a conjunction in a list. Lists are ordered by the time of the conjunction, and
/// then by its two objects.
pub type ListPlace = (Tca, Pair);

/// Selects the conjunctions to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRange {
    /// The name of the format.
    pub format: String,
    /// The times of the anchors to list.
    pub times: RangeInclusive<Tca>,
    /// The cursor: the list continues after this conjunction. If `None`, the list starts at the
    /// beginning of the range.
    pub after: Option<ListPlace>,
    /// `true` if the list goes from the latest to the earliest time.
    pub latest_first: bool,
}

impl ListRange {
    /// The list position before all conjunctions.
    pub(crate) const FIRST: ListPlace = (
        Tca(i64::MIN),
        Pair {
            primary: 0,
            secondary: 0,
        },
    );
    pub(crate) const LAST: ListPlace = (
        Tca(i64::MAX),
        Pair {
            primary: u64::MAX,
            secondary: u64::MAX,
        },
    );

    /// Returns the first and the last position of this range in the list of close approaches, or
    /// `None` if the range is empty.
    pub fn places(&self) -> Option<(ListPlace, ListPlace)> {
        let mut from = (*self.times.start(), ListRange::FIRST.1);
        let mut to = (*self.times.end(), ListRange::LAST.1);
        match self.after {
            // No object has the number 0 or `u64::MAX`. So the position next to the cursor `after`
            // differs only in its last part, `secondary`, and no carry into `primary` is necessary.
            Some((tca, Pair { primary, secondary })) if self.latest_first => {
                to = to.min((
                    tca,
                    Pair {
                        primary,
                        secondary: secondary.checked_sub(1)?,
                    },
                ));
            }
            Some((tca, Pair { primary, secondary })) => {
                from = from.max((
                    tca,
                    Pair {
                        primary,
                        secondary: secondary.checked_add(1)?,
                    },
                ));
            }
            None => {}
        }
        (from <= to).then_some((from, to))
    }
}
