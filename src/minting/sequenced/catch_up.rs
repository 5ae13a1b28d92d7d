//! How far minting may run ahead of the clock.

use crate::time::UnixNanos;

/// Where a session began and when: one that began ahead of its clock goes on at half speed until the clock has caught up.
///
/// At full speed a program that is killed and started again and again would drift ahead without bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatchUp {
    start: UnixNanos,
    began_at: UnixNanos,
    /// What the clock shows when it has caught up.
    caught_up_at: UnixNanos,
}

/// The clock, read once for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The estimate of the true time.
    pub now: UnixNanos,
    /// How far a start ahead of the clock has come, while that is still ahead.
    pub catching_up: Option<UnixNanos>,
    catch_up: CatchUp,
}

impl CatchUp {
    /// A session that starts at `start` while the clock shows `now`.
    pub fn new(start: UnixNanos, now: UnixNanos) -> CatchUp {
        CatchUp {
            start,
            began_at: now,
            caught_up_at: now.after(2 * start.since(now)),
        }
    }

    /// The moment at which the clock shows `now`.
    #[inline]
    pub fn at(&self, now: UnixNanos) -> Moment {
        if now >= self.caught_up_at {
            return Moment {
                now,
                catching_up: None,
                catch_up: *self,
            };
        }
        let reached = self.start.after(now.since(self.began_at) / 2);
        Moment {
            now,
            catching_up: (reached > now).then_some(reached),
            catch_up: *self,
        }
    }
}

impl Moment {
    /// The later of the clock and of how far a start ahead of it has come.
    pub fn reference(&self) -> UnixNanos {
        self.catching_up.unwrap_or(self.now)
    }

    /// What the clock shows when a start ahead of it, at half speed, has come to `instant`.
    pub fn catches_up_to(&self, instant: UnixNanos) -> UnixNanos {
        self.catch_up
            .began_at
            .after(instant.since(self.catch_up.start).saturating_mul(2))
    }
}
