//! Decides which numbers a request gets: what its key was given before, or else the request and the head of its series in, the
//! plan to store out.

use std::num::NonZeroU32;

use sha2::{Digest, Sha256};

use super::series_name::SeriesName;
use crate::ledger::append::{KeyHash, RequestMark};
use crate::ledger::events::EventTime;

/// The most numbers of one request.
pub const COUNT_MAX: u32 = 1_000;

/// The greatest number: what a signed column of 64 bits holds.
pub const NUMBER_MAX: u64 = 9_223_372_036_854_775_807;

/// Of what a caller is known by, so many bytes are kept.
pub const CALLER_LEN_MAX: usize = 256;

/// The first number of a series, and the last that there can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberBounds {
    /// From 1.
    pub start: u64,
    /// At most [`NUMBER_MAX`].
    pub max: u64,
}

impl Default for NumberBounds {
    fn default() -> Self {
        NumberBounds {
            start: 1,
            max: NUMBER_MAX,
        }
    }
}

/// A request for the next numbers of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberRequest {
    /// The series; it begins with its first number.
    pub series: SeriesName,
    /// How many.
    pub count: NonZeroU32,
    /// Where the series begins and ends.
    pub bounds: NumberBounds,
    /// Identifies the request.
    pub mark: RequestMark,
    /// Who asks, if that is known.
    pub by: Option<String>,
    /// Whether the series must not have begun.
    pub must_begin: bool,
}

impl NumberRequest {
    /// A request under a caller's key.
    pub fn new(
        series: SeriesName,
        count: NonZeroU32,
        bounds: NumberBounds,
        key: &str,
        by: Option<&str>,
    ) -> NumberRequest {
        let mark = RequestMark {
            key: KeyHash::of_series(&series, key),
            digest: digest_of(&series, count, None),
        };
        NumberRequest {
            series,
            count,
            bounds,
            mark,
            by: by.map(|by| clipped(by).to_owned()),
            must_begin: false,
        }
    }

    /// The same request, done only if the series begins with it: with the number `first`.
    #[must_use]
    pub fn beginning_with(self, first: u64) -> NumberRequest {
        let mark = RequestMark {
            digest: digest_of(&self.series, self.count, Some(first)),
            ..self.mark
        };
        let bounds = NumberBounds {
            start: first,
            ..self.bounds
        };
        NumberRequest {
            bounds,
            mark,
            must_begin: true,
            ..self
        }
    }

    /// What its key was given before, if that was the same request.
    ///
    /// # Errors
    /// [`NumberRefusal::KeyConflict`].
    pub fn replay(&self, given: GivenNumbers) -> Result<GivenNumbers, NumberRefusal> {
        let conflict = || NumberRefusal::KeyConflict {
            series: self.series.clone(),
        };
        (given.mark == self.mark)
            .then_some(given)
            .ok_or_else(conflict)
    }
}

/// As much of what a caller is known by as is kept.
pub(super) fn clipped(by: &str) -> &str {
    &by[..by.floor_char_boundary(CALLER_LEN_MAX)]
}

impl KeyHash {
    /// The hash of a caller's key for numbers of this series: the first 128 bits of SHA-256 over a byte of 2, the name of the series,
    /// a byte of 0, and the key.
    pub fn of_series(series: &SeriesName, key: &str) -> KeyHash {
        let hash = Sha256::new()
            .chain_update([2])
            .chain_update(series.as_str())
            .chain_update([0])
            .chain_update(key);
        let hash: [u8; 32] = hash.finalize().into();
        KeyHash(u128::from_be_bytes(
            *hash.first_chunk().expect("16 of 32 bytes"),
        ))
    }
}

/// With the number that the series is to begin with, if it is said. No name of a series has the byte between them.
fn digest_of(series: &SeriesName, count: NonZeroU32, first: Option<u64>) -> [u8; 32] {
    let mut hash = Sha256::new()
        .chain_update(count.get().to_be_bytes())
        .chain_update(series.as_str());
    if let Some(first) = first {
        hash = hash.chain_update([0]).chain_update(first.to_be_bytes());
    }
    hash.finalize().into()
}

/// The last number of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesHead {
    /// The number.
    pub last: u64,
    /// When it was given, by the clock of the node; never earlier than any before it.
    pub recorded: EventTime,
}

/// Numbers that one request was given: those from the first to the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenNumbers {
    /// Their series.
    pub series: SeriesName,
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
    /// When they were given.
    pub recorded: EventTime,
    /// The request.
    pub mark: RequestMark,
    /// Who asked, if that was known.
    pub by: Option<String>,
}

