//! How long a connection may do one thing.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep_until};

use crate::net::limits::Limits;
use crate::net::stream::{Activity, Snapshot, State};

/// The deadline of what a connection does now. Anything new that it does gets a new one.
pub(super) struct Timeouts {
    limits: Limits,
    last: Snapshot,
    deadline: Instant,
    // Never set later than the deadline, and rarely moved: a timer that fires early looks again, which is cheaper than
    // setting it anew for every request.
    timer: Pin<Box<Sleep>>,
}

impl Timeouts {
    /// Begins with what the connection does now, and the deadline for that.
    pub(super) fn new(limits: Limits, now: Snapshot, deadline: Instant) -> Self {
        Self {
            limits,
            last: now,
            deadline,
            timer: Box::pin(sleep_until(deadline)),
        }
    }

    /// Ready once the deadline has passed, with what took too long.
    pub(super) fn poll_expired(
        &mut self,
        context: &mut Context<'_>,
        activity: &Activity,
    ) -> Poll<State> {
        loop {
            self.update(activity);
            ready!(self.timer.as_mut().poll(context));
            // It may have moved on another thread while the timer slept.
            self.update(activity);
            if Instant::now() >= self.deadline {
                return Poll::Ready(self.last.state);
            }
            self.timer.as_mut().reset(self.deadline);
        }
    }

    /// Sets a new deadline if anything has moved.
    fn update(&mut self, activity: &Activity) {
        let snapshot = activity.snapshot();
        if snapshot == self.last {
            return;
        }
        self.last = snapshot;
        if snapshot.state == State::Idle {
            activity.record_idle();
        }
        let timeout = match snapshot.state {
            State::ReadingHead => self.limits.header_timeout,
            State::Idle | State::Answering => self.limits.idle_timeout,
        };
        self.deadline = Instant::now() + timeout;
        if self.deadline < self.timer.deadline() {
            self.timer.as_mut().reset(self.deadline);
        }
    }
}
