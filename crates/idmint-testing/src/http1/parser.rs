//! Finds the heads, bodies and ends of HTTP/1.1 responses in a stream of bytes. The parser does no
//! I/O and does not store bodies.

use std::io::BufRead;

/// A part of a response. Parts are reported in the order of the stream.
pub enum Piece<'a> {
    /// The text from the status line to the empty line, including both.
    Head { status: u16, text: &'a str },
    /// The next bytes of the body, without the framing of chunks.
    Body(&'a [u8]),
}

/// The status and the body length of a response, reported when its last byte was parsed.
#[derive(Debug, PartialEq, Eq)]
pub struct AnswerEnd {
    pub status: u16,
    pub body_len: u64,
}

/// Parses responses that follow one another. Responses to HEAD requests are not supported, because
/// they announce a body but have none.
pub struct AnswerParser {
    state: State,
    status: u16,
    body_len: u64,
}

/// The part of a response that the parser expects next.
enum State {
    Head,
    /// The rest of a body with a Content-Length. The value is the number of bytes that are missing.
    Body(usize),
    /// The line that contains the length of the next chunk.
    ChunkLen,
    /// The rest of a chunk. The value is the number of bytes that are missing, including the line
    /// end after the chunk.
    Chunk(usize),
    /// The empty line after the last chunk.
    Trailer,
}

const LINE_END: &[u8] = b"\r\n";

impl AnswerParser {
    pub fn new() -> Self {
        Self {
            state: State::Head,
            status: 0,
            body_len: 0,
        }
    }

    /// Parses the bytes up to the end of a response, or as far as possible. Returns how many bytes
    /// were parsed. The next call must begin with the bytes that were not parsed.
    ///
    /// # Errors
    /// Returns a description if the bytes are not an HTTP/1.1 response.
    pub fn parse(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Piece<'_>),
    ) -> Result<(usize, Option<AnswerEnd>), String> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self.state {
                State::Head => {
                    let Some(head) = Head::parse(rest)? else {
                        break;
                    };
                    (self.status, self.body_len) = (head.status, 0);
                    self.state = head.content_length.map_or(State::ChunkLen, State::Body);
                    each(Piece::Head {
                        status: head.status,
                        text: head.text,
                    });
                    at += head.text.len();
                }
                State::Body(left) => {
                    let taken = left.min(rest.len());
                    self.state = State::Body(left - taken);
                    self.body_len += taken as u64;
                    each(Piece::Body(&rest[..taken]));
                    at += taken;
                }
                State::ChunkLen => {
                    let Some(line) = first_line(rest) else { break };
                    let digits = str::from_utf8(line).unwrap_or_default().trim_end();
                    let len = usize::from_str_radix(digits, 16)
                        .map_err(|_| format!("{digits:?} is no length"))?;
                    self.state = if len == 0 {
                        State::Trailer
                    } else {
                        State::Chunk(len + LINE_END.len())
                    };
                    at += line.len();
                }
                State::Chunk(left) => {
                    let taken = left.min(rest.len());
                    let data = taken.min(left.saturating_sub(LINE_END.len()));
                    if taken == left
                        && !rest[..taken]
                            .ends_with(&LINE_END[LINE_END.len().saturating_sub(taken)..])
                    {
                        return Err("a chunk is longer than it says".to_owned());
                    }
                    self.state = if taken == left {
                        State::ChunkLen
                    } else {
                        State::Chunk(left - taken)
                    };
                    self.body_len += data as u64;
                    each(Piece::Body(&rest[..data]));
                    at += taken;
                }
                State::Trailer => {
                    let Some(line) = first_line(rest) else { break };
                    if line != LINE_END {
                        return Err(format!(
                            "{:?} instead of an empty line",
                            String::from_utf8_lossy(line)
                        ));
                    }
                    at += line.len();
                    self.state = State::Body(0);
                }
            }
            if matches!(self.state, State::Body(0)) {
                self.state = State::Head;
                return Ok((
                    at,
                    Some(AnswerEnd {
                        status: self.status,
                        body_len: self.body_len,
                    }),
                ));
            }
        }
        Ok((at, None))
    }
}

struct Head<'a> {
    status: u16,
    /// The length of the body, or `None` if the body is chunked.
    content_length: Option<usize>,
    text: &'a str,
}

