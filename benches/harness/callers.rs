//! Callers over kept-alive connections: they ask on all of them before they read the answers.

use std::borrow::Cow;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// How many connections there are unless it is said otherwise.
pub(crate) const CONNECTIONS: usize = 16;

/// Connections that ask at the same time.
pub(crate) struct Callers {
    streams: Vec<TcpStream>,
    request: String,
    answer: Vec<u8>,
}

impl Callers {
    pub(crate) fn to(address: SocketAddr, request: &str) -> Self {
        Self::sending(address, request, "accept: */*\r\n", "")
    }

    pub(crate) fn sending(address: SocketAddr, request: &str, headers: &str, body: &str) -> Self {
        let request = format!("{request} HTTP/1.1\r\nhost: bench\r\n{headers}\r\n{body}");
        Self { request, ..Self::on(address, CONNECTIONS) }
    }

    /// So many connections, each to be asked on with [`Callers::ask_each`].
    pub(crate) fn on(address: SocketAddr, connections: usize) -> Self {
        let connect = |_| {
            let stream = TcpStream::connect(address).expect("it listens");
            stream.set_nodelay(true).expect("a socket");
            stream
        };
        Self { streams: (0..connections).map(connect).collect(), request: String::new(), answer: vec![0; 256 * 1024] }
    }

    pub(crate) fn ask_once(mut self) -> String {
        self.streams.truncate(1);
        let len = self.ask_all();
        String::from_utf8_lossy(&self.answer[..len]).into_owned()
    }

    /// Asks on every connection, then reads the answers; the length of the last one is returned.
    pub(crate) fn ask_all(&mut self) -> usize {
        let request = std::mem::take(&mut self.request);
        let len = self.ask_each(|_| request.as_bytes().into());
        self.request = request;
        len
    }

    /// The same with a request of its own on each connection.
    pub(crate) fn ask_each<'a>(&mut self, request: impl Fn(usize) -> Cow<'a, [u8]>) -> usize {
        for (at, stream) in self.streams.iter_mut().enumerate() {
            stream.write_all(&request(at)).expect("kept alive");
        }
        let mut len = 0;
        for stream in &mut self.streams {
            len = read_answer(stream, &mut self.answer);
        }
        len
    }
}

/// What ends a body of chunks.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// Reads one answer, which must be 200 or 201, and says how much of it was kept: all, head and body, unless it came in chunks.
fn read_answer(stream: &mut TcpStream, answer: &mut [u8]) -> usize {
    let mut len = 0;
    let mut whole = None;
    while whole.is_none_or(|whole| len < whole) {
        let more = stream.read(&mut answer[len..]).expect("kept alive");
        assert!(more > 0, "closed in the middle of an answer");
        len += more;
        if whole.is_none()
            && let Some(head_len) = head_len(&answer[..len])
        {
            match whole_len(&answer[..head_len]) {
                Some(len) => whole = Some(len),
                None => return read_chunks(stream, answer, len),
            }
        }
    }
    len
}

/// Reads to the last chunk over what is there, of which only the end is kept.
fn read_chunks(stream: &mut TcpStream, answer: &mut [u8], mut len: usize) -> usize {
    while !answer[..len].ends_with(LAST_CHUNK) {
        let kept = len.min(LAST_CHUNK.len());
        answer.copy_within(len - kept..len, 0);
        let more = stream.read(&mut answer[kept..]).expect("kept alive");
        assert!(more > 0, "closed in the middle of an answer");
        len = kept + more;
    }
    len
}

/// The length of the head, once it is there.
fn head_len(answer: &[u8]) -> Option<usize> {
    Some(answer.windows(4).position(|window| window == b"\r\n\r\n")? + 4)
}

/// The length of head and body, if the head says it.
fn whole_len(head: &[u8]) -> Option<usize> {
    let text = str::from_utf8(head).expect("heads are ASCII");
    assert!(text.starts_with("HTTP/1.1 20"), "{text}");
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    Some(head.len() + length.parse::<usize>().expect("a number"))
}
