//! `idmint decode --csv`: copies a CSV file and adds columns about the ids in one column.

use std::io::{Read, Write};
use std::path::Path;

use csv::{ByteRecord, Writer};

use super::csv_reading::{Column, CsvError, CsvRecords, Separator, with_input};
use crate::cli::exit::Failure;
use crate::cli::print::print_note;
use idmint_core::id::{DecodeFilter, FieldKind, IdColumn, Liberty};
use idmint_service::DecodingAt;
use idmint_wire::{BriefReading, ColumnIds, MatchReading, RowReading};

/// The names of the added columns, unless the file has a column with the same name.
const ADDED: [&str; 5] = ["format", "time", "worker", "ambiguous", "note"];

/// The maximum number of rows at the beginning of the file that are read to find out the format of
/// the id column. Reading stops earlier if these rows have `JUDGED_BYTES_MAX` bytes.
const JUDGED_ROWS_MAX: usize = 10_000;
const JUDGED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The number of rows, from the beginning of the file, in which `columns_like_ids` looks for ids.
const ROWS_OF_COLUMNS_MAX: usize = 1000;

pub(super) struct CsvDecoding<'a> {
    pub(super) column: &'a Column,
    pub(super) separator: Option<Separator>,
    /// `true` if the first record contains the column names.
    pub(super) has_header: bool,
    pub(super) decoding: &'a DecodingAt<'a>,
    pub(super) filter: DecodeFilter<'a>,
}

/// The number of records that were read from a CSV file, and the number of records without an id.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) read: u64,
    pub(super) unmatched: u64,
    /// `true` if the format of the id column is unknown. In this case, each row was decoded
    /// independently of the other rows.
    pub(super) is_untold: bool,
}

/// Returns a sentence that names the columns of a file with ids in them, and the format of each
/// such column. Example: `column 2 ("1I9ZC1000" in the first row) has ids of payment`. Only the
/// first rows are examined.
///
/// # Errors
/// Returns the errors of [`CsvDecoding::copy`].
pub(super) fn columns_like_ids(
    file: Option<&Path>,
    separator: Option<Separator>,
    decoding: &DecodingAt<'_>,
) -> Result<String, Failure> {
    let filter = DecodeFilter {
        liberty: Liberty::Lenient,
        ..DecodeFilter::default()
    };
    let mut names: Vec<String> = Vec::new();
    let mut columns: Vec<IdColumn> = Vec::new();
    with_input(file, |input| {
        let mut records = CsvRecords::new(input, separator)?;
        let mut record = ByteRecord::new();
        for _ in 0..ROWS_OF_COLUMNS_MAX {
            if !records.read(&mut record)? {
                break;
            }
            for (at, field) in record.iter().enumerate() {
                let text = String::from_utf8_lossy(field);
                if columns.len() == at {
                    columns.push(IdColumn::default());
                    names.push(format!("{} ({text:?} in the first row)", at + 1));
                }
                decoding.inspect(&mut columns[at], &text, filter);
            }
        }
        Ok(())
    })?;
    let like_ids = columns.iter().zip(&names).filter_map(|(column, name)| {
        let (format, _) = decoding.judge(column, filter).format_of_rows()?;
        Some(format!("column {name} has ids of {}", format.name))
    });
    let like_ids: Vec<_> = like_ids.collect();
    Ok(match like_ids.as_slice() {
        [] => format!(
            "the format of no column could be determined; the columns are {}",
            names.join(", ")
        ),
        _ => like_ids.join(", "),
    })
}