impl GivenNumbers {
    /// The last of them as the head of their series.
    pub fn head(&self) -> SeriesHead {
        SeriesHead {
            last: self.last,
            recorded: self.recorded,
        }
    }

    /// How many they are.
    pub fn count(&self) -> u64 {
        self.last - self.first + 1
    }
}

/// Numbers as they will be stored. Valid as long as the head of their series is `before`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberPlan {
    /// The head that the plan was made for; `None` to begin the series.
    pub before: Option<SeriesHead>,
    /// The numbers.
    pub given: GivenNumbers,
}

/// Why a request is given no numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NumberRefusal {
    /// Its key came with another request.
    #[error("the idempotency key was used before for another request for numbers of {series}")]
    KeyConflict {
        /// The series.
        series: SeriesName,
    },
    /// It was to begin a series that has begun.
    #[error(
        "the series {series} was to begin with {first}, and has begun: its last number is {last}"
    )]
    HasBegun {
        /// The series.
        series: SeriesName,
        /// The number that it was to begin with.
        first: u64,
        /// The last number that was given.
        last: u64,
    },
    /// The series has not so many any more.
    #[error(
        "the series {series} ends with {max}, and {left} of its numbers are left, {count} were asked for"
    )]
    SeriesEnded {
        /// The series.
        series: SeriesName,
        /// The last number that there can be.
        max: u64,
        /// How many are left.
        left: u64,
        /// How many were asked for.
        count: u32,
    },
}

