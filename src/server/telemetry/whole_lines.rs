//! A writer that never joins two lines. If a full disk or a killed process left a line incomplete,
//! the writer adds a newline before it writes the next line.

use std::io::{self, ErrorKind, Write};

/// A stream of lines, written one after the other.
pub(super) struct WholeLines<W> {
    stream: W,
    /// `true` if the last line lacks its newline.
    is_torn: bool,
}

impl<W: Write> WholeLines<W> {
    /// Creates a writer of lines to `stream`. `is_torn` is `true` if the stream ends with an
    /// incomplete line.
    pub(super) fn new(stream: W, is_torn: bool) -> Self {
        Self { stream, is_torn }
    }

    pub(super) fn stream(&self) -> &W {
        &self.stream
    }

    /// Writes a line, which must end with a newline. If only the newline cannot be written, the
    /// line counts as written, and the next call adds the missing newline.
    ///
    /// # Errors
    /// Returns an error if the line was not written or was written only in part. The next call
    /// first ends the partial line with a newline.
    pub(super) fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.stream.write_all(b"\n")?;
            self.is_torn = false;
        }
        let mut rest = line;
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(len) if len > 0 => rest = &rest[len..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                failed => {
                    self.is_torn = rest.len() < line.len();
                    let is_told = self.is_torn && rest == b"\n";
                    return if is_told {
                        Ok(())
                    } else {
                        Err(failed.err().unwrap_or(ErrorKind::WriteZero.into()))
                    };
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk on which a limited number of bytes is free.
    #[derive(Default)]
    struct Disk {
        written: Vec<u8>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            let len = bytes.len().min(self.room);
            self.room -= len;
            self.written.extend_from_slice(&bytes[..len]);
            Ok(len)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn wherever_a_line_was_cut_the_next_one_is_whole() {
        const LINE: &[u8] = b"{\"a\":1}\n";
        for room in 0..LINE.len() {
            let mut lines = WholeLines::new(
                Disk {
                    room,
                    ..Disk::default()
                },
                false,
            );
            let is_told = lines.write(LINE).is_ok();
            assert_eq!(
                is_told,
                room == LINE.len() - 1,
                "all but the newline is a line: {room}"
            );
            assert!(lines.write(b"lost\n").is_err(), "there is no room: {room}");
            lines.stream.room = 100;
            lines.write(b"next\n").expect("there is room");
            lines.write(b"last\n").expect("there is room");
            let end = if room == 0 { "" } else { "\n" };
            let cut = String::from_utf8_lossy(&LINE[..room]);
            assert_eq!(
                String::from_utf8_lossy(&lines.stream.written),
                format!("{cut}{end}next\nlast\n"),
                "{room}"
            );
        }
    }

    #[test]
    fn a_line_that_somebody_else_left_torn_is_closed_once() {
        for (is_torn, before) in [(true, "\n"), (false, "")] {
            let mut lines = WholeLines::new(
                Disk {
                    room: 100,
                    ..Disk::default()
                },
                is_torn,
            );
            lines.write(b"one\n").expect("there is room");
            lines.write(b"two\n").expect("there is room");
            assert_eq!(
                String::from_utf8_lossy(&lines.stream.written),
                format!("{before}one\ntwo\n")
            );
        }
    }
}
