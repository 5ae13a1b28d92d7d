//! The listening socket that this process inherits from its parent process (socket activation,
//! `sd_listen_fds(3)`).
//!
//! The parent process, such as systemd, keeps the socket open while the service restarts, so no
//! connection is refused.

use std::io;
use std::net::{self, SocketAddr};

use listenfd::ListenFd;
use tokio::net::TcpListener;

/// A TCP socket that another process has opened and keeps open.
#[derive(Debug)]
pub struct InheritedSocket(net::TcpListener);

/// The reason why the inherited sockets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InheritedError {
    /// Several sockets were inherited, but only one address is supported.
    #[error(
        "LISTEN_FDS hands over {count} sockets, but only one can be served: keep one ListenStream in the socket unit"
    )]
    Several {
        /// The number of inherited sockets.
        count: usize,
    },
    /// The socket is not a listening TCP socket.
    #[error(
        "LISTEN_FDS does not hand over a listening TCP socket: use ListenStream with an IP address and a port"
    )]
    NotTcp(#[source] io::Error),
}

impl InheritedSocket {
    /// Takes the inherited socket that the environment variables `LISTEN_FDS` and `LISTEN_PID`
    /// describe, and removes these variables. Returns `None` if they are not set.
    ///
    /// Call this function before any thread is started, because another thread could read the
    /// environment variables while they are removed.
    ///
    /// # Errors
    /// Returns [`InheritedError`] if several sockets were passed, or the socket is not a TCP
    /// listener.
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

    /// Returns the address at which the socket listens.
    ///
    /// # Errors
    /// Returns [`InheritedError::NotTcp`] if the socket has no IP address.
    pub fn address(&self) -> Result<SocketAddr, InheritedError> {
        self.0.local_addr().map_err(InheritedError::NotTcp)
    }

    pub(in crate::server) fn listen(self) -> io::Result<TcpListener> {
        self.0.set_nonblocking(true)?;
        TcpListener::from_std(self.0)
    }
}
