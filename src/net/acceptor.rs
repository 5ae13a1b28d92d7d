//! Taking connections from the kernel, also when file descriptors run out.

use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Write};
use std::net::IpAddr;
use std::task::Poll;
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::{TcpListener, TcpStream};
use tracing::{info, warn};

/// How long to leave the kernel alone after it could not give a connection.
const BACK_OFF: Duration = Duration::from_millis(100);

/// More than any backlog holds: taking it over ends even if connections keep coming.
const BACKLOG_MAX: usize = 8_192;

/// A listener that survives whatever `accept` answers.
pub(super) struct Acceptor {
    listener: TcpListener,
    /// Given up for a moment when no descriptor is left: without one a connection cannot even be refused, and its
    /// caller would wait in the backlog until it gives up.
    spare_descriptor: Option<File>,
    /// So that a shortage is logged when it begins and ends, not for each connection.
    is_short: bool,
    /// What a caller gets for whom there is no descriptor.
    refusal: &'static [u8],
}

/// What came in.
pub(super) enum Arrival {
    /// A connection to serve.
    Connection(TcpStream, IpAddr),
    /// A connection on the spare descriptor, answered already: to be closed at once.
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

    /// The next connection. Errors are waited out; dropping the future loses nothing.
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
                warn!("cannot accept connections: {error}");
            }
            if is_out_of_descriptors(&error)
                && let Some(refused) = self.refuse_with_spare().await
            {
                return Arrival::Refused(refused);
            }
            tokio::time::sleep(BACK_OFF).await;
        }
    }

    /// Accepts whatever waits in the backlog now.
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
        // It does not block, and fits into the send buffer of any new connection.
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
