//! The delay between a failed request and the next one.

use std::time::Duration;

use crate::nonce::Entropy;
use idmint_core::time::UnixNanos;

/// The shortest delay after a failure.
const FIRST: Duration = Duration::from_millis(100);

/// The longest delay after a failure.
const LAST: Duration = Duration::from_secs(2);

/// Exponential backoff with jitter, so that nodes that fail together do not retry together.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Retry {
    failures: u32,
    not_before: UnixNanos,
}

impl Retry {
    /// Returns the earliest time of the next request.
    pub(super) fn not_before(&self) -> UnixNanos {
        self.not_before
    }

    /// Delays the next request until `instant`, without counting a failure.
    pub(super) fn wait_until(&mut self, instant: UnixNanos) {
        self.not_before = instant;
    }

    pub(super) fn succeeded(&mut self) {
        *self = Retry::default();
    }

    pub(super) fn failed(&mut self, now: UnixNanos, entropy: &mut Entropy) {
        let longest = FIRST
            .saturating_mul(2_u32.saturating_pow(self.failures))
            .min(LAST);
        self.failures = self.failures.saturating_add(1);
        self.not_before = now.after(between(FIRST, longest, entropy));
    }
}

/// Returns a random duration between `least` and `most`, both inclusive.
pub(super) fn between(least: Duration, most: Duration, entropy: &mut Entropy) -> Duration {
    let span = u64::try_from(most.saturating_sub(least).as_nanos()).unwrap_or(u64::MAX);
    least.saturating_add(Duration::from_nanos(entropy.below(span.saturating_add(1))))
}
