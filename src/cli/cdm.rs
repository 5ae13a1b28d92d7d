//! `idmint cdm`.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::exit::{Exit, Failure};
use super::running_service::ask_once;
use super::settings::Settings;
use crate::client::CdmBody;
use crate::conjunction::{CdmError, CdmForm, Document, GroupRequest, GroupedMinter, Message};
use crate::id::{Format, Rule};
use crate::server::Catalog;
use crate::storage::replace_file;

/// What standard input is called.
const STDIN: &str = "-";

/// Put conjunction ids into Conjunction Data Messages: KVN, XML, or the JSON of space-track.org.
///
/// Offline an id is made of the report alone, as a service does that stores no conjunctions; with --server it is the
/// one that the service gives.
#[derive(Debug, Args)]
pub(super) struct Cdm {
    /// The documents; without any one is read from standard input.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Replace the files; otherwise the documents go to standard output.
    #[arg(long, conflicts_with = "ids", requires = "files")]
    in_place: bool,
    /// Print only file, line and id of each message, with tabs between them.
    #[arg(long)]
    ids: bool,
    /// The format.
    #[arg(long, default_value = "conjunction")]
    format: String,
    /// The spelling; the canonical one if absent.
    #[arg(long)]
    encoding: Option<String>,
    /// Ask the service that listens there.
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    server: Option<String>,
    #[command(flatten)]
    settings: Settings,
}

impl Cdm {
    /// Prints or replaces every document, or none.
    ///
    /// # Errors
    /// 65 for a document that is malformed or has another id, naming file and line; 64 for a format or a spelling that
    /// there is not; 74 when files fail; 78; and with a service 1 when it refuses, 69 when it cannot be reached.
    pub(super) fn run(self) -> Result<(), Failure> {
        let source = match &self.server {
            Some(url) => Source::Service { url, format: &self.format, encoding: self.encoding.as_deref() },
            None => self.offline()?,
        };
        let inputs = if self.files.is_empty() { vec![Input::of_stdin()?] } else { self.read_files()? };
        let outputs = inputs.iter().map(|input| input.process(&source, self.ids)).collect::<Result<Vec<_>, _>>()?;
        if self.in_place {
            let changed = inputs.iter().zip(&outputs).filter(|(input, output)| input.bytes != **output);
            return changed.into_iter().try_for_each(|(input, output)| {
                replace_file(Path::new(&input.name), output).map_err(|error| input.failed(Exit::Io, error))
            });
        }
        match outputs.iter().try_for_each(|output| io::stdout().write_all(output)) {
            // Whoever reads may have seen enough.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::new(Exit::Io, error)),
            _ => Ok(()),
        }
    }

    fn read_files(&self) -> Result<Vec<Input>, Failure> {
        let read = |path: &PathBuf| {
            let name = path
                .to_str()
                .ok_or_else(|| Failure::new(Exit::Usage, format!("{}: the path is not UTF-8", path.display())))?;
            let bytes = fs::read(path).map_err(|error| Failure::new(Exit::Io, format!("{name}: {error}")))?;
            Ok(Input { name: name.to_owned(), bytes })
        };
        self.files.iter().map(read).collect()
    }

    fn offline(&self) -> Result<Source<'static>, Failure> {
        let config = self.settings.load(toml::Table::new())?;
        let catalog = Catalog::of(&config)?;
        let grouped: Vec<_> = catalog.formats.iter().filter(|format| format.rule == Rule::Grouped).collect();
        let Some(format) = grouped.iter().find(|format| format.name == self.format) else {
            let names: Vec<_> = grouped.iter().map(|format| format.name.as_str()).collect();
            let message =
                format!("--format {}: of formats minted from reports there is {}", self.format, names.join(", "));
            return Err(Failure::new(Exit::Usage, message));
        };
        let names: Vec<_> = format.encodings.iter().map(|encoding| encoding.name()).collect();
        let encoding = match &self.encoding {
            None => 0,
            Some(name) => names.iter().position(|known| known == name).ok_or_else(|| {
                Failure::new(Exit::Usage, format!("--encoding {name}: there is {}", names.join(", ")))
            })?,
        };
        let minter = GroupedMinter::new(Arc::clone(format), config.conjunction.pair_order);
        Ok(Source::Offline { minter: Arc::new(minter), format: Arc::clone(format), encoding })
    }
}

/// Where ids come from.
enum Source<'a> {
    /// The reports themselves.
    Offline { minter: Arc<GroupedMinter>, format: Arc<Format>, encoding: usize },
    /// A running service.
    Service { url: &'a str, format: &'a str, encoding: Option<&'a str> },
}

/// A document as it was read.
struct Input {
    name: String,
    bytes: Vec<u8>,
}

impl Input {
    fn of_stdin() -> Result<Input, Failure> {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map_err(|error| Failure::new(Exit::Io, error))?;
        Ok(Input { name: STDIN.to_owned(), bytes })
    }

    /// The document with its ids, or a line for each of them.
    fn process(&self, source: &Source<'_>, only_ids: bool) -> Result<Vec<u8>, Failure> {
        let form = CdmForm::of(&self.bytes);
        let document = Document::read(form, &self.bytes).map_err(|error| self.malformed(&error))?;
        match source {
            Source::Offline { minter, format, encoding } => {
                let ids = ids_of(&document, minter, format, *encoding).map_err(|error| self.malformed(&error))?;
                Ok(if only_ids { self.lines(&document, ids.iter()) } else { document.annotate(&ids) })
            }
            Source::Service { url, format, encoding } => {
                let media_type = match form {
                    CdmForm::Kvn => "text/plain",
                    CdmForm::Xml => "application/xml",
                    CdmForm::SpaceTrack => "application/json",
                };
                let body = CdmBody { media_type, bytes: self.bytes.clone() };
                let answer = ask_once(url, async |client| {
                    if only_ids {
                        let ids = client.ids_of_document(format, *encoding, body).await?;
                        return Ok(self.lines(&document, ids.lines()));
                    }
                    client.annotate_document(format, *encoding, body).await
                });
                answer.map_err(|failure| self.failed(failure.exit(), failure))
            }
        }
    }

    fn lines(&self, document: &Document<&Vec<u8>>, ids: impl Iterator<Item = impl AsRef<str>>) -> Vec<u8> {
        let line =
            |(message, id): (&Message, _)| format!("{}\t{}\t{}\n", self.name, message.line(), AsRef::as_ref(&id));
        document.messages().iter().zip(ids).map(line).collect::<String>().into_bytes()
    }

    fn malformed(&self, error: &CdmError) -> Failure {
        Failure::new(Exit::Damaged, format!("{}:{}: {}", self.name, error.line, error.without_line()))
    }

    fn failed(&self, exit: Exit, error: impl std::fmt::Display) -> Failure {
        Failure::new(exit, format!("{}: {error}", self.name))
    }
}

/// The ids of the messages of a document, decided as a service does that stores no conjunctions.
fn ids_of(
    document: &Document<&Vec<u8>>,
    minter: &Arc<GroupedMinter>,
    format: &Format,
    encoding: usize,
) -> Result<Vec<String>, CdmError> {
    let sightings = document.sightings(format, encoding)?;
    let encoding = &format.encodings[encoding];
    let outcomes = GroupRequest::new(Arc::clone(minter), &sightings).and_then(|request| request.decide_ungrouped());
    let outcomes = outcomes.map_err(|refusal| document.explain(&refusal, encoding))?;
    Ok(outcomes.iter().map(|outcome| encoding.to_text(outcome.id)).collect())
}
