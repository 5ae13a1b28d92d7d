//! Signals to shut down.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A receiver of SIGTERM and SIGINT.
pub(in crate::server) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Starts to receive SIGTERM and SIGINT. From now on, the signals no longer end the process.
    pub(in crate::server) fn wait() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal and returns its name.
    pub(in crate::server) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
