//! `idmint decode --csv`: three more columns for a CSV file, of the ids in one of its columns.

use std::io::{Read, Write};
use std::path::Path;

use csv::{ByteRecord, WriterBuilder};

use super::csv_reading::{BUFFER_LEN, Column, CsvError, CsvRecords, with_input};
use crate::cli::exit::Failure;
use crate::id::{DecodeFilter, FieldKind};
use crate::service::DecodingAt;

/// The names of the columns that are added.
const ADDED: [&str; 3] = ["format", "time", "worker"];

/// The file, the column with the ids, and what they are tried as.
pub(super) struct CsvDecoding<'a> {
    pub(super) column: &'a Column,
    /// Whether the first record names the columns.
    pub(super) has_header: bool,
    pub(super) decoding: &'a DecodingAt<'a>,
    pub(super) filter: DecodeFilter<'a>,
}

/// How many records there were, and how many had no id.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) read: u64,
    pub(super) unmatched: u64,
}

impl CsvDecoding<'_> {
    /// Copies the file, or standard input, with the columns added.
    ///
    /// # Errors
    /// 64 for a column that there is not, 65 for what is no CSV, 74 when input or output fail.
    pub(super) fn copy(&self, file: Option<&Path>, out: impl Write) -> Result<Counts, Failure> {
        with_input(file, |input| self.copy_records(input, out))
    }

    fn copy_records(&self, input: &mut dyn Read, out: impl Write) -> Result<Counts, CsvError> {
        let mut records = CsvRecords::new(input)?;
        let mut writer = WriterBuilder::new()
            .terminator(records.terminator)
            .buffer_capacity(BUFFER_LEN)
            .from_writer(out);
        let mut record = ByteRecord::new();
        let mut counts = Counts::default();
        let mut column = None;
        while records.read(&mut record)? {
            let index = match column {
                Some(index) => index,
                None => {
                    let index = self.column.index_in(&record)?;
                    column = Some(index);
                    if self.has_header {
                        ADDED
                            .iter()
                            .for_each(|name| record.push_field(name.as_bytes()));
                        writer.write_byte_record(&record)?;
                        continue;
                    }
                    index
                }
            };
            counts.read += 1;
            counts.unmatched += u64::from(!self.add_fields(&mut record, index));
            writer.write_byte_record(&record)?;
        }
        writer.flush().map_err(csv::Error::from)?;
        Ok(counts)
    }

    /// Adds what the id in this field is: empty fields if it is none.
    fn add_fields(&self, record: &mut ByteRecord, index: usize) -> bool {
        let reading = self
            .decoding
            .reading_of(&String::from_utf8_lossy(&record[index]), self.filter);
        let Some(reading) = reading else {
            ADDED.iter().for_each(|_| record.push_field(b""));
            return false;
        };
        record.push_field(reading.found.format().name.as_bytes());
        record.push_field(reading.time().as_deref().unwrap_or_default().as_bytes());
        let worker = reading
            .parts
            .numbers()
            .find(|(field, _, _)| field.kind == FieldKind::Worker);
        let mut digits = itoa::Buffer::new();
        record.push_field(
            worker
                .map_or("", |(_, value, _)| digits.format(value))
                .as_bytes(),
        );
        true
    }
}
