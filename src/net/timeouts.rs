//! How long a connection is waited for.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep_until};

use super::activity::{Doing, Look};
use super::listener::Limits;

/// Runs out when one thing has gone on for longer than the limits allow.
pub(super) struct Patience {
    limits: Limits,
    seen: Look,
    until: Instant,
    // Never set later than `until`, and rarely moved: an early alarm looks again, which is cheaper than setting it anew
    // for every request.
    alarm: Pin<Box<Sleep>>,
}

impl Patience {
    /// Begins with what is seen now, which may go on until then.
    pub(super) fn new(limits: Limits, seen: Look, until: Instant) -> Self {
        Self { limits, seen, until, alarm: Box::pin(sleep_until(until)) }
    }

    /// Ready when it has run out. `look` is what is seen now; anything new gets new time.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, look: impl Fn() -> Look) -> Poll<Doing> {
        loop {
            self.notice(look());
            ready!(self.alarm.as_mut().poll(context));
            // It may have moved on another thread while the alarm slept.
            self.notice(look());
            if Instant::now() >= self.until {
                return Poll::Ready(self.seen.doing);
            }
            self.alarm.as_mut().reset(self.until);
        }
    }

    fn notice(&mut self, look: Look) {
        if look == self.seen {
            return;
        }
        self.seen = look;
        let allowed = match look.doing {
            Doing::ReadingHead => self.limits.header_timeout,
            Doing::Waiting | Doing::Answering => self.limits.idle_timeout,
        };
        self.until = Instant::now() + allowed;
        if self.until < self.alarm.deadline() {
            self.alarm.as_mut().reset(self.until);
        }
    }
}
