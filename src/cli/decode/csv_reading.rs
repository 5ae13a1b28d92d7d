//! A CSV file read record by record, for the ids in one of its columns.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::rc::Rc;

use csv::{ByteRecord, Reader, ReaderBuilder, Terminator};

use crate::cli::exit::{Exit, Failure};
use crate::cli::print::{READ_SHOWN_FROM_LEN, progress_bar};

/// Bytes that are read at once.
pub(super) const BUFFER_LEN: usize = 64 * 1024;

/// A longer record is none: a quote stands open.
const RECORD_LEN_MAX: u64 = 1024 * 1024;

/// A column by its number, from 1, or by its name in the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Column {
    Number(usize),
    Name(String),
}

/// The records of a CSV file.
pub(super) struct CsvRecords<R> {
    reader: Reader<BoundedRead<BufReader<R>>>,
    room: Rc<Cell<u64>>,
    /// What its lines end in.
    pub(super) terminator: Terminator,
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
    /// Its place among the fields of the first record.
    pub(super) fn index_in(&self, first: &ByteRecord) -> Result<usize, CsvError> {
        match self {
            Column::Number(number) if *number <= first.len() => Ok(number - 1),
            Column::Number(number) => Err(CsvError::NoColumn(format!(
                "there is no column {number}, records have {}",
                first.len()
            ))),
            Column::Name(name) => first
                .iter()
                .position(|field| field == name.as_bytes())
                .ok_or_else(|| {
                    let names: Vec<_> = first.iter().map(String::from_utf8_lossy).collect();
                    CsvError::NoColumn(format!(
                        "there is no column {name:?}, there is {}",
                        names.join(", ")
                    ))
                }),
        }
    }
}

impl<R: Read> CsvRecords<R> {
    /// Those of this input.
    pub(super) fn new(input: R) -> Result<Self, CsvError> {
        let mut input = BufReader::with_capacity(BUFFER_LEN, input);
        let terminator = terminator_of(input.fill_buf().map_err(csv::Error::from)?);
        let room = Rc::new(Cell::new(RECORD_LEN_MAX));
        let input = BoundedRead {
            input,
            room: Rc::clone(&room),
        };
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .buffer_capacity(BUFFER_LEN)
            .from_reader(input);
        Ok(CsvRecords {
            reader,
            room,
            terminator,
        })
    }

    /// Reads the next record; false if there is none.
    pub(super) fn read(&mut self, record: &mut ByteRecord) -> Result<bool, CsvError> {
        let is_read = self.reader.read_byte_record(record)?;
        self.room.set(RECORD_LEN_MAX);
        Ok(is_read)
    }
}

/// Opens a file, or standard input, and reads it to its end, with a bar that shows how far it is.
///
/// # Errors
/// 64 for a column that there is not, 65 for what is no CSV, 74 when input or output fail; a broken pipe is the default.
pub(super) fn with_input<T: Default>(
    file: Option<&Path>,
    read: impl FnOnce(&mut dyn Read) -> Result<T, CsvError>,
) -> Result<T, Failure> {
    let name = file.map_or_else(
        || "standard input".to_owned(),
        |path| path.display().to_string(),
    );
    let failed = |error: io::Error| Failure::new(Exit::Io, format!("{name}: {error}"));
    let file = match file {
        Some(path) => File::open(path),
        None => io::stdin().as_fd().try_clone_to_owned().map(File::from),
    };
    let file = file.map_err(failed)?;
    // A pipe has no length.
    let len = file.metadata().map_or(0, |metadata| metadata.len());
    let bar = progress_bar(len, READ_SHOWN_FROM_LEN);
    let done = read(&mut bar.wrap_read(file));
    bar.finish_and_clear();
    match done {
        // Whoever reads may have seen enough.
        Err(CsvError::Csv(error)) if is_broken_pipe(&error) => Ok(T::default()),
        Err(CsvError::Csv(error)) => Err(failure_of(error, &name)),
        Err(CsvError::NoColumn(why)) => Err(Failure::new(Exit::Usage, format!("{name}: {why}"))),
        Ok(done) => Ok(done),
    }
}

/// Why reading ended early.
#[derive(Debug)]
pub(super) enum CsvError {
    Csv(csv::Error),
    /// The column that was asked for is not there.
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
        _ => Failure::new(Exit::Damaged, message),
    }
}

/// Lines end as the first one does.
fn terminator_of(beginning: &[u8]) -> Terminator {
    let end = beginning.iter().position(|byte| *byte == b'\n');
    match end.and_then(|end| end.checked_sub(1)) {
        Some(before) if beginning[before] == b'\r' => Terminator::CRLF,
        _ => Terminator::Any(b'\n'),
    }
}

/// Input of which one record may be so long and no longer, so that a quote that stands open does not fill the memory.
struct BoundedRead<R> {
    input: R,
    /// How many bytes may still be read; the reader of a record sets it anew.
    room: Rc<Cell<u64>>,
}

impl<R: Read> Read for BoundedRead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = self.room.get();
        if room == 0 {
            let why =
                format!("a record is longer than {RECORD_LEN_MAX} bytes: a quote stands open");
            return Err(io::Error::new(ErrorKind::InvalidData, why));
        }
        let read = self.input.read(buffer)?;
        self.room
            .set(room.saturating_sub(u64::try_from(read).expect("a few KiB")));
        Ok(read)
    }
}
