//! A reader for the records of a CSV file in which one column contains ids.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, Chain, Cursor, ErrorKind, Read};
use std::path::Path;
use std::rc::Rc;
use std::str::FromStr;

use csv::{ByteRecord, Reader, ReaderBuilder, Terminator, Writer, WriterBuilder};

use super::text_input::TextInput;
use crate::cli::exit::{Exit, Failure};
use crate::cli::print::{READ_SHOWN_FROM_LEN, open_input, progress_bar};

/// The size of the read buffer in bytes.
pub(super) const BUFFER_LEN: usize = 64 * 1024;

/// The maximum number of records that determine the separator.
const FIRST_RECORDS: usize = 50;

/// The maximum length of a record in bytes. A longer record is refused, because it probably
/// contains a quote that was opened and never closed.
const RECORD_LEN_MAX: u64 = 1024 * 1024;

/// A column of a CSV file, identified by its number, from 1, or by its name in the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Column {
    Number(usize),
    Name(String),
}

/// The character between the fields of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Separator(u8);

/// The records of a CSV file.
pub(super) struct CsvRecords<R> {
    reader: Reader<BoundedRead<Chain<Cursor<Vec<u8>>, R>>>,
    room: Rc<Cell<u64>>,
    blank_lines: BlankLines,
    /// The number of records that the reader has returned.
    read: u64,
    /// The next record to return, and the number of blank lines that must be returned before it.
    held: Option<(ByteRecord, u64)>,
    separator: Separator,
    terminator: Terminator,
}

/// The blank lines between records. For example, `(3, 2)` means that two blank lines precede the
/// record with index 3. Blank lines before the first record are not included.
type BlankLines = Rc<RefCell<VecDeque<(u64, u64)>>>;

impl FromStr for Separator {
    type Err = String;

    fn from_str(text: &str) -> Result<Separator, String> {
        match text {
            "," | ";" | "|" | "\t" => Ok(Separator(text.as_bytes()[0])),
            "tab" => Ok(Separator(b'\t')),
            _ => Err("the separator must be one of , ; | or tab".to_owned()),
        }
    }
}

impl Separator {
    /// Returns the separator that divides each of the first records into the same number of fields,
    /// at least two. If several separators do this, returns the separator with the most fields. If
    /// no separator does, returns a comma.
    fn of_records(beginning: &[u8]) -> Separator {
        let is_whole = beginning.len() < BUFFER_LEN;
        let fields = |separator: &u8| {
            let mut reader = ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .delimiter(*separator)
                .from_reader(beginning);
            let records = reader.byte_records().map_while(Result::ok);
            let counts = records.map(|record| record.len()).take(FIRST_RECORDS);
            let mut counts: Vec<_> = counts.collect();
            // Ignore the last record if the buffer is full, because the buffer may end in the
            // middle of that record.
            if !is_whole && counts.len() > 1 {
                counts.pop();
            }
            let first = *counts.first()?;
            (first > 1 && counts.iter().all(|count| *count == first)).then_some(first)
        };
        let most = b"|\t;,".iter().max_by_key(|separator| fields(separator));
        Separator(*most.expect("four separators"))
    }
}

impl From<&str> for Column {
    fn from(text: &str) -> Column {
        text.parse()
            .ok()
            .filter(|number| *number > 0)
            .map_or_else(|| Column::Name(text.to_owned()), Column::Number)
    }
}

impl Column {
    /// Returns the index of the column in each record, counted from 0. `first` is the first record
    /// of the file, which may contain the names of the columns.
    pub(super) fn index_in(&self, first: &ByteRecord) -> Result<usize, CsvError> {
        match self {
            Column::Number(number) if *number <= first.len() => Ok(number - 1),
            Column::Number(number) => Err(CsvError::NoColumn(format!(
                "column {number} does not exist: the first record has {} columns",
                first.len()
            ))),
            Column::Name(name) => {
                let named = (0..first.len()).filter(|at| &first[*at] == name.as_bytes());
                let named: Vec<usize> = named.collect();
                match *named.as_slice() {
                    [index] => Ok(index),
                    [] => {
                        let names: Vec<_> = first.iter().map(String::from_utf8_lossy).collect();
                        Err(CsvError::NoColumn(format!(
                            "column {name:?} does not exist; the columns are {}",
                            names.join(", ")
                        )))
                    }
                    _ => {
                        let numbers = named.iter().map(|at| (at + 1).to_string());
                        Err(CsvError::NoColumn(format!(
                            "{name:?} is the name of the columns {}: give the number of one, and --header",
                            numbers.collect::<Vec<_>>().join(", ")
                        )))
                    }
                }
            }
        }
    }
}

