//! Clients that read while a benchmark mints: one scrapes the metrics, and one lists the ledgers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use idmint_testing::http1::{Client, request};

/// The pause between two rounds of requests of these clients.
const BETWEEN: Duration = Duration::from_millis(20);

const READ: [&str; 2] = ["GET /metrics", "GET /ledgers"];

/// A thread that reads until [`Readers::end`] stops it.
pub(crate) struct Readers {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<u32>>,
}

impl Readers {
    /// Starts to read from `address`.
    ///
    /// # Errors
    /// Returns an error if no server accepts the connection.
    pub(crate) fn start(address: SocketAddr) -> io::Result<Self> {
        let (is_over, mut client) = (
            Arc::new(AtomicBool::new(false)),
            Client::try_connect(address)?,
        );
        let told = Arc::clone(&is_over);
        let read = move || {
            let mut answers = 0;
            while !told.load(Ordering::Relaxed) {
                for what in READ {
                    let answer = client
                        .try_exchange(request(what, "", ""))
                        .map_err(io::Error::other)?;
                    // Accept a status such as 404, because other servers do not have this page.
                    if answer.status >= 500 {
                        return Err(io::Error::other(format!("{what}: {}", answer.head)));
                    }
                    answers += 1;
                }
                thread::sleep(BETWEEN);
            }
            Ok(answers)
        };
        Ok(Self {
            is_over,
            thread: thread::spawn(read),
        })
    }

    /// Stops the thread.
    ///
    /// # Errors
    /// Returns an error if a response was invalid, or if no response arrived.
    pub(crate) fn end(self) -> io::Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        match self.thread.join().expect("it does not panic")? {
            0 => Err(io::Error::other("nothing was read meanwhile")),
            _ => Ok(()),
        }
    }
}
