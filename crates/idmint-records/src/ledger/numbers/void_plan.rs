//! Voiding of numbers, for example of cancelled orders. A void number still counts as given, and
//! its record has the reason.

use super::number_plan::{GivenNumbers, clipped};
use super::series_name::SeriesName;
use crate::ledger::append::KeyHash;
use crate::ledger::events::EventTime;

/// The maximum length of a reason, in bytes.
pub const REASON_LEN_MAX: usize = 500;

/// The reason for voiding a number. A reason has 1 to 500 bytes, is not blank, and contains no
/// control characters.
///
/// ```
/// use idmint_records::ledger::VoidReason;
///
/// assert_eq!(VoidReason::from_text("the order was cancelled").map(|reason| reason.as_str().len()), Some(23));
/// assert!(["", "  ", "a\nb"].into_iter().all(|text| VoidReason::from_text(text).is_none()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoidReason(String);

impl VoidReason {
    /// Parses a reason. Returns `None` if the text is not a valid reason.
    pub fn from_text(text: &str) -> Option<VoidReason> {
        let is_reason = text.len() <= REASON_LEN_MAX
            && !text.trim().is_empty()
            && !text.chars().any(char::is_control);
        is_reason.then(|| VoidReason(text.to_owned()))
    }

    /// Returns the reason as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A request to void a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoidRequest {
    /// The name of the series.
    pub series: SeriesName,
    /// The number to void.
    pub number: u64,
    /// The reason for voiding the number.
    pub reason: VoidReason,
    /// The name of the caller, or `None` if it is unknown.
    pub by: Option<String>,
}

/// The record of a void number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoidedNumber {
    /// The name of the series.
    pub series: SeriesName,
    /// The number that was voided.
    pub number: u64,
    /// The time at which the number was voided.
    pub recorded: EventTime,
    /// The reason for voiding the number.
    pub reason: VoidReason,
    /// The name of the caller, or `None` if it is unknown.
    pub by: Option<String>,
}

/// The change that makes a number void, for the caller to store. The change is valid as long as no
/// other change has made the number void.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoidPlan {
    /// The hash of the idempotency key that got the number.
    pub of: KeyHash,
    /// The record of the void number.
    pub void: VoidedNumber,
}

/// The reason why a number cannot be voided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VoidRefusal {
    /// The number has not been given.
    #[error("number {number} of the series {series} was not given, so it cannot become void")]
    NotGiven {
        /// The name of the series.
        series: SeriesName,
        /// The number that the caller wants to void.
        number: u64,
    },
    /// The number is already void, but for another reason.
    #[error("number {} of {} is already void since {}, for another reason: {:?}", .0.number, .0.series, .0.recorded, .0.reason.as_str())]
    AlreadyVoid(VoidedNumber),
}

impl VoidRequest {
    /// Returns `void`, the stored record of the number, if its reason is the same as in this
    /// repeated request.
    ///
    /// # Errors
    /// Returns [`VoidRefusal::AlreadyVoid`] if the reasons differ.
    pub fn replay(&self, void: VoidedNumber) -> Result<VoidedNumber, VoidRefusal> {
        if void.reason == self.reason {
            Ok(void)
        } else {
            Err(VoidRefusal::AlreadyVoid(void))
        }
    }
}

impl VoidPlan {
    /// Makes the change that voids a number. The number must not be void already.
    ///
    /// `given` is the record of the request that got this number, or `None` if the number has not
    /// been given.
    ///
    /// # Errors
    /// Returns [`VoidRefusal::NotGiven`] if the number has not been given.
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
