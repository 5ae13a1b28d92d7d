//! An asynchronous client, for tests that run on the same thread as the server.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Answer;
use super::receiver::Receiver;

/// The maximum wait for the next bytes, which is long enough even on a slow machine.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection that can be used for several requests.
pub struct AsyncClient {
    /// The stream itself, for tests that send something other than HTTP/1.1.
    pub stream: TcpStream,
    receiver: Receiver,
}

impl AsyncClient {
    /// Connects to a server.
    ///
    /// # Panics
    /// Panics if no server listens on `address`.
    pub async fn connect(address: SocketAddr) -> Self {
        Self::over(
            TcpStream::connect(address)
                .await
                .expect("the server accepts connections"),
        )
    }

    /// Creates a client that uses an open connection.
    pub fn over(stream: TcpStream) -> Self {
        Self {
            stream,
            receiver: Receiver::new(),
        }
    }

    /// Sends bytes. The bytes need not be a valid request.
    ///
    /// # Panics
    /// Panics if the connection is closed.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream
            .write_all(bytes.as_ref())
            .await
            .expect("the server reads");
    }

    /// Sends a request and receives its response.
    ///
    /// # Panics
    /// Panics if the response is incomplete.
    pub async fn exchange(&mut self, request: impl AsRef<[u8]>) -> Answer {
        self.send(request).await;
        self.receive().await
    }

    /// Receives the response to the oldest request that has not been answered yet.
    ///
    /// # Panics
    /// Panics if the response is incomplete.
    pub async fn receive(&mut self) -> Answer {
        loop {
            if let Some(answer) = self.receiver.next_answer().expect("an answer") {
                return answer;
            }
            if !self.read().await {
                panic!(
                    "closed before the end of an answer: {:?}",
                    self.receiver.closed()
                );
            }
        }
    }

    /// Waits until the server closes the connection. Returns everything that has arrived as text.
    pub async fn read_to_close(&mut self) -> String {
        let mut all = self.receiver.take_unread();
        while self.read().await {
            all.append(&mut self.receiver.take_unread());
        }
        String::from_utf8_lossy(&all).into_owned()
    }

    /// Reads bytes into the receiver. Returns `false` if the server has closed the connection.
    async fn read(&mut self) -> bool {
        let read = timeout(READ_TIMEOUT, self.stream.read(self.receiver.space())).await;
        let len = read
            .expect("something should have come long ago")
            .unwrap_or(0);
        self.receiver.filled(len);
        len > 0
    }
}
