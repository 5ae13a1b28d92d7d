//! The timeouts of a connection.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::limits::Limits;
use crate::stream::{Activity, Snapshot, State};

/// The deadline of a connection's current activity, such as reading a request head. A new deadline
/// is set whenever the activity changes.
pub(super) struct Timeouts {
    limits: Limits,
    /// The idle time after which [`poll_expired`](Self::poll_expired) first resolves, unless memory
    /// is scarce. It is shorter than the idle timeout if the connection can release its buffers.
    rest_after: Duration,
    last: Snapshot,
    deadline: Instant,
    /// The deadline that `limits.idle_timeout` sets while the connection is idle.
    idle_deadline: Instant,
    // The timer is set to the deadline or to an earlier time. If it fires early, the deadline is
    // checked and the timer is set again. This is cheaper than a reset of the timer for every
    // request.
    timer: Pin<Box<Sleep>>,
}

impl Timeouts {
    /// Returns the timeouts of a connection whose current activity is `now`. The timeouts expire at
    /// `deadline` unless the activity changes before.
    pub(super) fn new(limits: Limits, now: Snapshot, deadline: Instant) -> Self {
        Self {
            limits,
            rest_after: limits.idle_timeout,
            last: now,
            deadline,
            idle_deadline: deadline,
            timer: Box::pin(sleep_until(deadline)),
        }
    }

    /// Makes [`poll_expired`](Self::poll_expired) resolve for an idle connection before the idle
    /// timeout, so that the connection can release its buffers. `poll_expired` then resolves after
    /// an idle time of `rest_after`, or at once if memory is scarce.
    pub(super) fn with_rest_after(self, rest_after: Duration) -> Self {
        Self { rest_after, ..self }
    }

    /// Moves the deadline to the end of the idle timeout. Returns `true` if the deadline was
    /// earlier, and `false` if the idle timeout itself has expired. Call this when
    /// [`poll_expired`](Self::poll_expired) has resolved for an idle connection.
    pub(super) fn await_idle_timeout(&mut self) -> bool {
        let is_early = self.deadline < self.idle_deadline;
        self.deadline = self.idle_deadline;
        is_early
    }

    /// Polls the deadline. Once the deadline has passed, resolves to the connection state that
    /// lasted too long. Never resolves while a handler works on a complete request.
    pub(super) fn poll_expired(
        &mut self,
        context: &mut Context<'_>,
        activity: &Activity,
    ) -> Poll<State> {
        loop {
            self.update(activity);
            ready!(self.timer.as_mut().poll(context));
            // The activity may have changed on another thread while the timer slept.
            self.update(activity);
            let now = Instant::now();
            if now >= self.deadline {
                if self.last.state != State::Handling {
                    return Poll::Ready(self.last.state);
                }
                self.deadline = now + self.limits.idle_timeout;
            }
            self.timer.as_mut().reset(self.deadline);
        }
    }

    /// Sets a new deadline if the activity has changed.
    fn update(&mut self, activity: &Activity) {
        let snapshot = activity.snapshot();
        if snapshot == self.last {
            return;
        }
        self.last = snapshot;
        let now = Instant::now();
        self.deadline = now
            + match snapshot.state {
                State::ReadingHead => self.limits.header_timeout,
                // This timeout does not end a connection in the state `Handling`. `poll_expired`
                // only checks whether the handler was dropped on another thread, and waits again.
                State::Handling | State::Answering => self.limits.idle_timeout,
                State::Idle => {
                    activity.record_idle();
                    self.idle_deadline = now + self.limits.idle_timeout;
                    if activity.owner.is_scarce() {
                        Duration::ZERO
                    } else {
                        self.rest_after.min(self.limits.idle_timeout)
                    }
                }
            };
        if self.deadline < self.timer.deadline() {
            self.timer.as_mut().reset(self.deadline);
        }
    }
}