impl NumberPlan {
    /// Plans what a request is given whose key was given nothing.
    ///
    /// `head`: that of its series; `None` if that has not begun.
    ///
    /// # Errors
    /// [`NumberRefusal::HasBegun`], [`NumberRefusal::SeriesEnded`].
    pub fn make(
        request: &NumberRequest,
        head: Option<SeriesHead>,
        now: EventTime,
    ) -> Result<NumberPlan, NumberRefusal> {
        let NumberRequest {
            series,
            count,
            bounds,
            mark,
            by,
            must_begin,
        } = request;
        if let Some(head) = head.filter(|_| *must_begin) {
            let series = series.clone();
            return Err(NumberRefusal::HasBegun {
                series,
                first: bounds.start,
                last: head.last,
            });
        }
        let ended = |left| NumberRefusal::SeriesEnded {
            series: series.clone(),
            max: bounds.max,
            left,
            count: count.get(),
        };
        let first = head
            .map_or(Some(bounds.start), |head| head.last.checked_add(1))
            .ok_or_else(|| ended(0))?;
        let last = first
            .checked_add(u64::from(count.get()) - 1)
            .filter(|last| *last <= bounds.max);
        let last = last.ok_or_else(|| ended((bounds.max + 1).saturating_sub(first)))?;
        let recorded = head.map_or(now, |head| head.recorded.max(now));
        let (series, by) = (series.clone(), by.clone());
        let given = GivenNumbers {
            series,
            first,
            last,
            recorded,
            mark: *mark,
            by,
        };
        Ok(NumberPlan {
            before: head,
            given,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> EventTime {
        EventTime::from_micros(micros).expect("in range")
    }

    fn request(key: &str, count: u32, bounds: NumberBounds) -> NumberRequest {
        let series = SeriesName::from_text("acme").expect("a name");
        NumberRequest::new(
            series,
            NonZeroU32::new(count).expect("some"),
            bounds,
            key,
            Some("the token `t`"),
        )
    }

    fn plan(request: &NumberRequest, head: Option<SeriesHead>, now: u64) -> NumberPlan {
        NumberPlan::make(request, head, at(now)).expect("there is room")
    }

    #[test]
    fn a_series_goes_on_where_it_is_and_its_times_never_go_back() {
        let bounds = NumberBounds { start: 7, max: 100 };
        let one = plan(&request("a", 1, bounds), None, 50);
        assert_eq!((one.before, one.given.first, one.given.last), (None, 7, 7));
        let three = plan(&request("b", 3, bounds), Some(one.given.head()), 40);
        assert_eq!(
            (three.given.first, three.given.last, three.given.count()),
            (8, 10, 3)
        );
        assert_eq!(
            (three.before, three.given.recorded),
            (Some(one.given.head()), at(50))
        );
        assert_eq!(three.given.by.as_deref(), Some("the token `t`"));
        // Bounds that were changed say nothing of a series that has begun.
        let later = plan(
            &request(
                "c",
                1,
                NumberBounds {
                    start: 500,
                    max: 1_000,
                },
            ),
            Some(three.given.head()),
            60,
        );
        assert_eq!(later.given.first, 11);
    }

    #[test]
    fn a_series_ends_and_nothing_is_given_by_half() {
        let bounds = NumberBounds { start: 1, max: 10 };
        let head = |last| {
            Some(SeriesHead {
                last,
                recorded: at(5),
            })
        };
        for (last, count, left) in [(10, 1, 0), (8, 3, 2), (11, 1, 0), (0, 11, 10)] {
            let request = request("a", count, bounds);
            let refused = NumberPlan::make(&request, head(last), at(9)).expect_err("it ends");
            let NumberRefusal::SeriesEnded {
                left: said,
                max: 10,
                ..
            } = refused
            else {
                panic!("{refused:?}")
            };
            assert_eq!(said, left, "after {last}");
        }
        let all = NumberBounds::default();
        assert_eq!(
            plan(&request("a", 1, all), head(NUMBER_MAX - 1), 9)
                .given
                .last,
            NUMBER_MAX
        );
        let beyond = NumberPlan::make(&request("a", 1, all), head(NUMBER_MAX), at(9));
        assert!(matches!(
            beyond,
            Err(NumberRefusal::SeriesEnded { left: 0, .. })
        ));
    }

    #[test]
    fn the_same_request_is_given_the_same_and_another_with_its_key_nothing() {
        let bounds = NumberBounds::default();
        let asked = request("a", 2, bounds);
        let given = plan(&asked, None, 50).given;
        assert_eq!(asked.replay(given.clone()), Ok(given.clone()));
        // Also where the series has ended meanwhile.
        let ended = request("a", 2, NumberBounds { start: 1, max: 2 });
        assert_eq!(ended.replay(given.clone()), Ok(given.clone()));
        let other = request("a", 3, bounds).replay(given);
        assert!(matches!(other, Err(NumberRefusal::KeyConflict { .. })));
    }

    #[test]
    fn a_series_begins_with_a_stated_number_once() {
        let bounds = NumberBounds {
            start: 1,
            max: 5_000,
        };
        let begin = |key, first| request(key, 1, bounds).beginning_with(first);
        let given = plan(&begin("import", 4_711), None, 50).given;
        assert_eq!((given.first, given.last), (4_711, 4_711));
        assert_eq!(
            begin("import", 4_711).replay(given.clone()),
            Ok(given.clone())
        );
        for another in [begin("import", 4_712), request("import", 1, bounds)] {
            assert!(matches!(
                another.replay(given.clone()),
                Err(NumberRefusal::KeyConflict { .. })
            ));
        }
        for first in [4_711, 4_712] {
            let refused = NumberPlan::make(&begin("another", first), Some(given.head()), at(60))
                .expect_err("it began");
            let series = given.series.clone();
            assert_eq!(
                refused,
                NumberRefusal::HasBegun {
                    series,
                    first,
                    last: 4_711
                }
            );
        }
        assert_eq!(
            plan(&request("order-1", 1, bounds), Some(given.head()), 60)
                .given
                .first,
            4_712
        );
        let beyond = NumberPlan::make(&begin("import", 5_001), None, at(50));
        assert!(matches!(
            beyond,
            Err(NumberRefusal::SeriesEnded { left: 0, .. })
        ));
    }

    #[test]
    fn a_key_is_one_of_its_series_and_no_other() {
        let [one, other] = ["acme", "acm"].map(|name| SeriesName::from_text(name).expect("a name"));
        assert_ne!(
            KeyHash::of_series(&one, "1"),
            KeyHash::of_series(&other, "e1")
        );
        assert_ne!(
            KeyHash::of_series(&one, "1"),
            KeyHash::of_series(&other, "1")
        );
        assert_eq!(KeyHash::of_series(&one, "1"), KeyHash::of_series(&one, "1"));
        // SHA-256 over 02, "acme", 00, "order-1", computed by sha256sum.
        assert_eq!(
            format!("{:032x}", KeyHash::of_series(&one, "order-1").0),
            "48fcfaaaf2e93995cea3ec87c6a3b42c"
        );
    }

    #[test]
    fn of_a_long_name_of_a_caller_the_beginning_is_kept() {
        assert_eq!(clipped("short"), "short");
        assert_eq!(clipped(&"é".repeat(200)).len(), 256);
        assert_eq!(clipped(&format!("x{}", "é".repeat(200))).len(), 255);
    }
}
