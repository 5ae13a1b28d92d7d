//! Events in a file, one a line, and how they are put together into requests.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use crate::cli::exit::{Exit, Failure};
use crate::wire::{EVENT_LEN_MAX, EVENTS_MAX, LEDGER_BODY_LEN_MAX};

/// Bytes that are read at once.
const BUFFER_LEN: usize = 256 * 1024;

/// Bytes that a request has at most beside its events.
const ENVELOPE_LEN_MAX: usize = 128;

/// The most bytes of events in one request.
const GROUP_LEN_MAX: usize = LEDGER_BODY_LEN_MAX - ENVELOPE_LEN_MAX;

/// Events that can be read more than once.
pub(super) struct EventFile {
    name: String,
    input: Input,
}

enum Input {
    File(File),
    /// What cannot be read twice: standard input, a pipe.
    Memory(Vec<u8>),
}

/// The lines of a file, one after the other.
pub(super) struct EventLines<'a> {
    name: &'a str,
    input: BufReader<Box<dyn Read + 'a>>,
    line: Vec<u8>,
    /// Whether `line` has been read and not been taken.
    is_pending: bool,
    /// How many lines were read.
    lines: u64,
}

/// Events of one request, as a JSON list has them between its brackets.
pub(super) struct EventGroup {
    pub(super) events: Vec<u8>,
    pub(super) count: usize,
}

impl EventFile {
    /// The file at `path`, or standard input, which is read to its end first.
    ///
    /// # Errors
    /// 74.
    pub(super) fn open(path: Option<&Path>) -> Result<EventFile, Failure> {
        let name = path.map_or_else(
            || "standard input".to_owned(),
            |path| path.display().to_string(),
        );
        let read = |mut input: Box<dyn Read>| {
            let mut bytes = Vec::new();
            input.read_to_end(&mut bytes)?;
            Ok(Input::Memory(bytes))
        };
        let open = || match path {
            None => read(Box::new(io::stdin().lock())),
            Some(path) => {
                let file = File::open(path)?;
                if file.metadata()?.is_file() {
                    Ok(Input::File(file))
                } else {
                    read(Box::new(file))
                }
            }
        };
        let input = open()
            .map_err(|error: io::Error| Failure::new(Exit::Io, format!("{name}: {error}")))?;
        Ok(EventFile { name, input })
    }

    /// All of it, which is one event on as many lines as it likes.
    ///
    /// # Errors
    /// 65 if that is longer than an event may be, 74.
    pub(super) fn event(&mut self) -> Result<Vec<u8>, Failure> {
        let mut event = Vec::new();
        let most = u64::try_from(EVENT_LEN_MAX + 1).expect("a few hundred KiB");
        let lines = self.lines()?;
        let read = lines.input.take(most).read_to_end(&mut event);
        read.map_err(|error| Failure::new(Exit::Io, format!("{}: {error}", lines.name)))?;
        if event.len() > EVENT_LEN_MAX {
            let what = format!(
                "{} is longer than the {EVENT_LEN_MAX} bytes that an event may have",
                lines.name
            );
            return Err(Failure::new(Exit::Damaged, what));
        }
        Ok(event)
    }

    /// What to call it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How long it is, in bytes; 0 if that cannot be told.
    pub(super) fn len(&self) -> u64 {
        match &self.input {
            Input::File(file) => file.metadata().map_or(0, |metadata| metadata.len()),
            Input::Memory(bytes) => u64::try_from(bytes.len()).expect("a length fits 64 bits"),
        }
    }

    /// Its lines from the first on.
    ///
    /// # Errors
    /// 74.
    pub(super) fn lines(&mut self) -> Result<EventLines<'_>, Failure> {
        let input: Box<dyn Read> = match &mut self.input {
            Input::File(file) => {
                file.rewind()
                    .map_err(|error| Failure::new(Exit::Io, format!("{}: {error}", self.name)))?;
                Box::new(file)
            }
            Input::Memory(bytes) => Box::new(bytes.as_slice()),
        };
        Ok(EventLines {
            name: &self.name,
            input: BufReader::with_capacity(BUFFER_LEN, input),
            line: Vec::new(),
            is_pending: false,
            lines: 0,
        })
    }
}

