//! A reader for the records of a CSV file in which one column contains ids.

use std::cell::Cell;
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
    separator: Separator,
    terminator: Terminator,
}

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
    /// Returns the separator that divides each of the first lines into the same number of fields,
    /// at least two. If several separators do this, returns the separator with the most fields. If
    /// no separator does, returns a comma.
    fn of_lines(beginning: &[u8]) -> Separator {
        // The last line may be incomplete, because only the beginning of the file was read. It is
        // left out.
        let whole = beginning.iter().rposition(|byte| *byte == b'\n');
        let lines = whole.map_or(beginning, |end| &beginning[..end]);
        let fields = |separator: &u8| {
            let mut reader = ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .delimiter(*separator)
                .from_reader(lines);
            let counts = reader
                .byte_records()
                .take(FIRST_RECORDS)
                .map_while(Result::ok);
            let mut counts = counts.map(|record| record.len());
            let first = counts.next()?;
            (first > 1 && counts.all(|count| count == first)).then_some(first)
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
            Column::Name(name) => first
                .iter()
                .position(|field| field == name.as_bytes())
                .ok_or_else(|| {
                    let names: Vec<_> = first.iter().map(String::from_utf8_lossy).collect();
                    CsvError::NoColumn(format!(
                        "column {name:?} does not exist; the columns are {}",
                        names.join(", ")
                    ))
                }),
        }
    }
}

impl<R: Read> CsvRecords<R> {
    /// Creates a reader of CSV records. If `separator` is `None`, the separator is determined from
    /// the first lines.
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
        let separator = separator.unwrap_or_else(|| Separator::of_lines(&beginning));
        let room = Rc::new(Cell::new(RECORD_LEN_MAX));
        let input = BoundedRead {
            input: Cursor::new(beginning).chain(input),
            room: Rc::clone(&room),
        };
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .delimiter(separator.0)
            .buffer_capacity(BUFFER_LEN)
            .from_reader(input);
        Ok(CsvRecords {
            reader,
            room,
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
    pub(super) fn read(&mut self, record: &mut ByteRecord) -> Result<bool, CsvError> {
        let is_read = self.reader.read_byte_record(record)?;
        self.room.set(RECORD_LEN_MAX);
        Ok(is_read)
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
        Err(CsvError::NoColumn(why)) => Err(Failure::usage(format!("{name}: {why}"))),
        Ok(done) => Ok(done),
    }
}

/// The reason why reading stopped before the end.
#[derive(Debug)]
pub(super) enum CsvError {
    Csv(csv::Error),
    /// The requested column does not exist.
    NoColumn(String),
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

/// An input that limits the length of one CSV record, so that a quote that is never closed cannot
/// exhaust memory.
struct BoundedRead<R> {
    input: R,
    /// The number of bytes that may still be read for the current record. [`CsvRecords::read`]
    /// resets it after each record.
    room: Rc<Cell<u64>>,
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
        self.room
            .set(room.saturating_sub(u64::try_from(read).expect("a few KiB")));
        Ok(read)
    }
}
