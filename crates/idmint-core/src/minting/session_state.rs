//! The state that all minters of a process share: the active session, or the reason why no session
//! is active.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::refusal::Refusal;
use super::session::Session;

/// The active session, or the reason why ids with time, worker number and sequence cannot be minted
/// now.
#[derive(Debug)]
pub(super) struct SessionState {
    state: Mutex<CurrentSession>,
    /// `true` if not even random ids may be minted, because the clock cannot be right.
    /// Written by: the thread that holds the lock of `state`.
    /// Read by: each mint of random ids.
    /// Ordering: Relaxed, because no other memory depends on the flag.
    is_clock_wrong: AtomicBool,
}

#[derive(Debug)]
struct CurrentSession {
    session: Option<Arc<Session>>,
    waiting_for: Refusal,
}

impl Default for SessionState {
    fn default() -> SessionState {
        let waiting_for = Refusal::HorizonReached {
            retry_after: Duration::from_secs(1),
        };
        SessionState {
            state: Mutex::new(CurrentSession {
                session: None,
                waiting_for,
            }),
            is_clock_wrong: AtomicBool::new(false),
        }
    }
}

impl SessionState {
    /// Makes `session` the active session.
    ///
    /// # Panics
    /// Panics if any session is active, because two sessions could mint with the same worker
    /// numbers. Also panics if `session` cannot mint yet.
    pub(super) fn begin(&self, session: Arc<Session>) {
        let mut state = self.locked();
        assert!(
            state.session.is_none(),
            "a session begins after the one before has ended"
        );
        assert!(
            session.is_open(),
            "a session begins when something can be minted in it"
        );
        session.hand_out();
        state.session = Some(session);
        self.is_clock_wrong.store(false, Ordering::Relaxed);
    }

    /// Ends the active session, if any. A request in progress can still get ids for which time is
    /// reserved. Later requests are refused with `reason`.
    pub(super) fn end(&self, reason: Refusal) {
        let mut state = self.locked();
        self.set_reason(&mut state, reason);
        if let Some(session) = state.session.take() {
            session.take_back();
        }
    }

    pub(super) fn wait_for(&self, reason: Refusal) {
        self.set_reason(&mut self.locked(), reason);
    }

    pub(super) fn session(&self) -> Result<Arc<Session>, Refusal> {
        let state = self.locked();
        state
            .session
            .clone()
            .ok_or_else(|| state.waiting_for.clone())
    }

    /// Returns the reason why sequenced ids cannot be minted now. While a session is active, the
    /// result is outdated: it is the last reason before the session began.
    pub(super) fn reason(&self) -> Refusal {
        self.locked().waiting_for.clone()
    }

    /// Returns the reason why random ids cannot be minted now, or `None` if they can.
    #[inline]
    pub(super) fn wrong_clock(&self) -> Option<Refusal> {
        self.is_clock_wrong
            .load(Ordering::Relaxed)
            .then(|| self.reason())
    }

    fn set_reason(&self, state: &mut CurrentSession, reason: Refusal) {
        self.is_clock_wrong.store(
            matches!(reason, Refusal::ClockJumped { .. }),
            Ordering::Relaxed,
        );
        state.waiting_for = reason;
    }

    fn locked(&self) -> MutexGuard<'_, CurrentSession> {
        self.state.lock().expect("no holder of this lock panics")
    }
}
