//! A connection of an attacker, which sends arbitrary bytes and counts the server's reactions.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::aim::{Aim, Deeds};
use idmint_testing::http1::AnswerParser;

/// The time that an attacker waits before it reconnects, after its connection was closed or
/// refused. Without this wait, the service would get more load than the control, which is attacked
/// for comparison and never closes a connection.
pub(super) const COME_AGAIN: Duration = Duration::from_secs(1);

/// Length of the read buffer in bytes.
pub(super) const READ_LEN: usize = 16 * 1024;

/// The byte stream of an attacker, with or without TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

pub(crate) struct Attacker {
    pub(super) stream: Box<dyn Stream>,
    pub(super) deeds: Arc<Deeds>,
    /// The bytes that were received but not parsed yet.
    pub(super) unread: Vec<u8>,
    parser: AnswerParser,
}

impl Attacker {
    /// Connects from the source address of attacker `number`. Retries until the server accepts the
    /// connection.
    pub(crate) async fn connect(aim: &Aim, number: usize) -> Attacker {
        Attacker::connect_with(aim, number, None).await
    }

    /// Connects like [`Attacker::connect`], with a receive buffer of `receive_len` bytes. The
    /// kernel then takes at most that much of a response from the server.
    pub(crate) async fn connect_with(
        aim: &Aim,
        number: usize,
        receive_len: Option<u32>,
    ) -> Attacker {
        loop {
            let socket = TcpSocket::new_v4().expect("this program has descriptors left");
            receive_len
                .into_iter()
                .for_each(|len| socket.set_recv_buffer_size(len).expect("it can be small"));
            let connected = async {
                match socket.bind(aim.source(number)) {
                    Ok(()) => socket.connect(aim.address).await,
                    // All ports of this address are in use by connections that were closed within
                    // the last minute.
                    Err(error) if error.kind() == ErrorKind::AddrInUse => Err(error),
                    Err(error) => panic!("all of 127.0.0.0/8 is this machine: {error}"),
                }
            };
            match timeout(Duration::from_secs(5), connected).await {
                Ok(Ok(stream)) => {
                    aim.deeds.opened();
                    let deeds = Arc::clone(&aim.deeds);
                    let stream = Box::new(stream);
                    return Attacker {
                        stream,
                        deeds,
                        unread: Vec::new(),
                        parser: AnswerParser::new(),
                    };
                }
                _ => aim.deeds.not_connected.add(1),
            };
            sleep(COME_AGAIN).await;
        }
    }

    /// Connects like [`Attacker::connect`], with TLS if the service speaks TLS.
    pub(super) async fn connect_encrypted(aim: &Aim, number: usize) -> Attacker {
        Attacker::connect_encrypted_with(aim, number, None).await
    }

    /// Connects like [`Attacker::connect_encrypted`], with a receive buffer of `receive_len` bytes.
    pub(super) async fn connect_encrypted_with(
        aim: &Aim,
        number: usize,
        receive_len: Option<u32>,
    ) -> Attacker {
        let Some(encryption) = &aim.encryption else {
            return Attacker::connect_with(aim, number, receive_len).await;
        };
        loop {
            let mut attacker = Attacker::connect_with(aim, number, receive_len).await;
            let connector = TlsConnector::from(Arc::clone(encryption));
            let plain = std::mem::replace(&mut attacker.stream, Box::new(tokio::io::empty()));
            if let Ok(stream) = connector
                .connect(ServerName::try_from("localhost").expect("a name"), plain)
                .await
            {
                attacker.stream = Box::new(stream);
                return attacker;
            }
            attacker.deeds.cut.add(1);
            sleep(COME_AGAIN).await;
        }
    }

    /// Sends these bytes. Returns `false` if the server has closed the connection.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> bool {
        let mut left = bytes;
        while !left.is_empty() {
            match self.stream.write(left).await {
                Ok(taken) if taken > 0 => {
                    self.deeds.bytes.add(taken);
                    left = &left[taken..];
                }
                _ => {
                    self.deeds.cut.add(1);
                    return false;
                }
            }
        }
        // Flush, because the TLS stream may still hold a part of the bytes in its buffer.
        self.stream.flush().await.is_ok()
    }

    /// Returns the status of the next HTTP/1 response, or `None` if the server closes the
    /// connection first.
    pub(crate) async fn next_status(&mut self) -> Option<u16> {
        let mut buffer = vec![0; READ_LEN];
        loop {
            let (used, end) = self
                .parser
                .parse(&self.unread, |_| {})
                .expect("every answer is one of HTTP/1.1");
            self.unread.drain(..used);
            if let Some(end) = end {
                self.deeds.answered(end.status);
                return Some(end.status);
            }
            let Ok(len @ 1..) = self.stream.read(&mut buffer).await else {
                self.deeds.cut.add(1);
                return None;
            };
            self.deeds.received.add(len);
            self.unread.extend_from_slice(&buffer[..len]);
        }
    }

    /// Reads responses until the server closes the connection.
    pub(crate) async fn read_answers(&mut self) {
        while self.next_status().await.is_some() {}
    }

    /// Closes the sending direction of the connection. The attacker can still receive.
    pub(crate) async fn close_half(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Waits forever without reading.
    pub(crate) async fn hold(&mut self) {
        std::future::pending().await
    }

    /// Reads and discards bytes until the server closes the connection.
    pub(crate) async fn hold_until_cut(&mut self) {
        let mut buffer = vec![0; READ_LEN];
        while let Ok(1..) = self.stream.read(&mut buffer).await {}
        self.deeds.cut.add(1);
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.deeds.closed();
    }
}
