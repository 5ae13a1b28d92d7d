//! A file with one event per line. The events are sent to a service in groups, one group per
//! request.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use crate::cli::exit::Failure;
use idmint_wire::{EVENT_LEN_MAX, EVENTS_MAX, LEDGER_BODY_LEN_MAX};

/// The size of the read buffer in bytes.
const BUFFER_LEN: usize = 256 * 1024;

/// The maximum number of bytes in a request body that do not belong to its events.
const ENVELOPE_LEN_MAX: usize = 128;

/// The maximum size in bytes of the events in one request.
const GROUP_LEN_MAX: usize = LEDGER_BODY_LEN_MAX - ENVELOPE_LEN_MAX;

/// An input that contains events. It can be read more than once.
pub(super) struct EventFile {
    name: String,
    input: Input,
}

enum Input {
    File(File),
    /// The content of an input that can be read only once, such as standard input or a pipe.
    Memory(Vec<u8>),
}

/// The lines of a file in order.
pub(super) struct EventLines<'a> {
    name: &'a str,
    input: BufReader<Box<dyn Read + 'a>>,
    line: Vec<u8>,
    /// `true` if `line` has been read but not returned yet.
    is_pending: bool,
    /// The number of lines read.
    lines: u64,
}

/// The events of one request, as JSON objects separated by commas, and the number of events.
pub(super) struct EventGroup {
    pub(super) events: Vec<u8>,
    pub(super) count: usize,
}

impl EventFile {
    /// Opens the file at `path`. Without a path, reads standard input to its end.
    ///
    /// # Errors
    /// Returns exit code 74 if the file cannot be read.
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
        let input = open().map_err(|error: io::Error| Failure::io(&name, error))?;
        Ok(EventFile { name, input })
    }

    /// Returns the whole input as one event, which may span several lines.
    ///
    /// # Errors
    /// Returns exit code 65 if the input exceeds the maximum length of an event, and 74 if reading
    /// fails.
    pub(super) fn event(&mut self) -> Result<Vec<u8>, Failure> {
        let mut event = Vec::new();
        let most = u64::try_from(EVENT_LEN_MAX + 1).expect("a few hundred KiB");
        let lines = self.lines()?;
        let read = lines.input.take(most).read_to_end(&mut event);
        read.map_err(|error| Failure::io(lines.name, error))?;
        if event.len() > EVENT_LEN_MAX {
            let what = format!(
                "{} is longer than the {EVENT_LEN_MAX} bytes that an event may have",
                lines.name
            );
            return Err(Failure::damaged(what));
        }
        Ok(event)
    }

    /// Returns the name of the input, for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the length of the input in bytes, or 0 if the length is unknown.
    pub(super) fn len(&self) -> u64 {
        match &self.input {
            Input::File(file) => file.metadata().map_or(0, |metadata| metadata.len()),
            Input::Memory(bytes) => u64::try_from(bytes.len()).expect("a length fits 64 bits"),
        }
    }

    /// Returns the lines of the input, starting with the first line.
    ///
    /// # Errors
    /// Returns exit code 74 if the file cannot be rewound.
    pub(super) fn lines(&mut self) -> Result<EventLines<'_>, Failure> {
        let input: Box<dyn Read> = match &mut self.input {
            Input::File(file) => {
                file.rewind()
                    .map_err(|error| Failure::io(&self.name, error))?;
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
    /// Returns the number of the line that was read last. The first line has number 1.
    pub(super) fn number(&self) -> u64 {
        self.lines
    }

    /// Reads the next line and returns it without its line terminator, or `None` at the end of the
    /// input.
    ///
    /// # Errors
    /// Returns exit code 65 if the line exceeds the maximum length of an event, and 74 if reading
    /// fails.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Failure> {
        let is_there = self.fill()?;
        self.is_pending = false;
        Ok(is_there.then_some(self.line.as_slice()))
    }

    /// Returns as many of the next events as fit into one request, or `None` at the end of the
    /// input. Calls `each` for every event before the event is added to the group.
    ///
    /// # Errors
    /// Returns the errors of [`EventLines::next`] and of `each`.
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

    /// Reads the next line into `line`. Keeps the present line if it is still pending, which means
    /// not returned yet. Returns `false` at the end of the input.
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
        if read.map_err(|error| Failure::io(self.name, error))? == 0 {
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
            return Err(Failure::damaged(what));
        }
        self.is_pending = true;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::exit::Exit;

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