impl CsvDecoding<'_> {
    /// Copies the records of the file to `out`, and adds columns about the ids in them. Reads
    /// standard input if `file` is `None`.
    ///
    /// # Errors
    /// Returns exit code 64 if the column does not exist, 65 if the input is not CSV, and 74 if
    /// input or output fails.
    pub(super) fn copy(&self, file: Option<&Path>, out: impl Write) -> Result<Counts, Failure> {
        with_input(file, |input| self.copy_records(input, out))
    }

    fn copy_records(&self, input: &mut dyn Read, out: impl Write) -> Result<Counts, CsvError> {
        let mut records = CsvRecords::new(input, self.separator)?;
        let mut writer = records.writer(out);
        let mut record = ByteRecord::new();
        let mut counts = Counts::default();
        if !records.read(&mut record)? {
            return Ok(counts);
        }
        let index = self.column.index_in(&record)?;
        let mut first_rows = Vec::new();
        if self.has_header {
            ADDED
                .iter()
                .for_each(|name| add_name(&mut record, index, name));
            writer.write_byte_record(&record)?;
        } else {
            first_rows.push(record.clone());
        }
        let mut kept = 0;
        while self.filter.format.is_none()
            && first_rows.len() < JUDGED_ROWS_MAX
            && kept < JUDGED_BYTES_MAX
            && records.read(&mut record)?
        {
            kept += record.as_slice().len();
            first_rows.push(record.clone());
        }
        let ids_of = self.format_of_rows(&first_rows, index);
        counts.is_untold = self.filter.format.is_none() && ids_of.is_none() && kept > 0;
        for mut row in first_rows {
            self.write_row(&mut row, index, ids_of, &mut counts, &mut writer)?;
        }
        while records.read(&mut record)? {
            self.write_row(&mut record, index, ids_of, &mut counts, &mut writer)?;
        }
        writer.flush().map_err(csv::Error::from)?;
        Ok(counts)
    }

    /// Returns the format of the id column, which is determined from the first rows. Returns `None`
    /// if the format is unknown. Prints warnings about the column, for example that its numbers
    /// have lost their last digits.
    fn format_of_rows(&self, rows: &[ByteRecord], index: usize) -> Option<ColumnIds<'_>> {
        let mut column = IdColumn::default();
        for row in rows {
            let text = String::from_utf8_lossy(&row[index]);
            self.decoding.inspect(&mut column, &text, self.filter);
        }
        let verdict = self.decoding.judge(&column, self.filter);
        for note in &verdict.notes {
            print_note(format_args!("warning: {}", note.detail));
        }
        let (format, encoding) = verdict.format_of_rows()?;
        Some(ColumnIds {
            format: &format.name,
            encoding: encoding.name(),
            may_lack_digits: column.may_lack_digits(),
        })
    }

    fn write_row(
        &self,
        row: &mut ByteRecord,
        index: usize,
        ids_of: Option<ColumnIds<'_>>,
        counts: &mut Counts,
        writer: &mut Writer<impl Write>,
    ) -> Result<(), CsvError> {
        let text = String::from_utf8_lossy(&row[index]).into_owned();
        let reading = self.decoding.best_in_column(&text, self.filter, ids_of);
        let format = ids_of.map(|ids| ids.format);
        counts.read += 1;
        let is_id = add_fields(row, &reading, format);
        counts.unmatched += u64::from(!is_id && !self.decoding.is_number(&text, self.filter));
        Ok(writer.write_byte_record(row)?)
    }
}

/// Adds the name of a new column to the column names. If `names` already contains `time`, for
/// example, the new name is `id_time` or else `id_time_2`, where `id` is the name of the id column.
fn add_name(names: &mut ByteRecord, index: usize, name: &str) {
    let of_id = [&names[index], b"_", name.as_bytes()].concat();
    let numbered = (2..).map(|number: u64| [&*of_id, format!("_{number}").as_bytes()].concat());
    let mut choices = [name.as_bytes().to_vec(), of_id.clone()]
        .into_iter()
        .chain(numbered);
    let free = choices.find(|choice| names.iter().all(|known| known != choice));
    names.push_field(&free.expect("the numbers do not end"));
}

/// Adds the fields of the new columns to a row. Returns `false` if the text in the id column could
/// not be read as an id.
fn add_fields(row: &mut ByteRecord, reading: &BriefReading<'_>, format: Option<&str>) -> bool {
    let (shown, is_ambiguous) = match reading.row() {
        None => (reading.own(), reading.is_ambiguous()),
        Some(RowReading::Own) => (reading.own(), false),
        Some(RowReading::As(of_column)) => (Some(&**of_column), false),
        // The text is not an id of the column's format. Show it as an id of another format only if
        // exactly one other format fits, because a guess may be wrong.
        Some(RowReading::Other) => (
            reading.own().filter(|_| !reading.is_ambiguous()),
            reading.is_ambiguous(),
        ),
    };
    row.push_field(
        shown
            .map_or("", |shown| &shown.found.format().name)
            .as_bytes(),
    );
    let time = shown.and_then(MatchReading::time);
    row.push_field(time.as_deref().unwrap_or_default().as_bytes());
    let worker = shown.and_then(|shown| {
        let mut numbers = shown.parts.numbers();
        numbers.find(|(field, _, _)| field.kind == FieldKind::Worker)
    });
    let mut digits = itoa::Buffer::new();
    let worker = worker.map_or("", |(_, value, _)| digits.format(value));
    row.push_field(worker.as_bytes());
    row.push_field(if is_ambiguous { b"true" } else { b"" });
    row.push_field(note_on(reading, shown, format).as_bytes());
    shown.is_some()
}

/// Returns the text of the column `note` for a row. The text is empty if the row needs no note.
fn note_on(
    reading: &BriefReading<'_>,
    shown: Option<&MatchReading<'_>>,
    format: Option<&str>,
) -> String {
    let mut notes = Vec::new();
    if let (Some(RowReading::Other), Some(format)) = (reading.row(), format) {
        notes.push(format!("not an id of {format}, the format of the column"));
    }
    if let Some(shown) = shown.filter(|_| !reading.is_as_given()) {
        notes.push(format!("read as {}", shown.canonical()));
    }
    notes.extend(reading.notes().iter().map(|note| note.detail.clone()));
    notes.join("; ")
}
