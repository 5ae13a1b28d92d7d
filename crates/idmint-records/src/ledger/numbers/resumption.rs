//! Decides how a series continues after a restore from a backup that may lack some of its numbers.

use sha2::{Digest, Sha256};

use super::number_form::NumberForm;
use super::number_plan::{
    GivenNumbers, NumberBounds, NumberPlan, NumberRefusal, SeriesHead, clipped,
};
use super::series_name::SeriesName;
use super::void_plan::{VoidReason, VoidedNumber};
use crate::ledger::append::{KeyHash, RequestMark};
use crate::ledger::events::EventTime;

/// The reason that is stored for the skipped numbers when an operator resumes a series.
const SKIPPED: &str = "skipped when the series was resumed after a restore";

/// An operator's request to continue a series at the number `from` after a restore.
///
/// The numbers between the last stored number and `from` are skipped. They are recorded as given
/// and void, because callers may have got them before the restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeRequest {
    /// The series, which need not have begun.
    pub series: SeriesName,
    /// The number at which the series continues.
    pub from: u64,
    /// The first and the last number that the series can give.
    pub bounds: NumberBounds,
    /// The name of the operator, or `None` if it is unknown.
    pub by: Option<String>,
    /// The form of the skipped numbers' texts, such as `INV-00042`, or `None` if they have none.
    pub form: Option<NumberForm>,
}

impl ResumeRequest {
    /// Plans which numbers of the series to skip. Returns `None` if `from` already is the next
    /// number.
    ///
    /// # Errors
    /// Returns [`NumberRefusal::ResumesOutside`] if `from` is below the next number, or more than
    /// one above the maximum of the series.
    pub fn plan(
        &self,
        head: Option<SeriesHead>,
        now: EventTime,
    ) -> Result<Option<NumberPlan>, NumberRefusal> {
        let least = head.map_or(self.bounds.start, |head| head.last.saturating_add(1));
        // If `from` is the next number, no number is skipped. This check comes before the check of
        // the bounds, because the next number of an exhausted series is above its maximum.
        if self.from == least {
            return Ok(None);
        }
        // An operator may continue at the number above the maximum. This skips all remaining
        // numbers and so ends the series.
        let most = self.bounds.max.saturating_add(1);
        if !(least..=most).contains(&self.from) {
            return Err(NumberRefusal::ResumesOutside {
                series: self.series.clone(),
                from: self.from,
                least,
                most,
            });
        }
        let given = GivenNumbers {
            series: self.series.clone(),
            first: least,
            last: self.from - 1,
            recorded: head.map_or(now, |head| head.recorded.max(now)),
            mark: mark_of(&self.series, self.from),
            by: self.by.as_deref().map(|by| clipped(by).to_owned()),
        };
        Ok(Some(NumberPlan {
            before: head,
            given,
            replaces: None,
            form: self.form.clone(),
        }))
    }
}

impl GivenNumbers {
    /// Returns the record that `number` is void, if an operator's [`ResumeRequest`] skipped it.
    pub fn skipped(&self, number: u64) -> Option<VoidedNumber> {
        let next = self.last.checked_add(1)?;
        (self.mark == mark_of(&self.series, next)).then(|| VoidedNumber {
            series: self.series.clone(),
            number,
            recorded: self.recorded,
            reason: VoidReason::from_text(SKIPPED).expect("the text is a reason"),
            by: self.by.clone(),
        })
    }
}

/// Returns the request mark that is stored with the numbers that were skipped to continue a series
/// at `from`. The key contains a line feed, which no HTTP header can have, so no caller can send
/// this key.
fn mark_of(series: &SeriesName, from: u64) -> RequestMark {
    RequestMark {
        key: KeyHash::of_series(series, &format!("\nresume {from}")),
        digest: Sha256::digest(SKIPPED).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> EventTime {
        EventTime::from_micros(micros).expect("in range")
    }

    fn resume(from: u64) -> ResumeRequest {
        ResumeRequest {
            series: SeriesName::from_text("acme").expect("a name"),
            from,
            bounds: NumberBounds {
                start: 10,
                max: 100,
            },
            by: Some("the token `t`".to_owned()),
            form: None,
        }
    }

    fn head(last: u64) -> Option<SeriesHead> {
        Some(SeriesHead {
            last,
            recorded: at(50),
        })
    }

    #[test]
    fn the_numbers_in_between_are_skipped_and_void() {
        let plan = resume(31).plan(head(20), at(40)).expect("31 is above 20");
        let given = plan.expect("21 to 30 are skipped").given;
        assert_eq!((given.first, given.last, given.recorded), (21, 30, at(50)));
        let void = given.skipped(25).expect("25 is void");
        assert_eq!((void.number, void.reason.as_str()), (25, SKIPPED));
        assert_eq!(void.by.as_deref(), Some("the token `t`"));
        // If the series has not begun, resuming it at 12 skips 10 (its start) and 11.
        let plan = resume(12).plan(None, at(40)).expect("12 is above 10");
        let given = plan.expect("10 and 11 are skipped").given;
        assert_eq!((given.first, given.last), (10, 11));
    }

    #[test]
    fn nothing_is_skipped_if_the_next_number_is_named() {
        assert_eq!(resume(21).plan(head(20), at(40)), Ok(None));
        assert_eq!(resume(10).plan(None, at(40)), Ok(None));
        assert_eq!(
            resume(101).plan(head(100), at(40)),
            Ok(None),
            "it ends with 100"
        );
    }

    #[test]
    fn a_series_that_gave_its_maximum_after_the_backup_ends_with_it() {
        let plan = resume(101).plan(head(20), at(40)).expect("100 was given");
        let given = plan.expect("21 to 100 are skipped").given;
        assert_eq!((given.first, given.last), (21, 100));
    }

    #[test]
    fn a_given_number_and_one_beyond_the_bounds_are_refused() {
        for (from, stored, least) in [(20, head(20), 21), (9, None, 10), (102, head(20), 21)] {
            let refused = resume(from).plan(stored, at(40)).expect_err("out of range");
            assert!(
                matches!(refused, NumberRefusal::ResumesOutside { least: found, most: 101, .. } if found == least),
                "{refused}"
            );
        }
    }

    #[test]
    fn numbers_of_other_requests_are_not_skipped() {
        let plan = resume(31).plan(head(20), at(40)).expect("31 is above 20");
        let mut given = plan.expect("21 to 30 are skipped").given;
        given.mark.key = KeyHash::of_series(&given.series, "order-1");
        assert_eq!(given.skipped(25), None);
    }
}
