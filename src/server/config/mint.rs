//! Settings for minting ids: the limits of a mint request, and the tolerance for inaccurate clocks.

use std::time::Duration;

use serde::Deserialize;

use super::value::{between, whole};

/// The section `mint`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MintConfig {
    /// The maximum number of ids per request: 1 to 10 000 000. Default: 100 000.
    #[serde(deserialize_with = "whole::<_, _, 1, 10_000_000>")]
    pub batch_max: u32,
    /// The maximum time by which a response is delayed: 0 to 60 s. A response is delayed until the
    /// time in its ids is close enough to the clock. Default: 250 ms.
    #[serde(deserialize_with = "between::<_, 0, 60_000>")]
    pub wait_max: Duration,
    /// The maximum time by which the time in an id may be ahead of the clock: 0 to 1 s. Default: 5
    /// ms.
    #[serde(deserialize_with = "between::<_, 0, 1_000>")]
    pub lead_max: Duration,
    /// The reaction to a request for more ids than can be minted without a wait. Default: wait.
    pub on_exhausted: OnExhausted,
}

impl Default for MintConfig {
    fn default() -> Self {
        Self {
            batch_max: 100_000,
            wait_max: Duration::from_millis(250),
            lead_max: Duration::from_millis(5),
            on_exhausted: OnExhausted::Wait,
        }
    }
}

impl MintConfig {
    /// Returns the maximum time by which a response is delayed. It is zero for
    /// [`OnExhausted::Refuse`].
    #[must_use]
    pub fn wait(&self) -> Duration {
        match self.on_exhausted {
            OnExhausted::Wait => self.wait_max,
            OnExhausted::Refuse => Duration::ZERO,
        }
    }
}

/// The reaction to a request for more ids than can be minted immediately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnExhausted {
    /// The response waits until the clock reaches the time in its ids, but at most `wait_max`.
    Wait,
    /// The request is refused at once. The response names the time at which the request would
    /// succeed.
    Refuse,
}

/// The section `clock`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClockConfig {
    /// The maximum time by which the horizon may be ahead of the clock at a start: 0 to 1 h. The
    /// horizon is the end of the time that earlier runs reserved for their ids. If the horizon is
    /// further ahead, the start waits for the clock. Default: 5 s.
    #[serde(deserialize_with = "between::<_, 0, 3_600_000>")]
    pub max_ahead: Duration,
    /// The largest tolerated error of the wall clock: 1 ms to 1 h. A running service ignores a
    /// larger step forward, and a node of a fleet does not mint if its clock differs more from the
    /// median clock of the fleet. Default: 5 s.
    #[serde(deserialize_with = "between::<_, 1, 3_600_000>")]
    pub skew_max: Duration,
}

impl Default for ClockConfig {
    fn default() -> Self {
        Self {
            max_ahead: Duration::from_secs(5),
            skew_max: Duration::from_secs(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusing_on_exhaustion_waits_for_nothing() {
        let waiting = MintConfig::default();
        assert_eq!(waiting.wait(), Duration::from_millis(250));
        assert_eq!(
            MintConfig {
                on_exhausted: OnExhausted::Refuse,
                ..waiting
            }
            .wait(),
            Duration::ZERO
        );
    }
}
