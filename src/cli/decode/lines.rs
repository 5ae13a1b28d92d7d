//! Reads lines of text. A line that is too long to be an id is refused.

use std::io::{self, BufRead, ErrorKind, Read};

use idmint_wire::DECODED_LEN_MAX;

/// Reads the next line, and returns it without its line end (LF or CRLF). Returns `None` at the end
/// of the input. `number` is the line number for the error message if the line is too long.
pub(super) fn read_line<'a>(
    input: &mut impl BufRead,
    line: &'a mut Vec<u8>,
    number: u64,
) -> io::Result<Option<&'a [u8]>> {
    line.clear();
    let most = u64::try_from(DECODED_LEN_MAX + "\r\n".len()).expect("a few KiB");
    input.by_ref().take(most).read_until(b'\n', line)?;
    let text = match line.strip_suffix(b"\n") {
        Some(text) => text.strip_suffix(b"\r").unwrap_or(text),
        None if line.is_empty() => return Ok(None),
        None => line,
    };
    if text.len() > DECODED_LEN_MAX {
        let what = format!("line {number} is longer than {DECODED_LEN_MAX} bytes");
        return Err(io::Error::new(ErrorKind::InvalidData, what));
    }
    Ok(Some(text))
}
