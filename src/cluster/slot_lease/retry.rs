//! When to try again.

use std::time::Duration;

use crate::cluster::nonce::Entropy;
use crate::time::UnixNanos;

/// After the first failure.
const FIRST: Duration = Duration::from_millis(100);

/// At most.
const LAST: Duration = Duration::from_secs(2);

/// Waits longer after each failure, and each time another while: nodes that failed together do not come back together.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Retry {
    failures: u32,
    not_before: UnixNanos,
}

impl Retry {
    /// Before this nothing is sent.
    pub(super) fn not_before(&self) -> UnixNanos {
        self.not_before
    }

    /// Sends nothing before this, for another reason than a failure.
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

/// A while of at least `least` and at most `most`.
pub(super) fn between(least: Duration, most: Duration, entropy: &mut Entropy) -> Duration {
    let span = u64::try_from(most.saturating_sub(least).as_nanos()).unwrap_or(u64::MAX);
    least.saturating_add(Duration::from_nanos(entropy.below(span.saturating_add(1))))
}
