//! Accepts connections from the kernel, even when file descriptors run out.

use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Write};
use std::net::IpAddr;
use std::task::Poll;
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::{TcpListener, TcpStream};
use tracing::{info, warn};

/// The pause after a failed `accept`, before the next attempt.
const BACK_OFF: Duration = Duration::from_millis(100);

/// The maximum number of connections that a shutdown still accepts from the kernel's backlog. Real
/// backlogs are shorter. Without a maximum, the loop would not end while new connections keep
/// arriving.
const BACKLOG_MAX: usize = 8_192;

/// A listener that keeps accepting after any error of `accept`.
pub(super) struct Acceptor {
    listener: TcpListener,
    /// A file that is kept open only to hold a spare descriptor. When no other descriptor is left,
    /// the file is closed for a moment, so that one connection can be accepted and refused. Without
    /// the spare descriptor, the caller of that connection would wait in the backlog until it timed
    /// out.
    spare_descriptor: Option<File>,
    /// `true` while `accept` keeps failing. With this flag, a shortage of file descriptors is
    /// logged once when it begins and once when it ends, not for each connection.
    is_short: bool,
    /// The response to a connection that is refused because only the spare file descriptor is left.
    refusal: &'static [u8],
}

/// The outcome of one `accept`.
pub(super) enum Arrival {
    /// A connection to serve.
    Connection(TcpStream, IpAddr),
    /// A connection that was refused because only the spare file descriptor was left. The refusal
    /// is already written. The caller of `next` must close the connection at once to free the
    /// descriptor.
    Refused(std::net::TcpStream),
}

impl Acceptor {
    pub(super) fn new(listener: TcpListener, refusal: &'static [u8]) -> Self {
        Self {
            listener,
            spare_descriptor: open_spare(),
            is_short: false,
            refusal,
        }
    }

    /// Returns the next connection. If no file descriptor is left for the connection, refuses it
    /// with the spare descriptor, and returns [`Arrival::Refused`] without a pause.
    ///
    /// Ignores errors that concern only one connection. After any other error, or if a connection
    /// cannot be refused with the spare descriptor, pauses and retries. This method is cancel safe.
    pub(super) async fn next(&mut self) -> Arrival {
        loop {
            if self.spare_descriptor.is_none() {
                self.spare_descriptor = open_spare();
            }
            let error = match self.listener.accept().await {
                Ok((stream, peer)) => {
                    if std::mem::take(&mut self.is_short) {
                        info!("accepting connections again");
                    }
                    return Arrival::Connection(stream, peer.ip());
                }
                Err(error) => error,
            };
            if concerns_one_connection(&error) {
                continue;
            }
            if !std::mem::replace(&mut self.is_short, true) {
                warn!("cannot accept connections, but keeps trying: {error}");
            }
            if is_out_of_descriptors(&error)
                && let Some(refused) = self.refuse_with_spare().await
            {
                return Arrival::Refused(refused);
            }
            tokio::time::sleep(BACK_OFF).await;
        }
    }

    /// Accepts up to `BACKLOG_MAX` connections: those that wait in the kernel's backlog, and those
    /// that arrive meanwhile. Stops early if a connection cannot be accepted.
    pub(super) async fn accept_backlog(&mut self) -> Vec<(TcpStream, IpAddr)> {
        let mut waiting = Vec::new();
        while waiting.len() < BACKLOG_MAX
            && let Some(arrived) = self.accept_now().await
        {
            waiting.push(arrived);
        }
        waiting
    }

    async fn refuse_with_spare(&mut self) -> Option<std::net::TcpStream> {
        drop(self.spare_descriptor.take()?);
        let (stream, _) = self.accept_now().await?;
        let mut stream = stream.into_std().ok()?;
        // The write does not block, because the refusal fits into the send buffer of any new
        // connection.
        let _ = stream.write(self.refusal);
        Some(stream)
    }

    async fn accept_now(&self) -> Option<(TcpStream, IpAddr)> {
        poll_fn(|context| match self.listener.poll_accept(context) {
            Poll::Ready(Ok((stream, peer))) => Poll::Ready(Some((stream, peer.ip()))),
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Ready(None),
        })
        .await
    }
}

fn open_spare() -> Option<File> {
    File::open("/dev/null").ok()
}

fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
