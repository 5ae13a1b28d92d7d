//! `idmint inspect`.

use std::io::{self, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use csv::ByteRecord;

use super::csv_reading::{BUFFER_LEN, Column, CsvError, CsvRecords, with_input};
use super::fingerprints::Fingerprints;
use super::lines::read_line;
use crate::cli::exit::{Exit, Failure};
use crate::cli::print::print;
use crate::cli::settings::Settings;
use crate::id::{DecodeFilter, IdColumn};
use crate::server;
use crate::service::DecodingAt;
use crate::time::Clock;

/// Say what the ids of files are, all of them together, offline.
#[derive(Debug, Args)]
pub(in crate::cli) struct Inspect {
    /// The files, one id a line, or with --column CSV; without any, standard input is read.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The files are CSV, and this column has the ids: its name in the header, or its number, from 1.
    #[arg(long, value_name = "NAME|NUMBER")]
    column: Option<String>,
    /// The first line of each CSV file is a header; with the name of a column it is one anyway.
    #[arg(long, requires = "column")]
    header: bool,
    /// They are ids of this format.
    #[arg(long)]
    format: Option<String>,
    /// They are written in an encoding of this name.
    #[arg(long)]
    encoding: Option<String>,
    /// A JSON object, as POST /inspect answers; this is what anything but a terminal gets.
    #[arg(long, conflicts_with = "text")]
    json: bool,
    /// Lines for people, as a terminal gets them.
    #[arg(long)]
    text: bool,
    #[command(flatten)]
    settings: Settings,
}

impl Inspect {
    /// Prints the verdict.
    ///
    /// # Errors
    /// 1 when it cannot be told, 64 for a format or a column that there is not, 65 for what is no CSV, 74 when input or output fail, 78.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let config = self.settings.load(toml::Table::new())?;
        let decoding = server::decoding(&config)?;
        let filter = DecodeFilter {
            format: self.format.as_deref(),
            encoding: self.encoding.as_deref(),
            ..DecodeFilter::default()
        };
        decoding
            .check(filter)
            .map_err(|unknown| Failure::new(Exit::Usage, unknown))?;
        let decoding = decoding.at(Clock::system().now());
        let mut inspection = Inspection {
            decoding,
            filter,
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
                    Some(column) => inspection.read_csv(input, column, self.header),
                })
            })?;
        let Inspection {
            decoding,
            filter,
            column,
            fingerprints,
        } = inspection;
        let duplicates = fingerprints
            .count_repeated()
            .map_err(|error| Failure::new(Exit::Io, error))?;
        let verdict = decoding.verdict(&column, duplicates, filter);
        if self.text || !self.json && io::stdout().is_terminal() {
            print(format_args!("{verdict}"))?;
        } else {
            let json = serde_json::to_string(&verdict)
                .expect("answers are strings, numbers and lists of them");
            print(format_args!("{json}\n"))?;
        }
        if verdict.is_told() {
            Ok(())
        } else {
            Err(Failure::new(Exit::No, "it cannot be told what these are"))
        }
    }
}

/// What is read so far.
struct Inspection<'a> {
    decoding: DecodingAt<'a>,
    filter: DecodeFilter<'a>,
    column: IdColumn,
    fingerprints: Fingerprints,
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
        has_header: bool,
    ) -> Result<(), CsvError> {
        let mut records = CsvRecords::new(input)?;
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
        let fingerprint = self.decoding.inspect(&mut self.column, &text, self.filter);
        fingerprint
            .map_or(Ok(()), |fingerprint| self.fingerprints.add(fingerprint))
            .map_err(csv::Error::from)?;
        Ok(())
    }
}
