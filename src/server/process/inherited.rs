//! A listening socket that this process was started with (socket activation, `sd_listen_fds(3)`).
//!
//! It stays open while one process ends and the next begins, so that no connection is refused in between.

use std::io;
use std::net::{self, SocketAddr};

use listenfd::ListenFd;
use tokio::net::TcpListener;

/// A TCP socket that somebody else has opened, and keeps open.
#[derive(Debug)]
pub struct InheritedSocket(net::TcpListener);

/// What was handed over cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum InheritedError {
    /// There can be one address only.
    #[error(
        "LISTEN_FDS hands over {count} sockets, and one can be served: leave one ListenStream in the socket unit"
    )]
    Several {
        /// How many there are.
        count: usize,
    },
    /// It is no TCP socket that listens.
    #[error(
        "LISTEN_FDS hands over what is no listening TCP socket: use ListenStream with an IP address and a port"
    )]
    NotTcp(#[source] io::Error),
}

impl InheritedSocket {
    /// The socket that the environment speaks of (`LISTEN_FDS`, `LISTEN_PID`), which is then forgotten; `None` if it speaks
    /// of none. To be called before there are threads, which could read the environment meanwhile.
    ///
    /// # Errors
    /// [`InheritedError`].
    pub fn take() -> Result<Option<Self>, InheritedError> {
        let mut handed_over = ListenFd::from_env();
        match handed_over.len() {
            0 | 1 => handed_over
                .take_tcp_listener(0)
                .map(|socket| socket.map(Self))
                .map_err(InheritedError::NotTcp),
            count => Err(InheritedError::Several { count }),
        }
    }

    /// Where it listens.
    ///
    /// # Errors
    /// [`InheritedError::NotTcp`].
    pub fn address(&self) -> Result<SocketAddr, InheritedError> {
        self.0.local_addr().map_err(InheritedError::NotTcp)
    }

    pub(in crate::server) fn listen(self) -> io::Result<TcpListener> {
        self.0.set_nonblocking(true)?;
        TcpListener::from_std(self.0)
    }
}
