//! Whether sequenced ids are minted, and if not, why.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::refusal::Refusal;
use super::session::Session;

/// Minting in a session, or waiting for one for a reason.
#[derive(Debug)]
pub(super) struct SessionState {
    state: Mutex<State>,
    /// Nothing at all is minted, since the clock cannot be right. Written under the lock of `state`, read by each mint of
    /// random ids: Relaxed, since nothing else depends on it.
    is_clock_wrong: AtomicBool,
}

#[derive(Debug)]
struct State {
    session: Option<Arc<Session>>,
    waiting_for: Refusal,
}

impl Default for SessionState {
    fn default() -> SessionState {
        let waiting_for = Refusal::HorizonReached {
            retry_after: Duration::from_secs(1),
        };
        SessionState {
            state: Mutex::new(State {
                session: None,
                waiting_for,
            }),
            is_clock_wrong: AtomicBool::new(false),
        }
    }
}

impl SessionState {
    /// # Panics
    /// While there is a session: worker numbers would be used twice; and where nothing can be minted in this one yet.
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

    /// Ends the session, if there is one. What has been reserved in it may still be used.
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

    /// Why nothing sequenced is minted, or was not a moment ago.
    pub(super) fn reason(&self) -> Refusal {
        self.locked().waiting_for.clone()
    }

    /// Why not even random ids are minted.
    #[inline]
    pub(super) fn wrong_clock(&self) -> Option<Refusal> {
        self.is_clock_wrong
            .load(Ordering::Relaxed)
            .then(|| self.reason())
    }

    fn set_reason(&self, state: &mut State, reason: Refusal) {
        self.is_clock_wrong.store(
            matches!(reason, Refusal::ClockJumped { .. }),
            Ordering::Relaxed,
        );
        state.waiting_for = reason;
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}
