//! A conjunction is a close approach of two space objects. Its anchor determines which reports
//! belong to it. The anchor is the time of closest approach in its first report.
//!
//! ```text
//! reach of an anchor, inclusive        |<--- 1 s --->|<--- 1 s --->|
//!                                                  anchor
//! anchors that can share a report   |<--------- 2 s ---------|--------- 2 s --------->|   (the neighbourhood)
//! ```

use std::ops::RangeInclusive;

use super::report::Report;
use idmint_core::time::UnixTime;

/// A report can join a conjunction if its time of closest approach is at most this many
/// microseconds before or after the time in the conjunction's first report (its anchor).
const REACH_MICROS: i64 = 1_000_000;

/// The two space objects of a report. They are in the order of the report, or with the smaller
/// catalogue number first if [`PairOrder`](super::PairOrder) ignores the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// The catalogue number of the primary object.
    pub primary: u64,
    /// The catalogue number of the secondary object.
    pub secondary: u64,
}

/// A time of closest approach in whole microseconds since 1970. Times before 1970 are negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tca(pub i64);

/// The first report of a conjunction. Later reports are compared with the anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// The time of closest approach in the first report. The id of the conjunction is made from
    /// this time and the two objects.
    pub tca: Tca,
    /// A number that is greater than the rank of every older anchor of the same objects within two
    /// seconds. If a report is within one second of two anchors, it joins the older one, which has
    /// the lower rank.
    pub rank: u32,
}

/// A plan to store a new anchor, the first report of a conjunction.
///
/// The plan stays valid while the two objects have no anchor at a time in `free`. In addition, the
/// rank of the new anchor must still be one above the greatest rank of their anchors within two
/// seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnchorPlan {
    /// The name of the id format.
    pub format: String,
    /// The two objects of the conjunction.
    pub pair: Pair,
    /// The anchor to store, with its time and rank.
    pub anchor: Anchor,
    /// The ranges of times in which the two objects must have no other anchor when the plan is
    /// written. Otherwise the plan is no longer valid.
    pub free: Vec<RangeInclusive<Tca>>,
}

impl AnchorPlan {
    /// Creates the plan to store `anchor` as the first report of a new conjunction. The plan is
    /// valid only while the two objects have no other anchor within one second of the report.
    pub fn of_report(format: &str, pair: Pair, anchor: Anchor) -> AnchorPlan {
        AnchorPlan {
            format: format.to_owned(),
            pair,
            anchor,
            free: vec![anchor.tca.reach()],
        }
    }
}

impl Pair {
    /// Returns this pair with primary and secondary object exchanged.
    #[must_use]
    pub fn swapped(self) -> Pair {
        Pair {
            primary: self.secondary,
            secondary: self.primary,
        }
    }
}

/// The maximum time, in microseconds, between two anchors of the same objects that may belong to
/// one conjunction. The reported time of one conjunction can drift that far.
const NEAR_MICROS: i64 = 60_000_000;

impl Tca {
    /// Returns the range from one minute before to one minute after this time, which is the time in
    /// the first report of a conjunction. Other first reports of the same objects in this range may
    /// belong to the same conjunction.
    pub fn vicinity(self) -> RangeInclusive<Tca> {
        Tca(self.0.saturating_sub(NEAR_MICROS))..=Tca(self.0.saturating_add(NEAR_MICROS))
    }

    /// Returns the time of closest approach in a report.
    ///
    /// # Panics
    /// Panics if the time is 2^63 or more microseconds away from 1970, which is about 292 000
    /// years. No text can represent such a time.
    pub fn of(report: &Report) -> Tca {
        Tca::at(report.tca())
    }

    /// Converts an instant to a time of closest approach, rounded down to a whole microsecond.
    ///
    /// # Panics
    /// Panics if the instant is 2^63 or more microseconds away from 1970, which is about 292 000
    /// years.
    pub fn at(instant: UnixTime) -> Tca {
        Tca(i64::try_from(instant.nanos().div_euclid(1_000))
            .expect("an instant before the year 290 000"))
    }

    /// Returns the time from `anchor`, the time in the first report of a conjunction, to this time,
    /// in microseconds. The result is negative if this time is earlier.
    pub fn since(self, anchor: Tca) -> i64 {
        self.0 - anchor.0
    }

    /// Returns `true` if a report at this time is near enough to join the conjunction whose first
    /// report is at the time `anchor`.
    pub(super) fn is_within_reach_of(self, anchor: Tca) -> bool {
        self.reach().contains(&anchor)
    }

    /// Returns the range from one second before to one second after this time. A report at this
    /// time can join a conjunction whose first report is in this range.
    pub fn reach(self) -> RangeInclusive<Tca> {
        self.within(REACH_MICROS.unsigned_abs())
    }

    /// Returns the times at most `micros` microseconds before or after this time.
    pub fn within(self, micros: u64) -> RangeInclusive<Tca> {
        Tca(self.0.saturating_sub_unsigned(micros))..=Tca(self.0.saturating_add_unsigned(micros))
    }

    /// Returns the times from two seconds before to two seconds after this time.
    ///
    /// [`Anchor::find`] and [`Anchor::create`] need all anchors in this range. Two anchors that are
    /// up to two seconds apart can both be within one second of the same report.
    pub fn neighbourhood(self) -> RangeInclusive<Tca> {
        Tca(self.0.saturating_sub(2 * REACH_MICROS))..=Tca(self.0.saturating_add(2 * REACH_MICROS))
    }
}

impl From<Tca> for UnixTime {
    fn from(tca: Tca) -> UnixTime {
        UnixTime::from_nanos(i128::from(tca.0) * 1_000)
    }
}

impl Anchor {
    /// Returns the anchor of the conjunction that a report at `tca` joins. This is the oldest
    /// anchor (the one with the lowest rank) within one second of `tca`.
    ///
    /// `neighbours` must contain all anchors of the pair in the [neighbourhood](Tca::neighbourhood)
    /// of `tca`.
    ///
    /// ```
    /// use idmint_records::conjunction::{Anchor, Tca};
    ///
    /// let anchors = [Anchor { tca: Tca(1_500_000), rank: 0 }, Anchor { tca: Tca(0), rank: 1 }];
    /// assert_eq!(Anchor::find(Tca(1_000_000), &anchors), Some(anchors[0]));
    /// assert_eq!(Anchor::find(Tca(499_999), &anchors), Some(anchors[1]));
    /// assert_eq!(Anchor::find(Tca(2_500_001), &anchors), None);
    /// ```
    pub fn find(tca: Tca, neighbours: &[Anchor]) -> Option<Anchor> {
        let within_reach = neighbours
            .iter()
            .filter(|anchor| tca.is_within_reach_of(anchor.tca));
        within_reach.min_by_key(|anchor| anchor.rank).copied()
    }

    /// Creates the anchor, the first report of a new conjunction, at the time `tca`.
    ///
    /// `neighbours` must contain all anchors of the same two objects within two seconds of `tca`.
    pub fn create(tca: Tca, neighbours: &[Anchor]) -> Anchor {
        let greatest = neighbours.iter().map(|anchor| anchor.rank).max();
        let rank = greatest.map_or(0, |rank| {
            rank.checked_add(1)
                .expect("anchors at 2^32 ranks would need as many seconds")
        });
        Anchor { tca, rank }
    }
}
