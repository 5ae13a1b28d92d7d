//! Checks a chain while it arrives: one event a line, in pieces that may end in the middle of a line.

use super::chain_checker::{ChainChecker, ChainError};
use crate::ledger::canonical::line_len;
use crate::ledger::events::{ChecksumStep, EventId};

/// The longest line, in bytes without its end.
const LINE_LEN_MAX: usize = 1024 * 1024;

/// Checks a chain of one event a line while it arrives. Keeps at most one line in memory.
///
/// Lines end in LF, which may be absent after the last one. An empty line is an event that cannot be read. After the first
/// invalid event the others are counted, not checked.
///
/// ```
/// use idmint::ledger::{ChainChecker, ChainLines};
///
/// let mut lines = ChainLines::new(ChainChecker::from_genesis());
/// lines.read(b"{}\n{")?;
/// lines.read(b"}\n")?;
/// let verdict = lines.end();
/// assert_eq!((verdict.events, verdict.head), (2, None));
/// assert_eq!(verdict.error.map(|error| error.index), Some(0));
/// # Ok::<(), idmint::ledger::LineTooLong>(())
/// ```
#[derive(Debug)]
pub struct ChainLines {
    checker: ChainChecker,
    error: Option<ChainError>,
    /// Whether the steps of the first invalid event are kept.
    explains: bool,
    steps: Vec<ChecksumStep>,
    lines: u64,
    /// The beginning of a line whose end has not arrived.
    open: Vec<u8>,
}

/// The result for a whole chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainVerdict {
    /// The number of events, those after the first invalid one included.
    pub events: u64,
    /// The id of the last valid event; the trusted one, or none, if there is no valid event.
    pub head: Option<EventId>,
    /// The first invalid event.
    pub error: Option<ChainError>,
    /// The parts of its checksum, if that was [asked for](ChainLines::explaining) and the event can be read.
    pub steps: Vec<ChecksumStep>,
}

/// A line beyond the bound of 1 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is longer than the {LINE_LEN_MAX} bytes that are read of one event")]
pub struct LineTooLong {
    /// The line, from 1.
    pub line: u64,
}

impl LineTooLong {
    /// The longest line, in bytes without its end.
    pub const LEN_MAX: usize = LINE_LEN_MAX;
}

impl ChainLines {
    /// Lines that go to this checker.
    pub fn new(checker: ChainChecker) -> ChainLines {
        ChainLines {
            checker,
            error: None,
            explains: false,
            steps: Vec::new(),
            lines: 0,
            open: Vec::new(),
        }
    }

    /// The same, which also keeps the parts of the checksum of the first invalid event.
    pub fn explaining(self) -> ChainLines {
        ChainLines {
            explains: true,
            ..self
        }
    }

    /// Takes the next piece, and checks every line that ends in it.
    ///
    /// # Errors
    /// [`LineTooLong`]; then there is no verdict.
    pub fn read(&mut self, piece: &[u8]) -> Result<(), LineTooLong> {
        let mut rest = piece;
        while let (line, [_, after @ ..]) = rest.split_at(line_len(rest)) {
            self.check_len(line)?;
            if self.open.is_empty() {
                self.check(line);
            } else {
                self.open.extend_from_slice(line);
                self.check_open();
            }
            rest = after;
        }
        self.check_len(rest)?;
        self.open.extend_from_slice(rest);
        Ok(())
    }

    /// The number of bytes held of a line whose end has not arrived.
    pub fn open_len(&self) -> usize {
        self.open.len()
    }

    /// The number of complete lines.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Ends the chain, and with it the last line if it has no LF.
    pub fn end(mut self) -> ChainVerdict {
        if !self.open.is_empty() {
            self.check_open();
        }
        ChainVerdict {
            events: self.lines,
            head: self.checker.head(),
            error: self.error,
            steps: self.steps,
        }
    }

    /// Fails if the line would be too long with these bytes.
    fn check_len(&self, more: &[u8]) -> Result<(), LineTooLong> {
        if more.len() > LINE_LEN_MAX - self.open.len() {
            return Err(LineTooLong {
                line: self.lines + 1,
            });
        }
        Ok(())
    }

    fn check_open(&mut self) {
        let mut line = std::mem::take(&mut self.open);
        self.check(&line);
        line.clear();
        self.open = line;
    }

