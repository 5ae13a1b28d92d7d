//! A blocking client for HTTP/1.1.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use super::receiver::Receiver;
use super::{Answer, AnswerEnd, ReceiveError};

/// The maximum wait for the next bytes, which is long enough even on a slow machine.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// The byte stream of a connection: a socket, or a protocol such as TLS over a socket.
pub trait Wire: Read + Write {
    fn socket(&self) -> &TcpStream;
}

impl Wire for StreamOwned<ClientConnection, TcpStream> {
    fn socket(&self) -> &TcpStream {
        &self.sock
    }
}

impl Wire for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl<W: Wire + ?Sized> Wire for Box<W> {
    fn socket(&self) -> &TcpStream {
        (**self).socket()
    }
}

/// A connection that can be used for several requests.
pub struct Client<W = TcpStream> {
    wire: W,
    receiver: Receiver,
}

impl Client {
    /// Connects to a server.
    ///
    /// # Panics
    /// Panics if no server listens on `address`.
    pub fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address)
            .unwrap_or_else(|error| panic!("{address} does not accept connections: {error}"))
    }

    /// Connects to a server.
    ///
    /// # Errors
    /// Returns an error if no server listens on `address`.
    pub fn try_connect(address: SocketAddr) -> io::Result<Self> {
        Self::over(TcpStream::connect(address)?)
    }

    /// Connects to a server, and waits at most `timeout`.
    ///
    /// # Errors
    /// Returns an error if the connection is not established in time.
    pub fn try_connect_within(address: SocketAddr, timeout: Duration) -> io::Result<Self> {
        Self::over(TcpStream::connect_timeout(&address, timeout)?)
    }
}

impl<W: Wire> Client<W> {
    /// Creates a client that uses an established connection.
    ///
    /// # Errors
    /// Returns an error if the connection is already closed.
    pub fn over(wire: W) -> io::Result<Self> {
        wire.socket().set_nodelay(true)?;
        wire.socket().set_read_timeout(Some(READ_TIMEOUT))?;
        Ok(Self {
            wire,
            receiver: Receiver::new(),
        })
    }

    /// Sends bytes. The bytes need not be a valid request. A closed connection is noticed only when
    /// a response is received.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.wire.write_all(bytes.as_ref());
    }

    /// Sends a request and receives its response.
    ///
    /// # Panics
    /// Panics if the response is incomplete.
    pub fn exchange(&mut self, request: impl AsRef<[u8]>) -> Answer {
        self.try_exchange(request).expect("a whole answer")
    }

    /// Sends a request and receives its response.
    ///
    /// # Errors
    /// Returns [`ReceiveError`] if the response is incomplete.
    pub fn try_exchange(&mut self, request: impl AsRef<[u8]>) -> Result<Answer, ReceiveError> {
        self.send(request);
        self.try_receive()
    }

    /// Receives the response to the oldest request that has not been answered yet.
    ///
    /// # Panics
    /// Panics if the response is incomplete.
    pub fn receive(&mut self) -> Answer {
        self.try_receive().expect("a whole answer")
    }

    /// Receives the response to the oldest request that has not been answered yet.
    ///
    /// # Errors
    /// Returns [`ReceiveError`] if the response is incomplete.
    pub fn try_receive(&mut self) -> Result<Answer, ReceiveError> {
        self.receive_until(Receiver::next_answer)
    }

    /// Receives a response as [`Client::try_receive`] does, but returns [`ReceiveError::TimedOut`]
    /// if no bytes arrive for `timeout`.
    pub fn try_receive_within(&mut self, timeout: Duration) -> Result<Answer, ReceiveError> {
        self.wire
            .socket()
            .set_read_timeout(Some(timeout))
            .expect("longer than nothing");
        let received = self.try_receive();
        self.wire
            .socket()
            .set_read_timeout(Some(READ_TIMEOUT))
            .expect("longer than nothing");
        received
    }

    /// Waits until the first byte of a response arrives, but does not read it.
    pub fn wait_for_first_byte(&self) {
        assert_eq!(
            self.wire.socket().peek(&mut [0]).expect("something comes"),
            1,
            "closed before an answer"
        );
    }

    /// Receives a response without keeping it. This method is the fastest way to receive a
    /// response.
    ///
    /// # Panics
    /// Panics if the response is incomplete.
    pub fn skip(&mut self) -> AnswerEnd {
        self.receive_until(Receiver::skip_answer)
            .expect("a whole answer")
    }

    /// Reads from the connection until `next` returns a result from the bytes that have arrived.
    fn receive_until<T>(
        &mut self,
        next: impl Fn(&mut Receiver) -> Result<Option<T>, ReceiveError>,
    ) -> Result<T, ReceiveError> {
        loop {
            if let Some(found) = next(&mut self.receiver)? {
                return Ok(found);
            }
            match self.wire.read(self.receiver.space()) {
                Ok(0) => return Err(self.receiver.closed()),
                Ok(len) => self.receiver.filled(len),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Err(ReceiveError::TimedOut);
                }
                Err(_) => return Err(self.receiver.closed()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;
    use crate::http1::{read_request, request};

    /// Starts a server for a single connection. The server answers each request with the next one
    /// of these responses, and then closes the connection.
    fn serve(answers: &'static [&'static str]) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a client");
            let mut input = io::BufReader::new(&stream);
            for answer in answers {
                read_request(&mut input).expect("a request");
                (&stream)
                    .write_all(answer.as_bytes())
                    .expect("the client listens");
            }
        });
        Client::connect(address)
    }

    #[test]
    fn a_connection_serves_one_request_after_the_other() {
        let mut client = serve(&[
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfirst",
            "HTTP/1.1 201 Created\r\nx-a: b\r\ntransfer-encoding: chunked\r\n\r\n6\r\nsecond\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nthird",
        ]);
        assert_eq!(client.exchange(request("GET /", "", "")).text(), "first");
        let second = client.exchange(request("POST /", "", "a body"));
        assert_eq!(
            (second.status, second.header("X-A"), second.text().as_str()),
            (201, Some("b"), "second")
        );
        client.send(request("GET /", "", ""));
        assert_eq!(
            client.skip(),
            AnswerEnd {
                status: 200,
                body_len: 5
            }
        );
    }

    #[test]
    fn of_an_answer_that_is_cut_one_learns_what_had_come() {
        let mut client = serve(&["HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhalf"]);
        let Err(ReceiveError::Closed(Some(part))) = client.try_exchange(request("GET /", "", ""))
        else {
            panic!("it was cut within its body");
        };
        assert_eq!((part.status, part.text().as_str()), (200, "half"));
        assert!(
            matches!(client.try_receive(), Err(ReceiveError::Closed(None))),
            "nothing more comes"
        );
    }

    #[test]
    fn an_answer_that_is_late_can_still_be_received() {
        let mut client = serve(&["HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlate"]);
        let early = client.try_receive_within(Duration::from_millis(5));
        assert!(matches!(early, Err(ReceiveError::TimedOut)), "{early:?}");
        assert_eq!(client.exchange(request("GET /", "", "")).text(), "late");
    }
}
