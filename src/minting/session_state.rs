//! Whether sequenced ids are minted, and if not, why.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::refusal::Refusal;
use super::session::Session;

/// Waiting for a reason, and from the beginning of the session on minting.
#[derive(Debug)]
pub(super) struct SessionState {
    session: OnceLock<Arc<Session>>,
    waiting_for: Mutex<Refusal>,
}

impl Default for SessionState {
    fn default() -> SessionState {
        let waiting_for = Refusal::HorizonReached { retry_after: Duration::from_secs(1) };
        SessionState { session: OnceLock::new(), waiting_for: Mutex::new(waiting_for) }
    }
}

impl SessionState {
    pub(super) fn begin(&self, session: Arc<Session>) {
        session.hand_out();
        assert!(self.session.set(session).is_ok(), "a program has one session");
    }

    pub(super) fn wait_for(&self, reason: Refusal) {
        *self.waiting_for.lock().expect("no holder of this lock panics") = reason;
    }

    #[inline]
    pub(super) fn session(&self) -> Result<&Arc<Session>, Refusal> {
        self.session.get().ok_or_else(|| self.reason())
    }

    /// Why nothing sequenced is minted yet.
    pub(super) fn reason(&self) -> Refusal {
        self.waiting_for.lock().expect("no holder of this lock panics").clone()
    }
}
