//! Decides which numbers a request gets. These are the numbers that its idempotency key already
//! got, or else the next numbers of its series.

use std::num::NonZeroU32;

use sha2::{Digest, Sha256};

use super::close_plan::ClosedSeries;
use super::number_form::{FormChange, NumberForm};
use super::number_rules::SeriesRefusal;
use super::series_name::SeriesName;
use crate::ledger::append::{KeyHash, RequestMark};
use crate::ledger::events::EventTime;

/// The maximum number of numbers that one request may ask for.
pub const COUNT_MAX: u32 = 1_000;

/// The greatest possible number. It fits into a signed 64-bit database column.
pub const NUMBER_MAX: u64 = 9_223_372_036_854_775_807;

/// The maximum length of a stored caller name in bytes. A longer name is cut.
pub const CALLER_LEN_MAX: usize = 256;

/// The range of numbers that a series can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberBounds {
    /// The first number of the series. It is at least 1.
    pub start: u64,
    /// The last number of the series. It is at most [`NUMBER_MAX`].
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
    /// The name of the series, which begins when its first number is given.
    pub series: SeriesName,
    /// The number of requested numbers.
    pub count: NonZeroU32,
    /// The first and last number that the series can give. If the request sets the first number of
    /// a new series, the range starts at that number.
    pub bounds: NumberBounds,
    /// The lowest number at which the configuration permits the series to begin.
    pub least_first: u64,
    /// The mark that identifies the request, so that a repeated request takes effect only once.
    pub mark: RequestMark,
    /// The name of the caller, or `None` if it is unknown.
    pub by: Option<String>,
    /// `true` if the request is valid only as the first request of its series.
    pub must_begin: bool,
    /// The wrong first number of the series, if this request corrects it. The request then begins
    /// the series again, so the wrong number must be the only number of the series.
    pub instead_of: Option<u64>,
    /// The reason why the series gives no new numbers, or `None` if it may give some. A repeated
    /// request still gets the numbers that it already got.
    pub refused: Option<SeriesRefusal>,
    /// The form of the numbers' texts, such as `INV-00042`, or `None` if the numbers have no texts,
    /// as in a series that reserves blocks of numbers.
    pub form: Option<NumberForm>,
}

impl NumberRequest {
    /// Creates a request. `key` is the caller's idempotency key.
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
            least_first: bounds.start,
            mark,
            by: by.map(|by| clipped(by).to_owned()),
            must_begin: false,
            instead_of: None,
            refused: None,
            form: None,
        }
    }

    /// Adds the condition that this request is the first request of its series. The series then
    /// begins at `first`.
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

    /// Returns `given`, the numbers that an earlier request with the same idempotency key got, if
    /// that request was the same as this one.
    ///
    /// # Errors
    /// Returns [`NumberRefusal::KeyConflict`] if the key was used for another request.
    pub fn replay(&self, given: GivenNumbers) -> Result<GivenNumbers, NumberRefusal> {
        let conflict = || NumberRefusal::KeyConflict {
            series: self.series.clone(),
        };
        (given.mark == self.mark)
            .then_some(given)
            .ok_or_else(conflict)
    }
}

/// Cuts a caller name to [`CALLER_LEN_MAX`] bytes.
pub(super) fn clipped(by: &str) -> &str {
    &by[..by.floor_char_boundary(CALLER_LEN_MAX)]
}

impl KeyHash {
    /// Hashes an idempotency key for requests to this series.
    ///
    /// The hash is the first 128 bits of a SHA-256. The hashed bytes are the byte 2, the name of
    /// the series, the byte 0, and the key.
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

/// Returns the digest of a request. If the request names the first number of the series, that
/// number is included after a byte 0. The result is unambiguous, because no series name contains a
/// byte 0.
fn digest_of(series: &SeriesName, count: NonZeroU32, first: Option<u64>) -> [u8; 32] {
    let mut hash = Sha256::new()
        .chain_update(count.get().to_be_bytes())
        .chain_update(series.as_str());
    if let Some(first) = first {
        hash = hash.chain_update([0]).chain_update(first.to_be_bytes());
    }
    hash.finalize().into()
}

/// The last number that a series has given, with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesHead {
    /// The last number that the series has given.
    pub last: u64,
    /// The time at which the number was given, by the clock of the node. It is never earlier than
    /// the time of a lower number.
    pub recorded: EventTime,
}

/// The numbers that one request got, which are all numbers from `first` to `last`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenNumbers {
    /// The name of the series.
    pub series: SeriesName,
    /// The first number that the request got.
    pub first: u64,
    /// The last number that the request got.
    pub last: u64,
    /// The time at which the numbers were given.
    pub recorded: EventTime,
    /// The mark that identifies the request that got the numbers.
    pub mark: RequestMark,
    /// The name of the caller, or `None` if it is unknown.
    pub by: Option<String>,
}

impl GivenNumbers {
    /// Returns the last number of the series after these numbers were given.
    pub fn head(&self) -> SeriesHead {
        SeriesHead {
            last: self.last,
            recorded: self.recorded,
        }
    }

