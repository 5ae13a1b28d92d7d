//! The slots that one coordinator hands out. They are either all slots of a namespace, or the slots
//! of one region.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An inclusive range of slots, written like `0-15`. The first slot is not above the last one.
///
/// ```
/// use idmint_storage::SlotRange;
///
/// assert_eq!(SlotRange::parse("0-15").map(|range| range.to_string()), Some("0-15".to_owned()));
/// assert_eq!(SlotRange::parse("15-0"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotRange {
    first: u32,
    last: u32,
}

/// The slots that one coordinator hands out. Each slot is below the number of slots in the
/// namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotShare {
    slots: NonZeroU32,
    range: SlotRange,
}

impl SlotRange {
    /// Parses two numbers without leading zeros that are separated by a hyphen. Returns `None` for
    /// any other text, or if the first number is larger than the second.
    pub fn parse(text: &str) -> Option<SlotRange> {
        let (first, last) = text.split_once('-')?;
        let range = SlotRange {
            first: first.parse().ok()?,
            last: last.parse().ok()?,
        };
        (range.first <= range.last && range.to_string() == text).then_some(range)
    }
}

impl SlotShare {
    /// Returns all slots of a namespace.
    pub fn all(slots: NonZeroU32) -> SlotShare {
        SlotShare {
            slots,
            range: SlotRange {
                first: 0,
                last: slots.get() - 1,
            },
        }
    }

    /// Returns the slots in `range`, which one coordinator hands out. Returns `None` if `range`
    /// goes beyond the namespace's `slots` slots, numbered from 0.
    pub fn part(slots: NonZeroU32, range: SlotRange) -> Option<SlotShare> {
        (range.last < slots.get()).then_some(SlotShare { slots, range })
    }

    /// Returns the number of slots in the namespace.
    pub fn slots(&self) -> NonZeroU32 {
        self.slots
    }

    /// Returns the range of slots that the coordinator hands out.
    pub fn range(&self) -> SlotRange {
        self.range
    }

    /// `true` if the coordinator hands out all slots of the namespace.
    pub fn is_whole(&self) -> bool {
        *self == SlotShare::all(self.slots)
    }

    /// Returns the range of slots that the coordinator hands out, or `None` if it hands out all
    /// slots of the namespace.
    pub fn as_part(&self) -> Option<SlotRange> {
        (!self.is_whole()).then_some(self.range)
    }

    /// Returns the range of slots that both shares contain, or `None` if they have no slot in
    /// common.
    pub fn common_with(&self, other: SlotShare) -> Option<SlotRange> {
        let first = self.range.first.max(other.range.first);
        let last = self.range.last.min(other.range.last);
        (first <= last).then_some(SlotRange { first, last })
    }

    /// Iterates over the slots that the coordinator hands out.
    pub fn iter(&self) -> RangeInclusive<u32> {
        self.range.first..=self.range.last
    }
}

impl fmt::Display for SlotRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// Displays all 32 slots of a namespace as `32`, and a part of them as a range, like `0-15 of 32`.
impl fmt::Display for SlotShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_part() {
            None => self.slots.fmt(f),
            Some(range) => write!(f, "{range} of {}", self.slots),
        }
    }
}

impl Serialize for SlotRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SlotRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SlotRange, D::Error> {
        let text = String::deserialize(deserializer)?;
        SlotRange::parse(&text).ok_or_else(|| D::Error::custom("not a range of slots such as 0-15"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(slots: u32, text: &str) -> Option<SlotShare> {
        SlotShare::part(NonZeroU32::new(slots)?, SlotRange::parse(text)?)
    }

    #[test]
    fn a_part_lies_below_the_number_of_slots() {
        let part = share(32, "16-31").expect("the second half");
        assert_eq!(
            (part.iter().count(), *part.iter().start(), part.to_string()),
            (16, 16, "16-31 of 32".to_owned())
        );
        assert_eq!(
            share(32, "31-31").map(|one| one.iter().collect()),
            Some(vec![31])
        );
        let whole = share(32, "0-31").expect("all of them");
        assert_eq!(
            (whole.as_part(), whole.to_string()),
            (None, "32".to_owned())
        );
        assert_eq!(whole, SlotShare::all(whole.slots()));
        assert_eq!(share(32, "16-32"), None);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in [
            "",
            "-",
            "3",
            "0-",
            "-3",
            "4-3",
            "0-03",
            "+0-3",
            "0 - 3",
            "0-4294967296",
            "a-b",
            "0-3-5",
        ] {
            assert_eq!(SlotRange::parse(text), None, "{text:?}");
        }
    }
}
