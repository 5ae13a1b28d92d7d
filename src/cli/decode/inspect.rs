//! The command `idmint inspect`, which finds out the common format of the ids in files.

use std::io::{self, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use csv::ByteRecord;

use super::csv_reading::{BUFFER_LEN, Column, CsvError, CsvRecords, Separator, with_input};
use super::decode::FilterArgs;
use super::fingerprints::Fingerprints;
use super::lines::read_line;
use crate::cli::exit::Failure;
use crate::cli::print::{json, print};
use crate::cli::settings::Settings;
use crate::server;
use idmint_core::id::{DecodeFilter, Format, IdColumn, Rule};
use idmint_core::time::{Clock, UnixNanos};
use idmint_service::DecodingAt;

/// Find the common format of the ids in files, offline.
#[derive(Debug, Args)]
pub(in crate::cli) struct Inspect {
    /// The files, one id a line, or CSV with --column; standard input if absent.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The column with the ids if the files are CSV: its name in the header, or its number, from 1.
    #[arg(long, value_name = "NAME|NUMBER")]
    column: Option<String>,
    /// The separator of the columns: , ; | or tab. By default it is found in the first lines.
    #[arg(long, value_name = "SEPARATOR", requires = "column")]
    separator: Option<Separator>,
    /// The first line of each CSV file is a header. Not needed if --column is a name.
    #[arg(long, requires = "column")]
    header: bool,
    #[command(flatten)]
    filter: FilterArgs,
    /// Accept canonical text only.
    #[arg(long)]
    strict: bool,
    /// A JSON object, as POST /inspect returns; the default unless the output is a terminal.
    #[arg(long, conflicts_with = "text")]
    json: bool,
    /// Lines for people, the default on a terminal.
    #[arg(long)]
    text: bool,
    #[command(flatten)]
    settings: Settings,
}

impl Inspect {
    /// Prints the verdict on the column of ids, which is its format or the reason why its format is
    /// unknown.
    ///
    /// # Errors
    /// Returns exit code 1 if no verdict is possible, 64 if a format or column is unknown, 65 if
    /// the input is not CSV, 74 if input or output fails, and 78 if the configuration is invalid.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let config = self.settings.load_without_slot()?;
        let decoding = server::decoding(&config)?;
        let filter = self.filter.filter(self.strict);
        decoding.check(filter).map_err(Failure::usage)?;
        let now = Clock::system().now();
        let mut of_format = decoding.formats().iter();
        let of_format = of_format.find(|format| Some(format.name.as_str()) == filter.format);
        let of_format = of_format.filter(|format| format.rule == Rule::Sequenced);
        let mut inspection = Inspection {
            decoding: decoding.at(now),
            filter,
            now,
            mintable: of_format.map(|format| (format.as_ref(), 0)),
            column: IdColumn::default(),
            fingerprints: Fingerprints::new(),
        };
        let column = self.column.as_deref().map(Column::from);
        let files = self.files.iter().map(|file| Some(file.as_path()));
        let standard_input = self.files.is_empty().then_some(None);
        files
            .chain(standard_input)
            .try_for_each(|file: Option<&Path>| {
                with_input(file, |input| match &column {
                    None => inspection.read_lines(input),
                    Some(column) => inspection.read_csv(input, column, self.separator, self.header),
                })
            })?;
        let Inspection {
            decoding,
            filter,
            column,
            fingerprints,
            mintable,
            ..
        } = inspection;
        let duplicates = fingerprints.count_repeated()?;
        let verdict = decoding
            .verdict(&column, duplicates, filter)
            .with_mintable(mintable.map(|(_, count)| count));
        if self.text || !self.json && io::stdout().is_terminal() {
            print(format_args!("{verdict}"))?;
        } else {
            print(format_args!("{}\n", json(&verdict)))?;
        }
        if verdict.is_told() {
            Ok(())
        } else {
            Err(Failure::no(
                "the format of these lines could not be determined",
            ))
        }
    }
}

/// The state of an inspection of a column of ids.
struct Inspection<'a> {
    decoding: DecodingAt<'a>,
    filter: DecodeFilter<'a>,
    column: IdColumn,
    fingerprints: Fingerprints,
    now: UnixNanos,
    /// The format in `--format`, and the number of lines whose ids this format could mint again.
    /// The time in such an id has not passed, and the format may use its worker number. `None`
    /// without `--format`, or if the rule of the format is not [`Rule::Sequenced`].
    mintable: Option<(&'a Format, u64)>,
}

impl Inspection<'_> {
    fn read_lines(&mut self, input: &mut dyn Read) -> Result<(), CsvError> {
        let mut input = BufReader::with_capacity(BUFFER_LEN, input);
        let mut line = Vec::new();
        for number in 1.. {
            match read_line(&mut input, &mut line, number).map_err(csv::Error::from)? {
                None => break,
                Some(text) => self.add(text)?,
            }
        }
        Ok(())
    }

    fn read_csv(
        &mut self,
        input: &mut dyn Read,
        column: &Column,
        separator: Option<Separator>,
        has_header: bool,
    ) -> Result<(), CsvError> {
        let mut records = CsvRecords::new(input, separator)?;
        let mut record = ByteRecord::new();
        if !records.read(&mut record)? {
            return Ok(());
        }
        let index = column.index_in(&record)?;
        if !has_header && matches!(column, Column::Number(_)) {
            self.add(&record[index])?;
        }
        while records.read(&mut record)? {
            self.add(&record[index])?;
        }
        Ok(())
    }

    fn add(&mut self, text: &[u8]) -> Result<(), CsvError> {
        let text = String::from_utf8_lossy(text);
        if let Some((format, count)) = &mut self.mintable {
            *count += u64::from(format.can_mint_again(&text, self.now));
        }
        let fingerprint = self.decoding.inspect(&mut self.column, &text, self.filter);
        fingerprint
            .map_or(Ok(()), |fingerprint| self.fingerprints.add(fingerprint))
            .map_err(CsvError::Other)
    }
}
