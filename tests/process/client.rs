//! A caller on one connection that knows exactly what came: whole answers, and how much of a cut one.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::service::LONG;

/// One connection, byte by byte.
pub(crate) struct Caller {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// An answer that came whole: as many bytes as its Content-Length says.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// The connection ended before the answer did. This much of the body had come.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Caller {
    pub(crate) fn connect(address: SocketAddr) -> Caller {
        Caller::try_connect(address).expect("the service accepts connections")
    }

    /// `None` when nobody listens any more.
    pub(crate) fn try_connect(address: SocketAddr) -> Option<Caller> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Some(Caller { stream, unread: Vec::new() })
    }

    /// Ids are asked for as plain text, one a line.
    pub(crate) fn ask(&mut self, method: &str, target: &str) -> Result<Answer, Cut> {
        self.send(format!("{method} {target} HTTP/1.1\r\nhost: test\r\naccept: text/plain, */*;q=0.5\r\n\r\n"));
        self.answer()
    }

    /// Sends this JSON; `headers` are whole lines.
    pub(crate) fn post(&mut self, target: &str, headers: &str, json: &str) -> Result<Answer, Cut> {
        let len = json.len();
        let fixed = format!("host: test\r\ncontent-type: application/json\r\ncontent-length: {len}\r\n");
        self.send(format!("POST {target} HTTP/1.1\r\n{fixed}{headers}\r\n{json}"));
        self.answer()
    }

    /// Sends bytes; that nobody takes them shows when the answer is read.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref());
    }

    pub(crate) fn answer(&mut self) -> Result<Answer, Cut> {
        let head_len = loop {
            if let Some(at) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if !self.read_more() {
                return Err(Cut { body: Vec::new() });
            }
        };
        let head = String::from_utf8(self.unread.drain(..head_len).collect()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let Some(len) = header(&head, "content-length") else {
            assert_eq!(header(&head, "transfer-encoding"), Some("chunked"), "{head}");
            return Ok(Answer { status, head, body: self.chunks()? });
        };
        let len = len.parse().unwrap();
        while self.unread.len() < len {
            if !self.read_more() {
                return Err(Cut { body: if status == 200 { self.unread.clone() } else { Vec::new() } });
            }
        }
        Ok(Answer { status, head, body: self.unread.drain(..len).collect() })
    }

    /// A body of unknown length, up to the empty chunk that ends it.
    fn chunks(&mut self) -> Result<Vec<u8>, Cut> {
        let mut body = Vec::new();
        loop {
            let size = self.unread.windows(2).position(|window| window == b"\r\n").map(|end| {
                let digits = str::from_utf8(&self.unread[..end]).unwrap();
                (end + 2, usize::from_str_radix(digits, 16).unwrap())
            });
            match size {
                Some((start, len)) if self.unread.len() >= start + len + 2 => {
                    body.extend_from_slice(&self.unread[start..start + len]);
                    self.unread.drain(..start + len + 2);
                    if len == 0 {
                        return Ok(body);
                    }
                }
                _ if self.read_more() => {}
                _ => return Err(Cut { body }),
            }
        }
    }

    /// False once the service has closed, or is gone.
    pub(crate) fn read_more(&mut self) -> bool {
        let mut buf = [0; 64 * 1024];
        match self.stream.read(&mut buf) {
            Ok(len) => {
                self.unread.extend_from_slice(&buf[..len]);
                len > 0
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("no answer for {LONG:?}")
            }
            Err(_) => false,
        }
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    lines.find_map(|(given, value)| given.eq_ignore_ascii_case(name).then_some(value))
}