    fn check(&mut self, line: &[u8]) {
        if self.error.is_none() {
            self.error = self.checker.check(line).err();
            if self.error.is_some() && self.explains {
                self.steps = self.checker.explain(line);
            }
        }
        self.lines += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events of 40 bytes and more, of which the first is none.
    fn verdict(pieces: &[&[u8]]) -> Result<(u64, Option<u64>), LineTooLong> {
        let mut lines = ChainLines::new(ChainChecker::from_genesis());
        for piece in pieces {
            lines.read(piece)?;
        }
        let verdict = lines.end();
        Ok((verdict.events, verdict.error.map(|error| error.index)))
    }

    #[test]
    fn a_line_ends_where_it_ends_and_not_where_a_piece_does() {
        assert_eq!(verdict(&[]), Ok((0, None)));
        assert_eq!(verdict(&[b""]), Ok((0, None)));
        for pieces in [
            &[&b"{}"[..]][..],
            &[b"{}\n"],
            &[b"{", b"}"],
            &[b"{}", b"\n"],
            &[b"{", b"", b"}\n"],
        ] {
            assert_eq!(verdict(pieces), Ok((1, Some(0))), "{pieces:?}");
        }
        assert_eq!(verdict(&[b"\n"]), Ok((1, Some(0))));
        assert_eq!(verdict(&[b"{}\n\n"]), Ok((2, Some(0))));
    }

    #[test]
    fn a_line_of_the_greatest_length_is_read_and_a_longer_one_is_not() {
        let line = vec![b' '; LINE_LEN_MAX];
        assert_eq!(verdict(&[&line, b"\n{}"]), Ok((2, Some(0))));
        assert_eq!(
            verdict(&[b"{}\n", &line, b" "]),
            Err(LineTooLong { line: 2 })
        );
        assert_eq!(verdict(&[&line, b" \n"]), Err(LineTooLong { line: 1 }));
        assert_eq!(
            verdict(&[&[&line[..], b" \n"].concat()]),
            Err(LineTooLong { line: 1 })
        );
    }

    #[test]
    fn the_first_bad_event_is_explained_byte_by_byte() {
        let genesis = r#"{"event":"Ledger Created","entities":{"ledger":"testing⑆preview"},"meta":{"actor":"matt"},"timestamp":"2021-10-03T16:32:12.816530Z","eventId":"0005cd7556b05092aecc815daa77f99c","data":{"description":"This ledger is for my example events.","name":"My Ledger"}}"#;
        let explain = |line: &str| {
            let mut lines = ChainLines::new(ChainChecker::from_genesis()).explaining();
            lines.read(line.as_bytes()).expect("it is short");
            lines.end()
        };
        assert_eq!(explain(genesis).steps, [], "nothing is wrong with it");
        // The checksum that it should have is there, although the id names another.
        let steps = explain(&genesis.replace("aecc815d", "aecc815e")).steps;
        let texts: Vec<_> = steps
            .iter()
            .map(|step| (step.name, String::from_utf8_lossy(&step.bytes)))
            .collect();
        let expected = [
            ("event", "Ledger Created"),
            ("entities", r#"{"ledger":"testing⑆preview"}"#),
            ("meta", r#"{"actor":"matt"}"#),
            (
                "data",
                r#"{"description":"This ledger is for my example events.","name":"My Ledger"}"#,
            ),
            ("timestamp", "0005cd7556b05092"),
            ("ledger", "aa77f99c"),
            ("previous", "0005cd7556b0509200000000aa77f99c"),
        ];
        assert_eq!(texts, expected.map(|(name, text)| (name, text.into())));
        assert_eq!(
            steps[4].checksum & !0b11,
            0xaa77_f99c,
            "what names the ledger"
        );
        assert_eq!(steps[6].checksum, 0xaecc_815d, "what stands in the id");
        assert_eq!(explain("{}").steps, [], "it cannot be read");
    }

    #[test]
    fn an_id_of_another_version_is_named_by_it() {
        for (digit, version) in [('d', "01"), ('e', "10"), ('f', "11")] {
            let line = format!(
                r#"{{"event":"a","entities":{{}},"eventId":"0005cd7556b05092aecc815daa77f99{digit}"}}"#
            );
            let mut lines = ChainLines::new(ChainChecker::from_genesis());
            lines.read(line.as_bytes()).expect("it is short");
            let error = lines.end().error.expect("it has another version");
            assert!(
                error
                    .detail
                    .contains(&format!("an id of version {version}, which is not known")),
                "{error}"
            );
        }
    }
}
