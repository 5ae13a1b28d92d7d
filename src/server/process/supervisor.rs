//! What the supervisor of this process is told, if it is systemd (`sd_notify(3)`).

use std::io;

use sd_notify::{NotifyState, notify};
use tracing::warn;

/// Ids are minted: units that wait for this one may start.
pub(in crate::server) fn tell_ready() {
    say(notify(&[NotifyState::Ready]));
}

/// The process was told to end, and drains.
pub(in crate::server) fn tell_stopping() {
    say(notify(&[NotifyState::Stopping]));
}

/// Without a supervisor that listens, telling does nothing and succeeds.
fn say(told: io::Result<()>) {
    if let Err(error) = told {
        warn!("cannot tell the supervisor (NOTIFY_SOCKET) how far this process is: {error}");
    }
}
