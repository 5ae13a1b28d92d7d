//! Which conjunction a report belongs to: the first time of closest approach that was seen anchors it.

use super::report::Report;
use crate::time::UnixTime;

/// How far from its anchor a report may be and still belong to it, in microseconds, inclusive.
const REACH_MICROS: i64 = 1_000_000;

/// Two objects whose conjunctions are kept together, in the order that matters or in the smaller-first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// The primary.
    pub primary: u64,
    /// The secondary.
    pub secondary: u64,
}

/// A time of closest approach in whole microseconds since 1970, negative before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tca(pub i64);

/// The first report of a conjunction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// Its time, which the id is made of.
    pub tca: Tca,
    /// Greater than that of every anchor of the pair within two seconds that was created before: a report within reach of
    /// two anchors joins the one of lower rank.
    pub rank: u32,
}

/// A new anchor as it will be stored: sound as long as the anchors near it are those it was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnchorPlan {
    /// The name of the format whose ids are made of it.
    pub format: String,
    /// The objects.
    pub pair: Pair,
    /// The anchor.
    pub anchor: Anchor,
}

impl Tca {
    /// The time of a report.
    ///
    /// # Panics
    /// Beyond the year 290 000, which no report in a text has.
    pub fn of(report: &Report) -> Tca {
        Tca::at(report.tca())
    }

    /// An instant, rounded down to the microsecond.
    ///
    /// # Panics
    /// Beyond the year 290 000.
    pub fn at(instant: UnixTime) -> Tca {
        Tca(i64::try_from(instant.nanos().div_euclid(1_000)).expect("an instant of this age of the world"))
    }

    /// From an anchor to this time, in microseconds.
    pub fn since(self, anchor: Tca) -> i64 {
        self.0 - anchor.0
    }

    fn is_within_reach_of(self, anchor: Tca) -> bool {
        self.since(anchor).abs() <= REACH_MICROS
    }

    /// The times at which an anchor can have a report in common with an anchor at this one: all that [`Anchor::joined`]
    /// and [`Anchor::created`] need to know.
    pub fn neighbourhood(self) -> std::ops::RangeInclusive<Tca> {
        Tca(self.0.saturating_sub(2 * REACH_MICROS))..=Tca(self.0.saturating_add(2 * REACH_MICROS))
    }
}

impl From<Tca> for UnixTime {
    fn from(tca: Tca) -> UnixTime {
        UnixTime::from_nanos(i128::from(tca.0) * 1_000)
    }
}

impl Anchor {
    /// The anchor that a report at `tca` joins: of those within a second, the first that was created.
    ///
    /// `neighbours`: the anchors of the pair in the [neighbourhood](Tca::neighbourhood).
    ///
    /// ```
    /// use idmint::minting::{Anchor, Tca};
    ///
    /// let anchors = [Anchor { tca: Tca(1_500_000), rank: 0 }, Anchor { tca: Tca(0), rank: 1 }];
    /// assert_eq!(Anchor::joined(Tca(1_000_000), &anchors), Some(anchors[0]));
    /// assert_eq!(Anchor::joined(Tca(499_999), &anchors), Some(anchors[1]));
    /// assert_eq!(Anchor::joined(Tca(2_500_001), &anchors), None);
    /// ```
    pub fn joined(tca: Tca, neighbours: &[Anchor]) -> Option<Anchor> {
        let within_reach = neighbours.iter().filter(|anchor| tca.is_within_reach_of(anchor.tca));
        within_reach.min_by_key(|anchor| anchor.rank).copied()
    }

    /// The anchor that a report at `tca` creates where it joins none.
    ///
    /// `neighbours`: as for [`Anchor::joined`].
    pub fn created(tca: Tca, neighbours: &[Anchor]) -> Anchor {
        let greatest = neighbours.iter().map(|anchor| anchor.rank).max();
        let rank =
            greatest.map_or(0, |rank| rank.checked_add(1).expect("anchors at 2^32 ranks would need as many seconds"));
        Anchor { tca, rank }
    }
}
