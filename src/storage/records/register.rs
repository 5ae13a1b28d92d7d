//! Stored conjunctions as they are listed.

use std::ops::RangeInclusive;

use crate::conjunction::{Anchor, ExternalId, Pair, ReportTally, Tca};

/// A stored conjunction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredConjunction {
    /// The objects.
    pub pair: Pair,
    /// Its anchor.
    pub anchor: Anchor,
    /// What is known of its reports.
    pub tally: Option<ReportTally>,
}

/// What an anchor is stored under. Anchors are in the order of format, pair and time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AnchorKey {
    /// The name of the format.
    pub format: String,
    /// The objects.
    pub pair: Pair,
    /// The time of the anchor.
    pub tca: Tca,
}

/// An anchor and what is known of its reports, as the sweep looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TalliedAnchor {
    /// The anchor.
    pub key: AnchorKey,
    /// What is known of its reports.
    pub tally: Option<ReportTally>,
}

/// All anchors of two objects in one format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPair {
    /// The name of the format.
    pub format: String,
    /// The objects.
    pub pair: Pair,
    /// By their times, at least one.
    pub anchors: Vec<StoredAnchor>,
}

/// An anchor with all that is stored beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnchor {
    /// The anchor.
    pub anchor: Anchor,
    /// What is known of its reports.
    pub tally: Option<ReportTally>,
    /// The ids that other originators have given it.
    pub externals: Vec<ExternalId>,
}

/// Where a conjunction stands in a list: by time, then by objects.
pub type ListPlace = (Tca, Pair);

/// Which conjunctions are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRange {
    /// The name of the format.
    pub format: String,
    /// The times of their anchors.
    pub times: RangeInclusive<Tca>,
    /// Those behind this one only.
    pub after: Option<ListPlace>,
    /// Whether the latest time comes first.
    pub latest_first: bool,
}

impl ListRange {
    /// Before the place of every conjunction, and behind it.
    pub(in crate::storage) const FIRST: ListPlace = (
        Tca(i64::MIN),
        Pair {
            primary: 0,
            secondary: 0,
        },
    );
    pub(in crate::storage) const LAST: ListPlace = (
        Tca(i64::MAX),
        Pair {
            primary: u64::MAX,
            secondary: u64::MAX,
        },
    );

    /// The first and the last place that it covers; `None` if it covers none.
    pub(in crate::storage) fn places(&self) -> Option<(ListPlace, ListPlace)> {
        let (mut from, mut to) = (
            (*self.times.start(), ListRange::FIRST.1),
            (*self.times.end(), ListRange::LAST.1),
        );
        match self.after {
            // No pair has an object 0 or of this number, so the neighbour of a place can be written so.
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
