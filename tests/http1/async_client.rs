//! The client for tests that share a thread with the server.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Answer;
use super::receiver::Receiver;

/// How long nothing may come before it counts as never, on however slow a machine.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// One connection, kept alive.
pub(crate) struct AsyncClient {
    /// For what is no HTTP/1.1.
    pub(crate) stream: TcpStream,
    receiver: Receiver,
}

impl AsyncClient {
    /// # Panics
    /// When nobody listens.
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address)
            .await
            .expect("the server accepts connections");
        Self {
            stream,
            receiver: Receiver::new(),
        }
    }

    /// Sends any bytes.
    ///
    /// # Panics
    /// When nobody takes them.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream
            .write_all(bytes.as_ref())
            .await
            .expect("the server reads");
    }

    /// Sends a request and receives its answer.
    ///
    /// # Panics
    /// When no whole answer comes.
    pub(crate) async fn exchange(&mut self, request: impl AsRef<[u8]>) -> Answer {
        self.send(request).await;
        self.receive().await
    }

    /// The answer to the oldest request that has none.
    ///
    /// # Panics
    /// When no whole answer comes.
    pub(crate) async fn receive(&mut self) -> Answer {
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

    /// Everything up to the close, which must come, as text.
    pub(crate) async fn read_to_close(&mut self) -> String {
        let mut all = self.receiver.take_unread();
        while self.read().await {
            all.append(&mut self.receiver.take_unread());
        }
        String::from_utf8_lossy(&all).into_owned()
    }

    /// False once the server has closed.
    async fn read(&mut self) -> bool {
        let read = timeout(READ_TIMEOUT, self.stream.read(self.receiver.space())).await;
        let len = read
            .expect("something should have come long ago")
            .unwrap_or(0);
        self.receiver.filled(len);
        len > 0
    }
}
