//! The command `idmint decode`, which decodes ids without a service.

use std::convert::Infallible;
use std::io::{self, BufReader, BufWriter, ErrorKind, IsTerminal, Read, StdoutLock, Write};
use std::path::Path;

use clap::Args;

use super::csv_columns::{CsvDecoding, columns_like_ids};
use super::csv_reading::{Column, Separator};
use super::lines::read_line;
use super::text_input::TextInput;
use crate::cli::exit::{Exit, Failure};
use crate::cli::print::print_note;
use crate::cli::settings::Settings;
use crate::server;
use idmint_core::id::{DecodeFilter, Liberty};
use idmint_core::time::Clock;
use idmint_service::DecodingAt;
use idmint_wire::{Style, ruler};

/// The size of the buffers for standard input and output in bytes.
const BUFFER_LEN: usize = 64 * 1024;

/// Decode ids, offline.
#[derive(Debug, Args)]
pub(in crate::cli) struct Decode {
    /// The ids, or the file with --csv; standard input if absent, one id a line.
    #[arg(value_name = "ID", value_parser = without_mark)]
    ids: Vec<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Accept canonical text only. By default also variants are read: other case, quotes or braces, missing hyphens and so on.
    #[arg(long)]
    strict: bool,
    /// The default.
    #[arg(long, conflicts_with = "strict", hide = true)]
    lenient: bool,
    /// One JSON object a line, as GET /decode/{id} returns; the default unless the output is a terminal.
    #[arg(long, conflicts_with = "text")]
    json: bool,
    /// Drawings, the default on a terminal.
    #[arg(long)]
    text: bool,
    /// Print one line for each id, as in the text response of POST /decode: id, format, encoding,
    /// time and fields, separated by tabs.
    #[arg(long, conflicts_with_all = ["json", "text"])]
    brief: bool,
    /// Read a CSV file, and print it with the columns format, time, worker, ambiguous and note added for the ids in --column.
    #[arg(long, conflicts_with_all = ["json", "text", "brief"])]
    csv: bool,
    /// The column with the ids: its name in the header, or its number, from 1.
    #[arg(long, value_name = "NAME|NUMBER", requires = "csv")]
    column: Option<String>,
    /// The separator of the columns: , ; | or tab. By default it is found in the first lines.
    #[arg(long, value_name = "SEPARATOR", requires = "csv")]
    separator: Option<Separator>,
    /// The first line of the CSV file is a header. Not needed if --column is a name.
    #[arg(long, requires = "csv")]
    header: bool,
    #[command(flatten)]
    settings: Settings,
}

/// The options that select formats and encodings.
#[derive(Debug, Args)]
pub(super) struct FilterArgs {
    /// Try only this format.
    #[arg(long)]
    format: Option<String>,
    /// Try only encodings of this name.
    #[arg(long)]
    encoding: Option<String>,
}

impl FilterArgs {
    /// Returns the filter that selects the formats and encodings to try. If `is_strict` is `true`,
    /// only canonical text is accepted as an id.
    pub(super) fn filter(&self, is_strict: bool) -> DecodeFilter<'_> {
        let liberty = match is_strict {
            true => Liberty::Canonical,
            false => Liberty::Lenient,
        };
        let filter = DecodeFilter {
            format: self.format.as_deref(),
            encoding: self.encoding.as_deref(),
            among: None,
            liberty,
        };
        filter.with_current_names()
    }
}

/// The mark that `mark_ids` puts before an id that begins with a hyphen, so that the id is not
/// parsed as an option. The mark is a NUL character, because no argument of a process can contain
/// one.
pub(in crate::cli) const HYPHEN_MARK: &str = "\0";

fn without_mark(text: &str) -> Result<String, Infallible> {
    Ok(text.strip_prefix(HYPHEN_MARK).unwrap_or(text).to_owned())
}