impl EventLines<'_> {
    /// The number of the line that was read last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.lines
    }

    /// The next line without its end; `None` after the last.
    ///
    /// # Errors
    /// 65 for a line that is longer than the service takes an event, 74.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Failure> {
        let is_there = self.fill()?;
        self.is_pending = false;
        Ok(is_there.then_some(self.line.as_slice()))
    }

    /// As many events as fit into one request; `None` after the last. `each` sees every one of them before it is taken.
    ///
    /// # Errors
    /// As [`EventLines::next`], and those of `each`.
    pub(super) fn next_group(
        &mut self,
        mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<Option<EventGroup>, Failure> {
        let mut group = EventGroup {
            events: Vec::new(),
            count: 0,
        };
        while self.fill()? {
            if group.count > 0 {
                let len = group.events.len() + ",".len() + self.line.len();
                if len > GROUP_LEN_MAX || group.count == EVENTS_MAX {
                    break;
                }
                group.events.push(b',');
            }
            each(&self.line)?;
            group.events.extend_from_slice(&self.line);
            group.count += 1;
            self.is_pending = false;
        }
        Ok(Some(group).filter(|group| group.count > 0))
    }

    /// Reads a line unless one is pending, and says whether there is one.
    fn fill(&mut self) -> Result<bool, Failure> {
        if self.is_pending {
            return Ok(true);
        }
        self.line.clear();
        let most = u64::try_from(EVENT_LEN_MAX + "\r\n".len()).expect("a few hundred KiB");
        let read = self
            .input
            .by_ref()
            .take(most)
            .read_until(b'\n', &mut self.line);
        if read.map_err(|error| Failure::new(Exit::Io, format!("{}: {error}", self.name)))? == 0 {
            return Ok(false);
        }
        self.lines += 1;
        if self.line.ends_with(b"\n") {
            self.line.pop();
        }
        if self.line.ends_with(b"\r") {
            self.line.pop();
        }
        if self.line.len() > EVENT_LEN_MAX {
            let what = format!(
                "line {} is longer than the {EVENT_LEN_MAX} bytes that an event may have",
                self.lines
            );
            return Err(Failure::new(Exit::Damaged, what));
        }
        self.is_pending = true;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &[u8]) -> EventFile {
        EventFile {
            name: "a file".to_owned(),
            input: Input::Memory(text.to_vec()),
        }
    }

    fn groups(text: &[u8]) -> Result<Vec<(usize, usize)>, Exit> {
        let mut file = file(text);
        let mut lines = file.lines().expect("memory");
        let mut groups = Vec::new();
        while let Some(group) = lines
            .next_group(|_| Ok(()))
            .map_err(|failure| failure.exit())?
        {
            groups.push((group.events.len(), group.count));
        }
        Ok(groups)
    }

    #[test]
    fn a_group_is_as_large_as_a_request_may_be() {
        let line = |len: usize| [&vec![b' '; len][..], b"\n"].concat();
        assert_eq!(groups(b""), Ok(vec![]));
        assert_eq!(groups(b"{}"), Ok(vec![(2, 1)]));
        assert_eq!(groups(b"{}\r\n{}\n"), Ok(vec![(5, 2)]));
        let full = [
            line(EVENT_LEN_MAX).repeat(3),
            line(GROUP_LEN_MAX - 3 - 3 * EVENT_LEN_MAX),
        ]
        .concat();
        assert_eq!(groups(&full), Ok(vec![(GROUP_LEN_MAX, 4)]));
        let over = [&full[..], b"{}\n"].concat();
        assert_eq!(groups(&over), Ok(vec![(GROUP_LEN_MAX, 4), (2, 1)]));
        assert_eq!(
            groups(&b"{}\n".repeat(EVENTS_MAX + 1)),
            Ok(vec![(3 * EVENTS_MAX - 1, EVENTS_MAX), (2, 1)])
        );
        assert_eq!(groups(&line(EVENT_LEN_MAX + 1)), Err(Exit::Damaged));
        assert_eq!(groups(&line(EVENT_LEN_MAX + 2)), Err(Exit::Damaged));
    }

    #[test]
    fn lines_and_groups_take_turns_and_a_file_is_read_again_from_its_beginning() {
        let mut file = file(b"1\n2\n3");
        for _ in 0..2 {
            let mut lines = file.lines().expect("memory");
            assert_eq!(lines.next().ok().flatten(), Some(&b"1"[..]));
            let mut seen = Vec::new();
            let mut see = |line: &[u8]| {
                seen.extend_from_slice(line);
                Ok(())
            };
            let group = lines
                .next_group(&mut see)
                .ok()
                .flatten()
                .expect("two are left");
            assert_eq!(
                (group.events.as_slice(), seen.as_slice(), lines.number()),
                (&b"2,3"[..], &b"23"[..], 3)
            );
            assert!(lines.next().is_ok_and(|line| line.is_none()));
        }
    }
}
