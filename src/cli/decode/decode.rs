//! `idmint decode`.

use std::io::{self, BufReader, BufWriter, ErrorKind, IsTerminal, Read, StdoutLock, Write};
use std::path::Path;

use clap::Args;

use super::csv_columns::{Counts, CsvDecoding};
use super::csv_reading::Column;
use super::lines::read_line;
use crate::cli::exit::{Exit, Failure};
use crate::cli::settings::Settings;
use crate::id::DecodeFilter;
use crate::server;
use crate::service::DecodingAt;
use crate::time::Clock;
use crate::wire::{Style, ruler};

/// Bytes of standard input that are read at once, and of standard output that are written at once.
const BUFFER_LEN: usize = 64 * 1024;

/// Say what ids can be, offline.
#[derive(Debug, Args)]
pub(in crate::cli) struct Decode {
    /// The ids, or with --csv the file; without any they are read from standard input, one a line.
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Try only this format.
    #[arg(long)]
    format: Option<String>,
    /// Try only encodings of this name.
    #[arg(long)]
    encoding: Option<String>,
    /// Also read what people write: in the other case, in quotes or braces, without hyphens, with I, L or O in base 32.
    #[arg(long)]
    lenient: bool,
    /// One JSON object a line, as GET /decode/{id} answers; this is what anything but a terminal gets.
    #[arg(long, conflicts_with = "text")]
    json: bool,
    /// Drawings, as a terminal gets them.
    #[arg(long)]
    text: bool,
    /// One line an id, as POST /decode answers in text: id, format, encoding, time and fields between tabs.
    #[arg(long, conflicts_with_all = ["json", "text"])]
    brief: bool,
    /// A CSV file instead of ids: it is printed with the columns format, time and worker added, of the ids in --column.
    #[arg(long, requires = "column", conflicts_with_all = ["json", "text", "brief"])]
    csv: bool,
    /// The column with the ids: its name in the header, or its number, from 1.
    #[arg(long, value_name = "NAME|NUMBER", requires = "csv")]
    column: Option<String>,
    /// The first line of the CSV file is a header; with the name of a column it is one anyway.
    #[arg(long, requires = "csv")]
    header: bool,
    #[command(flatten)]
    settings: Settings,
}

impl Decode {
    /// Prints what each id can be.
    ///
    /// # Errors
    /// 1 when one of them is none, 64 for a format that there is not, 74 when input or output fail, 78.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let config = self.settings.load(toml::Table::new())?;
        let decoding = server::decoding(&config)?;
        if let Some(unknown) = self
            .format
            .as_ref()
            .and_then(|name| decoding.format(name).err())
        {
            return Err(Failure::new(Exit::Usage, format!("--format: {unknown}")));
        }
        let decoding = decoding.at(Clock::system().now());
        if let Some(column) = self.column.as_deref().map(Column::from) {
            return self.add_columns(&column, &decoding);
        }
        let mut report = Report {
            filter: self.filter(),
            form: self.form(),
            decoding,
            out: BufWriter::with_capacity(BUFFER_LEN, io::stdout().lock()),
            json: Vec::new(),
            written: 0,
            unmatched: 0,
        };
        let done = if self.ids.is_empty() {
            report.write_answers(BufReader::with_capacity(BUFFER_LEN, io::stdin().lock()))
        } else {
            self.ids.iter().try_for_each(|id| report.write_answer(id))
        };
        match done.and_then(|()| report.out.flush()) {
            // Whoever reads may have seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                Err(Failure::new(Exit::No, error))
            }
            Err(error) => Err(Failure::new(Exit::Io, error)),
            Ok(()) => check_all_matched(report.unmatched, report.written),
        }
    }

    fn add_columns(&self, column: &Column, decoding: &DecodingAt<'_>) -> Result<(), Failure> {
        let file = match self.ids.as_slice() {
            [] => None,
            [file] => Some(Path::new(file)),
            _ => return Err(Failure::new(Exit::Usage, "--csv reads one file")),
        };
        let has_header = self.header || matches!(column, Column::Name(_));
        let csv = CsvDecoding {
            column,
            has_header,
            decoding,
            filter: self.filter(),
        };
        let Counts { read, unmatched } = csv.copy(file, io::stdout().lock())?;
        check_all_matched(unmatched, read)
    }

    fn filter(&self) -> DecodeFilter<'_> {
        DecodeFilter {
            format: self.format.as_deref(),
            encoding: self.encoding.as_deref(),
            lenient: self.lenient,
            ..DecodeFilter::default()
        }
    }

    fn form(&self) -> Form {
        let is_terminal = io::stdout().is_terminal();
        // https://no-color.org
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
    Err(Failure::new(
        Exit::No,
        format!("{unmatched} of {of} are ids of no format"),
    ))
}

/// How an answer is printed.
#[derive(Debug, Clone, Copy)]
enum Form {
    Brief,
    Json,
    Drawing(Style),
}

/// What is printed, and how it went so far.
struct Report<'a> {
    decoding: DecodingAt<'a>,
    filter: DecodeFilter<'a>,
    form: Form,
    out: BufWriter<StdoutLock<'static>>,
    /// One answer, before it goes out.
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
        Ok(reading.found().is_some())
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

    /// Answers each line as it comes; what is written is flushed before waiting for more.
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
