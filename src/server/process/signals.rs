//! Signals to shut down and to reload the configuration.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A receiver of SIGTERM and SIGINT.
pub(in crate::server) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// A receiver of SIGHUP.
pub(in crate::server) struct Hangups(Signal);

impl Hangups {
    /// Starts to receive SIGHUP. From now on, the signal no longer ends the process.
    pub(in crate::server) fn wait() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// Waits for the next SIGHUP.
    pub(in crate::server) async fn next(&mut self) {
        self.0.recv().await;
    }
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