    /// Returns how many numbers the request got.
    pub fn count(&self) -> u64 {
        self.last - self.first + 1
    }
}

/// A plan to give numbers, which the caller should store. The plan is valid while the last number
/// of the series is `before`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberPlan {
    /// The last number of the series at the time when the plan was made, or `None` if the series
    /// begins with this plan.
    pub before: Option<SeriesHead>,
    /// The numbers to store, with the request that gets them.
    pub given: GivenNumbers,
    /// The number with which the series began by mistake. The store removes it together with the
    /// request that got it. `None` unless this plan begins the series again, with the right number.
    pub replaces: Option<GivenNumbers>,
    /// The form of the numbers' texts, such as `INV-00042`, or `None` if the numbers have no texts.
    /// The store keeps a form only where it differs from the form of the number before.
    pub form: Option<NumberForm>,
}

/// The reason why a request gets no numbers, or why a series cannot be resumed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NumberRefusal {
    /// The idempotency key was already used for a different request.
    #[error(
        "the idempotency key was used before for numbers of {series}, with another count or first number; repeat that \
         request, or use a new key"
    )]
    KeyConflict {
        /// The name of the series.
        series: SeriesName,
    },
    /// The request is valid only as the first request of its series, but the series has already
    /// begun.
    #[error(
        "the series {series} cannot begin with {first}, because it has already begun and its last number is {last}; \
         only a wrong first number can be replaced, with `instead_of`"
    )]
    HasBegun {
        /// The name of the series.
        series: SeriesName,
        /// The first number that the request asked for.
        first: u64,
        /// The last number that the series has given.
        last: u64,
    },
    /// The first number of the series cannot be corrected.
    #[error(
        "the first number of {series} cannot become {first} instead of {wrong}: {wrong} is not the only number of the \
         series, does not come from ?first=, or is void"
    )]
    NotCorrectable {
        /// The name of the series.
        series: SeriesName,
        /// The first number that the request asked for.
        first: u64,
        /// The wrong first number, according to the request.
        wrong: u64,
    },
    /// The configuration does not permit the year or period (such as `2026`) in the series name.
    #[error(transparent)]
    NotAdmitted(#[from] SeriesRefusal),
    /// The series cannot begin with the requested number, which is below the first number that the
    /// configuration permits.
    #[error("first must be from {least} to {max}, got {first}")]
    BeginsBelow {
        /// The first number that the request asked for.
        first: u64,
        /// The first number that the configuration permits.
        least: u64,
        /// The last number that the series can give.
        max: u64,
    },
    /// The series has fewer numbers left than the request asks for.
    #[error(
        "the series {series} ends with {max} and has only {left} numbers left, but {count} were requested; begin another \
         series, or raise max"
    )]
    SeriesEnded {
        /// The name of the series.
        series: SeriesName,
        /// The last number that the series can give.
        max: u64,
        /// The number of numbers that the series has left.
        left: u64,
        /// The number of requested numbers.
        count: u32,
    },
    /// The store was restored from a backup, and may lack numbers of the series. The series gives
    /// no numbers until an operator has resumed it.
    #[error(
        "the series {series} gives no numbers since a restore, because numbers that were given after the backup may be \
         missing; an operator resumes the series with `idmint numbers resume {series} --from N`, where N is the \
         highest number in your own records, plus one"
    )]
    Held {
        /// The name of the series.
        series: SeriesName,
    },
    /// The series was closed.
    #[error(
        "the series {} is closed since {}{}; use a new series, such as the one of the next year",
        .0.series, .0.recorded, after_last(.0)
    )]
    Closed(ClosedSeries),
    /// The series cannot continue at the requested number. This number is not the next number of
    /// the series, and the series is not waiting for an operator to resume it.
    #[error(
        "the series {series} cannot continue with {from}, because it does not wait to be resumed, and its next number is \
         {next}"
    )]
    NotHeld {
        /// The name of the series.
        series: SeriesName,
        /// The number at which the operator wants the series to continue.
        from: u64,
        /// The next number of the series.
        next: u64,
    },
    /// The series cannot be resumed at the requested number.
    #[error("from must be between {least} and {most} to resume {series}, got {from}")]
    ResumesOutside {
        /// The name of the series.
        series: SeriesName,
        /// The number at which the operator wants the series to continue.
        from: u64,
        /// The smallest number at which the series can continue.
        least: u64,
        /// The greatest number at which the series can continue. It is one above the last number
        /// that the series can give, and a series that continues there has no numbers left.
        most: u64,
    },
}

fn after_last(closed: &ClosedSeries) -> String {
    let last = closed.last.map(|last| format!(" and ends with {last}"));
    last.unwrap_or_default()
}

