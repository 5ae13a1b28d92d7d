//! A connection that sends several requests at once, and then receives their responses.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use idmint_testing::http1::{AnswerEnd, AnswerParser};

/// The maximum number of bytes that one read returns.
const BUFFER_LEN: usize = 256 * 1024;

pub(super) struct Connection {
    stream: TcpStream,
    parser: AnswerParser,
    /// The bytes that were read but not parsed yet, which are a part of a response head.
    kept: Vec<u8>,
    /// The number of request bytes that were not sent yet.
    unsent: usize,
    /// The number of responses that have not been received yet.
    pub(super) awaited: usize,
    /// The time at which the pending requests were sent, or should have been sent.
    pub(super) due: Instant,
}

impl Connection {
    pub(super) fn to(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            parser: AnswerParser::new(),
            kept: Vec::new(),
            unsent: 0,
            awaited: 0,
            due: Instant::now(),
        })
    }

    /// Sends `requests`, which contain `count` requests that were due at `due`. Returns `true` if
    /// all bytes were sent.
    pub(super) fn send(&mut self, requests: &[u8], count: usize, due: Instant) -> io::Result<bool> {
        (self.unsent, self.awaited, self.due) = (requests.len(), count, due);
        self.send_rest(requests)
    }

    /// Sends the bytes of the requests that were not sent yet. Returns `true` if all bytes are sent
    /// now.
    pub(super) fn send_rest(&mut self, requests: &[u8]) -> io::Result<bool> {
        while self.unsent > 0 {
            match self.stream.write(&requests[requests.len() - self.unsent..]) {
                Ok(sent) => self.unsent -= sent,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Reads once, and passes each response that is complete now to `each`.
    pub(super) fn receive(
        &mut self,
        buffer: &mut Buffer,
        mut each: impl FnMut(AnswerEnd),
    ) -> io::Result<()> {
        let bytes = buffer.0.as_mut_slice();
        let kept = self.kept.len();
        bytes[..kept].copy_from_slice(&self.kept);
        let read = match self.stream.read(&mut bytes[kept..]) {
            Ok(0) => {
                return Err(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "the server closed the connection",
                ));
            }
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut rest = &bytes[..kept + read];
        loop {
            let (taken, answer) = self.parser.parse(rest, |_| {}).map_err(io::Error::other)?;
            rest = &rest[taken..];
            let Some(answer) = answer else { break };
            self.awaited = self
                .awaited
                .checked_sub(1)
                .ok_or_else(|| io::Error::other("an answer to nothing"))?;
            each(answer);
        }
        self.kept.clear();
        self.kept.extend_from_slice(rest);
        Ok(())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// The read buffer that all connections share.
pub(super) struct Buffer(Vec<u8>);

impl Buffer {
    pub(super) fn new() -> Self {
        Self(vec![0; BUFFER_LEN])
    }
}
