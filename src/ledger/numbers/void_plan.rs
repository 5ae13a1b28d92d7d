//! Decides whether a number is made void: it stays used, and a reason stands beside it.

use super::number_plan::{GivenNumbers, clipped};
use super::series_name::SeriesName;
use crate::ledger::append::KeyHash;
use crate::ledger::events::EventTime;

/// The longest reason, in bytes.
pub const REASON_LEN_MAX: usize = 500;

/// Why a number is void: 1 to 500 bytes without control characters, and not blank.
///
/// ```
/// use idmint::ledger::VoidReason;
///
/// assert_eq!(VoidReason::from_text("the order was cancelled").map(|reason| reason.as_str().len()), Some(23));
/// assert!(["", "  ", "a\nb"].into_iter().all(|text| VoidReason::from_text(text).is_none()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoidReason(String);

impl VoidReason {
    /// Reads a reason; `None` if it is none.
    pub fn from_text(text: &str) -> Option<VoidReason> {
        let is_reason = text.len() <= REASON_LEN_MAX
            && !text.trim().is_empty()
            && !text.chars().any(char::is_control);
        is_reason.then(|| VoidReason(text.to_owned()))
    }

    /// As it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A request to make a number void.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoidRequest {
    /// The series.
    pub series: SeriesName,
    /// The number.
    pub number: u64,
    /// Why.
    pub reason: VoidReason,
    /// Who asks, if that is known.
    pub by: Option<String>,
}

/// A number that is void.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoidedNumber {
    /// Its series.
    pub series: SeriesName,
    /// The number.
    pub number: u64,
    /// When it was made void.
    pub recorded: EventTime,
    /// Why.
    pub reason: VoidReason,
    /// Who asked, if that was known.
    pub by: Option<String>,
}

/// A number as it will be void. Valid as long as it is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoidPlan {
    /// The key of the request that the number was given to.
    pub of: KeyHash,
    /// The number.
    pub void: VoidedNumber,
}

/// Why a number is not made void.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VoidRefusal {
    /// It was not given.
    #[error("the series {series} has not given {number}")]
    NotGiven {
        /// The series.
        series: SeriesName,
        /// The number.
        number: u64,
    },
    /// It is void for another reason.
    #[error("{} of {} is void already, since {}, for another reason: {:?}", .0.number, .0.series, .0.recorded, .0.reason.as_str())]
    AlreadyVoid(VoidedNumber),
}

impl VoidRequest {
    /// The number as it is void, if that is for the same reason.
    ///
    /// # Errors
    /// [`VoidRefusal::AlreadyVoid`].
    pub fn replay(&self, void: VoidedNumber) -> Result<VoidedNumber, VoidRefusal> {
        if void.reason == self.reason {
            Ok(void)
        } else {
            Err(VoidRefusal::AlreadyVoid(void))
        }
    }
}

impl VoidPlan {
    /// Plans to make a number void that is not; `given`: what it was given with, if it was.
    ///
    /// # Errors
    /// [`VoidRefusal::NotGiven`].
    pub fn make(
        request: &VoidRequest,
        given: Option<&GivenNumbers>,
        now: EventTime,
    ) -> Result<VoidPlan, VoidRefusal> {
        let (series, number) = (request.series.clone(), request.number);
        let Some(given) = given else {
            return Err(VoidRefusal::NotGiven { series, number });
        };
        let by = request.by.as_deref().map(|by| clipped(by).to_owned());
        let recorded = given.recorded.max(now);
        let void = VoidedNumber {
            series,
            number,
            recorded,
            reason: request.reason.clone(),
            by,
        };
        Ok(VoidPlan {
            of: given.mark.key,
            void,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::append::RequestMark;

    fn request(reason: &str) -> VoidRequest {
        VoidRequest {
            series: SeriesName::from_text("acme").expect("a name"),
            number: 7,
            reason: VoidReason::from_text(reason).expect("a reason"),
            by: None,
        }
    }

    #[test]
    fn a_number_is_void_once_and_for_one_reason() {
        let at = |micros| EventTime::from_micros(micros).expect("in range");
        let asked = request("cancelled");
        let mark = RequestMark {
            key: KeyHash(3),
            digest: [0; 32],
        };
        let given = GivenNumbers {
            series: asked.series.clone(),
            first: 5,
            last: 9,
            recorded: at(4),
            mark,
            by: None,
        };
        let VoidPlan { of, void } =
            VoidPlan::make(&asked, Some(&given), at(5)).expect("it was given");
        assert_eq!(
            (of, void.number, void.recorded, &void.reason),
            (mark.key, 7, at(5), &asked.reason)
        );
        let behind = VoidPlan::make(&asked, Some(&given), at(3)).expect("it was given");
        assert_eq!(
            behind.void.recorded,
            at(4),
            "by a clock that is behind that of who gave it"
        );
        assert_eq!(asked.replay(void.clone()), Ok(void.clone()));
        assert_eq!(
            request("lost").replay(void.clone()),
            Err(VoidRefusal::AlreadyVoid(void))
        );
        let absent = VoidPlan::make(&asked, None, at(9));
        assert!(matches!(
            absent,
            Err(VoidRefusal::NotGiven { number: 7, .. })
        ));
    }

    #[test]
    fn a_reason_is_a_line_of_text() {
        assert!(
            VoidReason::from_text(&"x".repeat(500)).is_some()
                && VoidReason::from_text(&"x".repeat(501)).is_none()
        );
        assert!(
            VoidReason::from_text("ein Grund, ⑆").is_some()
                && VoidReason::from_text("a\tb").is_none()
        );
    }
}