impl<R: Read> CsvRecords<R> {
    /// Creates a reader of CSV records. If `separator` is `None`, the separator is determined from
    /// the first records.
    pub(super) fn new(input: R, separator: Option<Separator>) -> Result<Self, CsvError> {
        // Fill the whole buffer first, because a single read may return only a few bytes that
        // contain no separator and no line end.
        let mut beginning = Vec::with_capacity(BUFFER_LEN);
        let mut input = input;
        let beginning_len = u64::try_from(BUFFER_LEN).expect("a few KiB");
        let read = input
            .by_ref()
            .take(beginning_len)
            .read_to_end(&mut beginning);
        read.map_err(csv::Error::from)?;
        let terminator = terminator_of(&beginning);
        let separator = separator.unwrap_or_else(|| Separator::of_records(&beginning));
        let room = Rc::new(Cell::new(RECORD_LEN_MAX));
        let blank_lines = BlankLines::default();
        let input = BoundedRead {
            input: Cursor::new(beginning).chain(input),
            room: Rc::clone(&room),
            separator: separator.0,
            place: Place::RecordStart,
            line: 1,
            quote_line: 1,
            is_after_cr: false,
            blank: 0,
            records: 0,
            blank_lines: Rc::clone(&blank_lines),
        };
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .delimiter(separator.0)
            .buffer_capacity(BUFFER_LEN)
            .from_reader(input);
        Ok(CsvRecords {
            reader,
            room,
            blank_lines,
            read: 0,
            held: None,
            separator,
            terminator,
        })
    }

    /// Returns a writer of records that uses the same separator and line ends as the input.
    pub(super) fn writer<W: io::Write>(&self, out: W) -> Writer<W> {
        WriterBuilder::new()
            .delimiter(self.separator.0)
            .terminator(self.terminator)
            .buffer_capacity(BUFFER_LEN)
            .from_writer(out)
    }

    /// Reads the next record. Returns `false` at the end of the input.
    ///
    /// In a file with one column, a blank line between records counts as a record with an empty
    /// field. A copy of the file therefore has the same number of lines.
    pub(super) fn read(&mut self, record: &mut ByteRecord) -> Result<bool, CsvError> {
        if self.held.is_none() {
            if !self.reader.read_byte_record(record)? {
                return Ok(false);
            }
            self.room.set(RECORD_LEN_MAX);
            let blank = self.blank_lines_before(self.read);
            self.read += 1;
            if blank == 0 || record.len() != 1 {
                return Ok(true);
            }
            self.held = Some((record.clone(), blank));
        }
        match &mut self.held {
            Some((_, blank)) if *blank > 0 => {
                *blank -= 1;
                record.clear();
                record.push_field(b"");
            }
            held => (*record, _) = held.take().expect("checked above"),
        }
        Ok(true)
    }

    /// Returns the number of blank lines before the record with this index.
    fn blank_lines_before(&self, index: u64) -> u64 {
        let mut blank_lines = self.blank_lines.borrow_mut();
        match blank_lines.front() {
            Some((record, blank)) if *record == index => {
                let blank = *blank;
                blank_lines.pop_front();
                blank
            }
            _ => 0,
        }
    }
}

/// Opens a file, or standard input if `file` is `None`. Passes the content to `read` as UTF-8 text
/// without a byte order mark. A progress bar shows how much was read.
///
/// # Errors
/// Returns exit code 64 if the column does not exist, 65 if the input is not CSV, and 74 if input
/// or output fails. If the reader of the output closes the pipe, returns the default value instead
/// of an error.
pub(super) fn with_input<T: Default>(
    file: Option<&Path>,
    read: impl FnOnce(&mut dyn Read) -> Result<T, CsvError>,
) -> Result<T, Failure> {
    let (name, file) = open_input(file)?;
    // The length of a pipe is unknown, so no progress bar is shown for a pipe.
    let len = file.metadata().map_or(0, |metadata| metadata.len());
    let bar = progress_bar(len, READ_SHOWN_FROM_LEN);
    let done = TextInput::new(bar.wrap_read(file))
        .map_err(|error| CsvError::Csv(error.into()))
        .and_then(|mut input| read(&mut input));
    bar.finish_and_clear();
    match done {
        // The reader of the output may have closed the pipe. This is not an error.
        Err(CsvError::Csv(error)) if is_broken_pipe(&error) => Ok(T::default()),
        Err(CsvError::Csv(error)) => Err(failure_of(error, &name)),
        Err(CsvError::Other(failure)) => Err(failure),
        Err(CsvError::NoColumn(why)) => Err(Failure::usage(format!("{name}: {why}"))),
        Ok(done) => Ok(done),
    }
}

