//! HTTP/1.1 answers out of a stream of bytes: heads are read, bodies are counted.

use std::io::BufRead;

/// Where in an answer the stream is.
enum Part {
    Head,
    /// So many bytes of the body are left.
    Body(usize),
    /// The line with the length of the next chunk.
    ChunkHead,
    /// So many bytes of a chunk are left, the line end behind it among them.
    Chunk(usize),
    /// The empty line behind the last chunk.
    Trailer,
}

/// Reads one answer after the other.
pub(super) struct Answers {
    part: Part,
    status: u16,
    body_len: u64,
}

/// An answer whose last byte has arrived.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body_len: u64,
}

impl Answers {
    pub(super) fn new() -> Self {
        Self { part: Part::Head, status: 0, body_len: 0 }
    }

    /// Reads what it can, up to the end of an answer; says how many bytes that were.
    ///
    /// # Errors
    /// When these are no HTTP answers.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<(usize, Option<Answer>), String> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self.part {
                Part::Head => {
                    let Some(head) = Head::of(rest)? else { break };
                    (self.status, self.body_len) = (head.status, 0);
                    self.part = head.body_len.map_or(Part::ChunkHead, Part::Body);
                    at += head.len;
                }
                Part::Body(left) => {
                    let taken = left.min(rest.len());
                    self.part = Part::Body(left - taken);
                    self.body_len += taken as u64;
                    at += taken;
                }
                Part::ChunkHead => {
                    let Some(line) = line_of(rest) else { break };
                    let digits = str::from_utf8(line).unwrap_or_default().trim_end();
                    let len = usize::from_str_radix(digits, 16).map_err(|_| format!("{digits:?} is no length"))?;
                    self.part = if len == 0 { Part::Trailer } else { Part::Chunk(len + 2) };
                    self.body_len += len as u64;
                    at += line.len();
                }
                Part::Chunk(left) => {
                    let taken = left.min(rest.len());
                    self.part = if taken == left { Part::ChunkHead } else { Part::Chunk(left - taken) };
                    at += taken;
                }
                Part::Trailer => {
                    let Some(line) = line_of(rest) else { break };
                    at += line.len();
                    self.part = Part::Body(0);
                }
            }
            if matches!(self.part, Part::Body(0)) {
                self.part = Part::Head;
                return Ok((at, Some(Answer { status: self.status, body_len: self.body_len })));
            }
        }
        Ok((at, None))
    }
}

struct Head {
    status: u16,
    /// None: in chunks.
    body_len: Option<usize>,
    len: usize,
}

impl Head {
    /// None: not all of it is there.
    fn of(bytes: &[u8]) -> Result<Option<Self>, String> {
        let Some(first) = line_of(bytes) else { return Ok(None) };
        let digits = first.strip_prefix(b"HTTP/1.1 ").and_then(|rest| str::from_utf8(rest.get(..3)?).ok());
        let status = digits.and_then(|digits| digits.parse().ok());
        let status = status.ok_or_else(|| format!("{:?} begins no answer", String::from_utf8_lossy(first)))?;
        let (mut len, mut body_len) = (first.len(), None);
        loop {
            let Some(line) = line_of(&bytes[len..]) else { return Ok(None) };
            len += line.len();
            if line == b"\r\n" {
                return Ok(Some(Self { status, body_len, len }));
            }
            if let Some((name, value)) = line.split_at_checked(CONTENT_LENGTH.len())
                && name.eq_ignore_ascii_case(CONTENT_LENGTH)
            {
                let digits = str::from_utf8(value).unwrap_or_default().trim();
                body_len = Some(digits.parse().map_err(|_| format!("{digits:?} is no length"))?);
            }
        }
    }
}

const CONTENT_LENGTH: &[u8] = b"content-length:";

/// With its end; None while that is not there.
fn line_of(bytes: &[u8]) -> Option<&[u8]> {
    // The fastest search of the standard library for a byte.
    let len = { bytes }.skip_until(b'\n').expect("memory can be read");
    bytes[..len].ends_with(b"\n").then_some(&bytes[..len])
}
