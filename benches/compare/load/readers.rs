//! Those who look while others mint: a scraper, and a caller who lists ledgers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::harness::http1::{Client, request};

/// How long they wait between two rounds of reading.
const BETWEEN: Duration = Duration::from_millis(20);

const READ: [&str; 2] = ["GET /metrics", "GET /ledgers"];

/// A thread that reads until it is told to end.
pub(crate) struct Readers {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<u32>>,
}

impl Readers {
    /// # Errors
    /// When nobody takes the connection.
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
                    // A rival may have no such page.
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

    /// Ends it.
    ///
    /// # Errors
    /// When an answer was none, or there was none at all.
    pub(crate) fn end(self) -> io::Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        match self.thread.join().expect("it does not panic")? {
            0 => Err(io::Error::other("nothing was read meanwhile")),
            _ => Ok(()),
        }
    }
}