impl NumberPlan {
    /// Plans numbers for a request whose idempotency key has not got numbers before.
    ///
    /// `head` is the last number of the series, or `None` if the series has not begun.
    ///
    /// # Errors
    /// Returns [`NumberRefusal::HasBegun`] if the request is valid only as the first one of its
    /// series and the series has begun, and [`NumberRefusal::BeginsBelow`] if it would begin below
    /// the configured first number. Returns [`NumberRefusal::NotAdmitted`] if the series gives no
    /// new numbers, and [`NumberRefusal::SeriesEnded`] if it has too few left.
    pub fn make(
        request: &NumberRequest,
        head: Option<SeriesHead>,
        now: EventTime,
    ) -> Result<NumberPlan, NumberRefusal> {
        let NumberRequest {
            series,
            count,
            bounds,
            least_first,
            mark,
            by,
            must_begin,
            instead_of: _,
            refused,
            form,
        } = request;
        if let Some(refusal) = refused {
            return Err(refusal.clone().into());
        }
        if let Some(head) = head.filter(|_| *must_begin) {
            let series = series.clone();
            return Err(NumberRefusal::HasBegun {
                series,
                first: bounds.start,
                last: head.last,
            });
        }
        if bounds.start < *least_first {
            return Err(NumberRefusal::BeginsBelow {
                first: bounds.start,
                least: *least_first,
                max: bounds.max,
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
            replaces: None,
            form: form.clone(),
        })
    }

    /// Returns the change of form to store with the numbers, or `None` if they are written like the
    /// number before them. `latest` is the form of that number. It is ignored if the plan
    /// [corrects](NumberPlan::correct) the first number, because no number comes before the new
    /// first one.
    pub fn form_change(&self, latest: Option<&NumberForm>) -> Option<FormChange> {
        let latest = latest.filter(|_| self.replaces.is_none());
        let form = self.form.as_ref().filter(|form| Some(*form) != latest)?;
        let GivenNumbers {
            series,
            first,
            mark,
            ..
        } = &self.given;
        Some(FormChange {
            series: series.clone(),
            from: *first,
            of: mark.key,
            form: form.clone(),
        })
    }

    /// Plans to begin a series again, because its first number was wrong. `head` is the last number
    /// of the series. `found` has the numbers of the request that got the wrong number, or is
    /// `None` if the wrong number is void or is not stored.
    ///
    /// # Errors
    /// Returns [`NumberRefusal::NotCorrectable`] if the series has other numbers, or if the wrong
    /// number does not come from a request that named the first number. Returns the errors of
    /// [`NumberPlan::make`] if the series cannot begin with the new number.
    pub fn correct(
        request: &NumberRequest,
        wrong: u64,
        head: SeriesHead,
        found: Option<GivenNumbers>,
        now: EventTime,
    ) -> Result<NumberPlan, NumberRefusal> {
        let NumberRequest { series, bounds, .. } = request;
        let first_of_series = digest_of(series, NonZeroU32::MIN, Some(wrong));
        let is_only = |found: &GivenNumbers| {
            found.first == wrong && found.mark.digest == first_of_series && found.head() == head
        };
        let Some(found) = found.filter(is_only) else {
            return Err(NumberRefusal::NotCorrectable {
                series: series.clone(),
                first: bounds.start,
                wrong,
            });
        };
        // Record the new number later than the wrong one. After a restore, the journals may contain
        // both, and the later number is then the right one.
        let later = EventTime::from_micros(head.recorded.micros() + 1).unwrap_or(head.recorded);
        Ok(NumberPlan {
            before: Some(head),
            replaces: Some(found),
            ..NumberPlan::make(request, None, now.max(later))?
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
        // Change the configured start after the series has begun. The next number must not change.
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
        // A request that is sent again gets the same numbers as before, even if the series has
        // ended since. This series ends with the number 2.
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
    fn a_wrong_first_number_is_replaced_while_it_is_the_only_one() {
        let begin = |key, first| request(key, 1, NumberBounds::default()).beginning_with(first);
        let wrong = plan(&begin("import", 47_110), None, 50).given;
        let right = NumberRequest {
            instead_of: Some(47_110),
            ..begin("right", 4_711)
        };
        let correct = |wrong, head, found| NumberPlan::correct(&right, wrong, head, found, at(40));

        let plan_of = |head, found| correct(47_110, head, found);
        let corrected = plan_of(wrong.head(), Some(wrong.clone())).expect("it is the only number");
        assert_eq!(
            (corrected.given.first, corrected.given.last),
            (4_711, 4_711)
        );
        assert_eq!(corrected.given.recorded, at(51));
        assert_eq!(corrected.before, Some(wrong.head()));
        assert_eq!(corrected.replaces, Some(wrong.clone()));

        let next = plan(
            &request("a", 1, NumberBounds::default()),
            Some(wrong.head()),
            60,
        )
        .given;
        let by_order = plan(&request("b", 1, NumberBounds::default()), None, 50).given;
        for refused in [
            plan_of(next.head(), Some(wrong.clone())),
            plan_of(wrong.head(), None),
            correct(1, by_order.head(), Some(by_order)),
        ] {
            assert!(matches!(
                refused,
                Err(NumberRefusal::NotCorrectable { first: 4_711, .. })
            ));
        }
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
        // The expected value is the SHA-256 of 02, "acme", 00, "order-1", as computed by sha256sum.
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
