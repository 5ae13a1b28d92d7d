//! Which conjunction a report belongs to: the first reported time of closest approach is its anchor.
//!
//! ```text
//! reach of an anchor, inclusive        |<--- 1 s --->|<--- 1 s --->|
//!                                                  anchor
//! anchors that can share a report   |<--------- 2 s ---------|--------- 2 s --------->|   (the neighbourhood)
//! ```

use std::ops::RangeInclusive;

use super::report::Report;
use crate::time::UnixTime;

/// The greatest distance of a report from its anchor in microseconds, inclusive.
const REACH_MICROS: i64 = 1_000_000;

/// Two objects: as reported, or the smaller number first where the order means nothing ([`PairOrder`](super::PairOrder)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// The number of the primary object.
    pub primary: u64,
    /// The number of the secondary object.
    pub secondary: u64,
}

/// A time of closest approach in whole microseconds since 1970, negative before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tca(pub i64);

/// The first report of a conjunction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// Its time, from which the id is made.
    pub tca: Tca,
    /// Greater than the rank of every older anchor of the pair within two seconds: a report within reach of two anchors
    /// joins the one of lower rank, which is the older one.
    pub rank: u32,
}

/// A new anchor as it will be stored. Valid as long as its rank is above those near it, and no anchor of the pair is
/// where it must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnchorPlan {
    /// The name of the format.
    pub format: String,
    /// The objects.
    pub pair: Pair,
    /// The anchor.
    pub anchor: Anchor,
    /// The times at which the pair must have no anchor yet.
    pub free: Vec<RangeInclusive<Tca>>,
}

impl AnchorPlan {
    /// The anchor of a report that joins none: none is within reach of it.
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
    /// The same objects the other way round.
    #[must_use]
    pub fn swapped(self) -> Pair {
        Pair {
            primary: self.secondary,
            secondary: self.primary,
        }
    }
}

/// The greatest distance of two anchors of the same objects that may be one conjunction whose time has drifted, in
/// microseconds.
const NEAR_MICROS: i64 = 60_000_000;

impl Tca {
    /// The times of anchors that may be the same conjunction as one at this time.
    pub fn vicinity(self) -> RangeInclusive<Tca> {
        Tca(self.0.saturating_sub(NEAR_MICROS))..=Tca(self.0.saturating_add(NEAR_MICROS))
    }

    /// The time of a report.
    ///
    /// # Panics
    /// Beyond the year 290 000, which no text can express.
    pub fn of(report: &Report) -> Tca {
        Tca::at(report.tca())
    }

    /// An instant, rounded down to the microsecond.
    ///
    /// # Panics
    /// Beyond the year 290 000.
    pub fn at(instant: UnixTime) -> Tca {
        Tca(i64::try_from(instant.nanos().div_euclid(1_000))
            .expect("an instant before the year 290 000"))
    }

    /// The distance from an anchor to this time, in microseconds.
    pub fn since(self, anchor: Tca) -> i64 {
        self.0 - anchor.0
    }

    /// Whether a report at this time joins an anchor at that one.
    pub(super) fn is_within_reach_of(self, anchor: Tca) -> bool {
        self.reach().contains(&anchor)
    }

    /// The times of the anchors that a report at this time can join.
    pub fn reach(self) -> RangeInclusive<Tca> {
        Tca(self.0.saturating_sub(REACH_MICROS))..=Tca(self.0.saturating_add(REACH_MICROS))
    }

    /// The times of all anchors that [`Anchor::find`] and [`Anchor::create`] need to know: those which can share a report
    /// with an anchor at this time.
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
    /// The anchor that a report at `tca` joins: of those within a second, the oldest.
    ///
    /// `neighbours`: the anchors of the pair in the [neighbourhood](Tca::neighbourhood).
    ///
    /// ```
    /// use idmint::conjunction::{Anchor, Tca};
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

    /// The anchor that a report at `tca` creates if it joins none.
    ///
    /// `neighbours`: as for [`Anchor::find`].
    pub fn create(tca: Tca, neighbours: &[Anchor]) -> Anchor {
        let greatest = neighbours.iter().map(|anchor| anchor.rank).max();
        let rank = greatest.map_or(0, |rank| {
            rank.checked_add(1)
                .expect("anchors at 2^32 ranks would need as many seconds")
        });
        Anchor { tca, rank }
    }
}