impl<'a> Head<'a> {
    /// Parses the head of a response. Returns `None` if it is incomplete.
    fn parse(bytes: &'a [u8]) -> Result<Option<Self>, String> {
        let Some(first) = first_line(bytes) else {
            return Ok(None);
        };
        let digits = first
            .strip_prefix(b"HTTP/1.1 ")
            .and_then(|rest| str::from_utf8(rest.get(..3)?).ok());
        let status = digits.and_then(|digits| digits.parse().ok());
        let status = status
            .ok_or_else(|| format!("{:?} begins no answer", String::from_utf8_lossy(first)))?;
        let (mut len, mut content_length, mut is_chunked) = (first.len(), None, false);
        loop {
            let Some(line) = first_line(&bytes[len..]) else {
                return Ok(None);
            };
            len += line.len();
            if line == LINE_END {
                break;
            }
            if let Some(value) = value_of(line, b"content-length:") {
                content_length = Some(
                    value
                        .parse()
                        .map_err(|_| format!("{value:?} is no length"))?,
                );
            } else if let Some(value) = value_of(line, b"transfer-encoding:") {
                is_chunked = value == "chunked";
            }
        }
        let text = str::from_utf8(&bytes[..len]).map_err(|error| error.to_string())?;
        // A response with status 304 has no body, even if its head says otherwise (RFC 9112,
        // section 6.3).
        if status == 304 {
            (content_length, is_chunked) = (Some(0), false);
        }
        if content_length.is_some() == is_chunked {
            return Err(format!("either a Content-Length or chunks: {text}"));
        }
        Ok(Some(Self {
            status,
            content_length,
            text,
        }))
    }
}

/// Returns the value of a header line, or `None` if the header has another name.
fn value_of<'a>(line: &'a [u8], name_and_colon: &[u8]) -> Option<&'a str> {
    let (name, value) = line.split_at_checked(name_and_colon.len())?;
    name.eq_ignore_ascii_case(name_and_colon)
        .then(|| str::from_utf8(value).unwrap_or_default().trim())
}

/// Returns the first line, including its end. Returns `None` if the line is incomplete.
fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    // `skip_until` is the standard library's fastest search for a byte.
    let len = { bytes }.skip_until(b'\n').expect("memory can be read");
    bytes[..len].ends_with(b"\n").then_some(&bytes[..len])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    const CHUNKED: &str = "HTTP/1.1 503 Busy\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\nc\r\n, two\r\nlines\r\n0\r\n\r\n";
    const EMPTY: &str = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";

    /// Parses a stream that arrives in chunks of this size. Returns the status, head and body of
    /// every response.
    fn parse_all(stream: &str, piece_len: usize) -> Result<Vec<(u16, String, String)>, String> {
        let (mut parser, mut unread, mut found) = (AnswerParser::new(), Vec::new(), Vec::new());
        let (mut head, mut body) = (String::new(), Vec::new());
        for piece in stream.as_bytes().chunks(piece_len) {
            unread.extend_from_slice(piece);
            loop {
                let (used, end) = parser.parse(&unread, |piece| match piece {
                    Piece::Head { text, .. } => head = text.to_owned(),
                    Piece::Body(bytes) => body.extend_from_slice(bytes),
                })?;
                unread.drain(..used);
                let Some(end) = end else { break };
                assert_eq!(end.body_len, body.len() as u64);
                let body = String::from_utf8(std::mem::take(&mut body)).expect("text was sent");
                found.push((end.status, std::mem::take(&mut head), body));
            }
        }
        assert!(
            unread.is_empty(),
            "{:?} is left",
            String::from_utf8_lossy(&unread)
        );
        Ok(found)
    }

    #[test]
    fn answers_in_a_row_are_told_apart_wherever_the_stream_is_cut() {
        let stream = [LENGTH, CHUNKED, EMPTY, LENGTH].concat();
        let head_of =
            |answer: &str| answer[..answer.find("\r\n\r\n").expect("a head") + 4].to_owned();
        let hello = (200, head_of(LENGTH), "hello".to_owned());
        let chunked = (503, head_of(CHUNKED), "hello, two\r\nlines".to_owned());
        let expected = vec![
            hello.clone(),
            chunked,
            (404, EMPTY.to_owned(), String::new()),
            hello,
        ];
        for piece_len in 1..=stream.len() {
            assert_eq!(
                parse_all(&stream, piece_len).as_ref(),
                Ok(&expected),
                "in pieces of {piece_len} bytes"
            );
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for stream in [
            "GET / HTTP/1.1\r\n\r\n",
            "HTTP/1.1 2xx\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: five\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nhello\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nmore\r\n",
        ] {
            for piece_len in [1, stream.len()] {
                assert!(
                    parse_all(stream, piece_len).is_err(),
                    "{stream:?} in pieces of {piece_len}"
                );
            }
        }
    }
}