impl Decode {
    /// Prints the possible readings of each id.
    ///
    /// # Errors
    /// Returns exit code 1 if a text is not an id, 64 if the format, the encoding or the column is
    /// unknown, 65 if a file is not CSV, 74 if input or output fails, and 78 if the configuration is
    /// invalid.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let config = self.settings.load_without_slot()?;
        let decoding = server::decoding(&config)?;
        let filter = self.filter.filter(self.strict);
        decoding.check(filter).map_err(Failure::usage)?;
        let decoding = decoding.at(Clock::system().now());
        if self.csv {
            return self.add_columns(&decoding);
        }
        let mut report = Report {
            filter,
            form: self.form(),
            decoding,
            out: BufWriter::with_capacity(BUFFER_LEN, io::stdout().lock()),
            json: Vec::new(),
            written: 0,
            unmatched: 0,
        };
        let done = if self.ids.is_empty() {
            TextInput::new(io::stdin().lock())
                .and_then(|input| report.write_answers(BufReader::with_capacity(BUFFER_LEN, input)))
        } else {
            self.ids.iter().try_for_each(|id| report.write_answer(id))
        };
        match done.and_then(|()| report.out.flush()) {
            // The reader of the output may have closed the pipe. This is not an error.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            Err(error) if error.kind() == ErrorKind::InvalidData => Err(Failure::no(error)),
            Err(error) => Err(Failure::new(Exit::Io, error)),
            Ok(()) => check_all_matched(report.unmatched, report.written),
        }
    }

    fn add_columns(&self, decoding: &DecodingAt<'_>) -> Result<(), Failure> {
        let file = match self.ids.as_slice() {
            [] => None,
            [file] => Some(Path::new(file)),
            _ => {
                return Err(Failure::usage(
                    "--csv reads only one file, but several were given",
                ));
            }
        };
        let Some(column) = self.column.as_deref().map(Column::from) else {
            let why = match columns_like_ids(file, self.separator, decoding) {
                Ok(columns) => format!("--column is missing; {columns}"),
                Err(_) => "--column is missing".to_owned(),
            };
            return Err(Failure::usage(why));
        };
        let has_header = self.header || matches!(column, Column::Name(_));
        let csv = CsvDecoding {
            column: &column,
            separator: self.separator,
            has_header,
            decoding,
            filter: self.filter.filter(self.strict),
        };
        let counts = csv.copy(file, io::stdout().lock())?;
        if counts.is_untold {
            print_note(
                "warning: the format of the column is not certain, so each row is read by itself; name the \
                 format with --format",
            );
        }
        check_all_matched(counts.unmatched, counts.read)
    }

    fn form(&self) -> Form {
        let is_terminal = io::stdout().is_terminal();
        // Colours are not used if `NO_COLOR` is set: see https://no-color.org.
        let wants_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match (self.json, self.text || is_terminal) {
            _ if self.brief => Form::Brief,
            (false, true) if is_terminal && !wants_none => Form::Drawing(Style::Colour),
            (false, true) => Form::Drawing(Style::Plain),
            _ => Form::Json,
        }
    }
}

fn check_all_matched(unmatched: u64, of: u64) -> Result<(), Failure> {
    if unmatched == 0 {
        return Ok(());
    }
    Err(Failure::no(format!(
        "{unmatched} of {of} texts are not ids of any format"
    )))
}

/// The form of the output.
#[derive(Debug, Clone, Copy)]
enum Form {
    Brief,
    Json,
    Drawing(Style),
}

/// The output of the command, with counts of all texts and of the texts that are not ids.
struct Report<'a> {
    decoding: DecodingAt<'a>,
    filter: DecodeFilter<'a>,
    form: Form,
    out: BufWriter<StdoutLock<'static>>,
    /// The buffer for one line of JSON.
    json: Vec<u8>,
    written: u64,
    unmatched: u64,
}

impl Report<'_> {
    fn write_answer(&mut self, id: &str) -> io::Result<()> {
        let is_match = match self.form {
            Form::Brief => self.write_brief(id)?,
            Form::Json => self.write_json(id)?,
            Form::Drawing(style) => self.draw(id, style)?,
        };
        self.written += 1;
        self.unmatched += u64::from(!is_match);
        Ok(())
    }

    fn write_brief(&mut self, id: &str) -> io::Result<bool> {
        let reading = self.decoding.best(id, self.filter);
        writeln!(self.out, "{reading}")?;
        Ok(reading.found().is_some() || self.decoding.is_number(id, self.filter))
    }

    fn write_json(&mut self, id: &str) -> io::Result<bool> {
        let answer = self.decoding.decode(id, self.filter);
        self.json.clear();
        answer.write_json(&mut self.json);
        self.json.push(b'\n');
        self.out.write_all(&self.json)?;
        Ok(answer.is_match())
    }

    fn draw(&mut self, id: &str, style: Style) -> io::Result<bool> {
        let answer = self.decoding.decode(id, self.filter);
        let gap = if self.written == 0 { "" } else { "\n" };
        write!(self.out, "{gap}{}", ruler(&answer, style))?;
        Ok(answer.is_match())
    }

    /// Decodes each line as soon as it arrives. Before waiting for more input, flushes the output.
    fn write_answers(&mut self, mut input: BufReader<impl Read>) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            if input.buffer().is_empty() {
                self.out.flush()?;
            }
            let Some(text) = read_line(&mut input, &mut line, self.written + 1)? else {
                return Ok(());
            };
            self.write_answer(&String::from_utf8_lossy(text))?;
        }
    }
}
