//! The retry policy of a client.

use std::fmt;
use std::time::Duration;

use super::error::ClientError;

/// The pause before the first retry. Each later pause is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The maximum pause. A service may ask for a longer one.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The retry policy for requests that fail because the service is unreachable or busy.
pub struct Retry {
    time_max: Duration,
    notify: Box<dyn Fn(&ClientError) + Send + Sync>,
}

impl Retry {
    /// Returns a policy that sends every request once.
    pub fn never() -> Retry {
        Retry::within(Duration::ZERO, |_| {})
    }

    /// Returns a policy that retries each request for up to `time_max`. `notify` is called with the
    /// error before the first retry.
    pub fn within(
        time_max: Duration,
        notify: impl Fn(&ClientError) + Send + Sync + 'static,
    ) -> Retry {
        Retry {
            time_max,
            notify: Box::new(notify),
        }
    }

    pub(super) fn begin(&self) -> Attempts<'_> {
        Attempts {
            retry: self,
            pause: PAUSE_MIN,
        }
    }
}

impl fmt::Debug for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Retry({:?})", self.time_max)
    }
}

/// The attempts to send one request.
pub(super) struct Attempts<'a> {
    retry: &'a Retry,
    pause: Duration,
}

impl Attempts<'_> {
    /// Returns the pause after `error` before the next attempt, or `None` if the request has failed
    /// for good.
    pub(super) fn next_pause(
        &mut self,
        elapsed: Duration,
        error: &ClientError,
    ) -> Option<Duration> {
        if !error.may_pass() {
            return None;
        }
        let wait = error.retry_after().unwrap_or_default().max(self.pause);
        if elapsed.saturating_add(wait) > self.retry.time_max {
            return None;
        }
        if self.pause == PAUSE_MIN {
            (self.retry.notify)(error);
        }
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;

    use super::*;
    use crate::error::ProblemDetails;

    fn busy(retry_after_ms: u64) -> ClientError {
        let body = format!(
            r#"{{"type":"/problems/overloaded","detail":"full","retry_after_ms":{retry_after_ms}}}"#
        );
        ClientError::Busy(ProblemDetails::new(
            StatusCode::SERVICE_UNAVAILABLE,
            None,
            body.as_bytes(),
        ))
    }

    #[test]
    fn pauses_double_and_last_as_long_as_the_service_asks_for() {
        let retry = Retry::within(Duration::from_secs(60), |_| {});
        let mut attempts = retry.begin();
        let mut pause = |retry_after_ms| {
            attempts
                .next_pause(Duration::ZERO, &busy(retry_after_ms))
                .map(|d| d.as_millis())
        };
        assert_eq!(
            [pause(0), pause(0), pause(1_000), pause(0)],
            [Some(100), Some(200), Some(1_000), Some(800)]
        );
        assert_eq!(
            [pause(0), pause(0), pause(0), pause(0)],
            [Some(1_600), Some(3_200), Some(5_000), Some(5_000)]
        );
        assert_eq!(pause(60_001), None, "longer than there is time");
    }

    #[test]
    fn it_ends_when_the_time_is_up_and_for_what_does_not_pass() {
        let retry = Retry::within(Duration::from_secs(1), |_| {});
        let after = |elapsed_ms, error: &ClientError| {
            retry
                .begin()
                .next_pause(Duration::from_millis(elapsed_ms), error)
                .is_some()
        };
        assert!(after(900, &busy(0)));
        assert!(!after(901, &busy(0)));
        let refused = ProblemDetails::new(StatusCode::CONFLICT, None, b"{}");
        assert!(!after(0, &ClientError::Refused(refused)));
        assert!(
            Retry::never()
                .begin()
                .next_pause(Duration::ZERO, &busy(0))
                .is_none()
        );
    }
}
