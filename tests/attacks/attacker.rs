//! One connection of an attacker: it sends what it likes, and counts what comes of it.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::aim::{Aim, Deeds};
use crate::http1::AnswerParser;

/// How long an attacker waits, once its connection was ended or not taken, before it comes again: it is to offer the
/// service no more than the control, which ends none.
pub(super) const COME_AGAIN: Duration = Duration::from_secs(1);

/// How much is read at once.
pub(super) const READ_LEN: usize = 16 * 1024;

/// What an attacker sends on.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

pub(crate) struct Attacker {
    pub(super) stream: Box<dyn Stream>,
    pub(super) deeds: Arc<Deeds>,
    /// What has begun to come, and is not parsed.
    pub(super) unread: Vec<u8>,
    parser: AnswerParser,
}

impl Attacker {
    /// A connection from the address of this number, as soon as one is taken.
    pub(crate) async fn connect(aim: &Aim, number: usize) -> Attacker {
        Attacker::connect_with(aim, number, None).await
    }

    /// The same with a receive buffer of this size, which bounds what the kernel takes of an answer.
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
                    // The ports of one address are used up, by connections that were closed within the last minute.
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

    /// The same, encrypted where the service speaks TLS.
    pub(super) async fn connect_encrypted(aim: &Aim, number: usize) -> Attacker {
        Attacker::connect_encrypted_with(aim, number, None).await
    }

    /// The same with a receive buffer of this size.
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

    /// Sends these bytes; false once the other side has ended the connection.
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
        // Of what is encrypted some may be left here.
        self.stream.flush().await.is_ok()
    }

    /// The status of the next answer of HTTP/1; `None` if the other side ends the connection before.
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

    /// Reads answers until the other side ends the connection.
    pub(crate) async fn read_answers(&mut self) {
        while self.next_status().await.is_some() {}
    }

    /// Closes the sending half.
    pub(crate) async fn close_half(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Waits, and reads nothing, for ever.
    pub(crate) async fn hold(&mut self) {
        std::future::pending().await
    }

    /// Waits until the other side ends the connection, and reads away what comes.
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
