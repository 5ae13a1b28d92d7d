//! Being told to end, and to read the configuration again.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for SIGTERM and SIGINT.
pub(in crate::server) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// Waits for SIGHUP.
pub(in crate::server) struct Hangups(Signal);

impl Hangups {
    /// From now on it does not end the process.
    pub(in crate::server) fn wait() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// Returns when the next one has come.
    pub(in crate::server) async fn next(&mut self) {
        self.0.recv().await;
    }
}

impl Signals {
    /// From now on neither of them ends the process by itself.
    pub(in crate::server) fn wait() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The name of the next one that comes.
    pub(in crate::server) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