/// The reason why reading stopped before the end.
#[derive(Debug)]
pub(super) enum CsvError {
    Csv(csv::Error),
    /// The requested column does not exist, or several columns have its name.
    NoColumn(String),
    /// A failure that has nothing to do with the input or the output.
    Other(Failure),
}

impl From<csv::Error> for CsvError {
    fn from(error: csv::Error) -> CsvError {
        CsvError::Csv(error)
    }
}

fn is_broken_pipe(error: &csv::Error) -> bool {
    matches!(error.kind(), csv::ErrorKind::Io(error) if error.kind() == ErrorKind::BrokenPipe)
}

fn failure_of(error: csv::Error, name: &str) -> Failure {
    let message = format!("{name}: {error}");
    match error.into_kind() {
        csv::ErrorKind::Io(error) if error.kind() != ErrorKind::InvalidData => {
            Failure::new(Exit::Io, message)
        }
        _ => Failure::damaged(message),
    }
}

/// Returns the line terminator of the first line. All lines are assumed to end with the same
/// terminator.
fn terminator_of(beginning: &[u8]) -> Terminator {
    let end = beginning.iter().position(|byte| *byte == b'\n');
    match end.and_then(|end| end.checked_sub(1)) {
        Some(before) if beginning[before] == b'\r' => Terminator::CRLF,
        _ => Terminator::Any(b'\n'),
    }
}

/// The place of a byte in a CSV record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    RecordStart,
    FieldStart,
    Unquoted,
    Quoted,
    /// After a quote in a quoted field. A second quote (`""`) stands for a quote character inside
    /// the field, and any other byte ends the quoted part.
    AfterQuote,
}

/// An input that limits the length of one CSV record, so that an unclosed quote cannot exhaust
/// memory. An unclosed quote at the end of the input is an error, because it has turned all rows
/// after it into one field.
struct BoundedRead<R> {
    input: R,
    /// The number of bytes that may still be read for the current record. [`CsvRecords::read`]
    /// resets it after each record.
    room: Rc<Cell<u64>>,
    separator: u8,
    /// The place of the next byte.
    place: Place,
    /// The line number of the next byte. `quote_line` is the line number of the last quote that
    /// opened a field.
    line: u64,
    quote_line: u64,
    is_after_cr: bool,
    /// The number of blank lines since the last record.
    blank: u64,
    /// The number of records that have begun.
    records: u64,
    blank_lines: BlankLines,
}

impl<R> BoundedRead<R> {
    /// Updates the CSV position `place`, the line numbers and the count of blank lines for `bytes`.
    fn scan(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let is_end = matches!(byte, b'\r' | b'\n');
            let is_half_of_crlf = *byte == b'\n' && self.is_after_cr;
            if self.place == Place::RecordStart && is_end {
                self.blank += u64::from(!is_half_of_crlf);
            } else if self.place == Place::RecordStart {
                if self.blank > 0 && self.records > 0 {
                    let mut blank_lines = self.blank_lines.borrow_mut();
                    blank_lines.push_back((self.records, self.blank));
                }
                self.blank = 0;
                self.records += 1;
            }
            self.is_after_cr = *byte == b'\r';
            // The two bytes of CR LF are one line end.
            self.place = match (self.place, byte) {
                (Place::RecordStart | Place::FieldStart, b'"') => {
                    self.quote_line = self.line;
                    Place::Quoted
                }
                (Place::Quoted, b'"') => Place::AfterQuote,
                (Place::AfterQuote, b'"') | (Place::Quoted, _) => Place::Quoted,
                (_, b'\r' | b'\n') => Place::RecordStart,
                (_, byte) if *byte == self.separator => Place::FieldStart,
                _ => Place::Unquoted,
            };
            self.line += u64::from(is_end && !is_half_of_crlf);
        }
    }
}

impl<R: Read> Read for BoundedRead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = self.room.get();
        if room == 0 {
            let why =
                format!("a record is longer than {RECORD_LEN_MAX} bytes: a quote is not closed");
            return Err(io::Error::new(ErrorKind::InvalidData, why));
        }
        let read = self.input.read(buffer)?;
        self.scan(&buffer[..read]);
        if read == 0 && self.place == Place::Quoted && !buffer.is_empty() {
            let why = format!("the quote in line {} is not closed", self.quote_line);
            return Err(io::Error::new(ErrorKind::InvalidData, why));
        }
        self.room
            .set(room.saturating_sub(u64::try_from(read).expect("a few KiB")));
        Ok(read)
    }
}
