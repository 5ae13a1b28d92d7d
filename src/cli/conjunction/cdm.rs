//! The command `idmint cdm`, which inserts conjunction ids into Conjunction Data Messages.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::offline::GroupedOffline;
use crate::cli::exit::{Exit, Failure};
use crate::cli::print::{print_bytes, print_note};
use crate::cli::running_service::{AccessArgs, ask_once};
use crate::cli::settings::Settings;
use idmint_client::CdmBody;
use idmint_records::conjunction::{
    CdmError, CdmForm, Document, GroupRequest, Message, NoteForm, NotedRule, ObjectRules, ReadRule,
    SentReport,
};
use idmint_storage::replace_file;

/// The argument that stands for standard input.
const STDIN: &str = "-";

/// Put conjunction ids into Conjunction Data Messages: KVN (lines of KEY = VALUE), XML, JSON, or
/// the CSV of the services space-track.org and SOCRATES.
///
/// Without --server, each id is computed from the report alone, as in a service that stores no
/// conjunctions. With --server, the service assigns the ids.
#[derive(Debug, Args)]
pub(in crate::cli) struct Cdm {
    /// The documents; standard input if absent.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Replace the files; otherwise the documents go to standard output.
    #[arg(long, conflicts_with = "ids", requires = "files")]
    in_place: bool,
    /// Print only file, line and id of each message, with tabs between them. With --server, this is
    /// the id that the service assigns, even if the message contains another id.
    #[arg(long)]
    ids: bool,
    /// Keep the ids that messages contain, even if the time of closest approach in a message is far
    /// from the time in its id. Without --server, such ids are always kept.
    #[arg(long, requires = "server")]
    keep_noted: bool,
    /// The format.
    #[arg(long, default_value = "conjunction")]
    format: String,
    /// The encoding; the canonical one if absent.
    #[arg(long)]
    encoding: Option<String>,
    /// The address of the service to ask.
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    server: Option<String>,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    settings: Settings,
}

impl Cdm {
    /// Prints all documents, or replaces the files of all documents. If any document has an error,
    /// no document is printed or replaced. Some files may be replaced if another file cannot be.
    ///
    /// Returns exit code 65 with file and line if a document is malformed or contains another id,
    /// 64 if the format or encoding is unknown, 74 if a file cannot be read or written, and 78 if
    /// the configuration is invalid. With a service, returns 1 if the service refuses the request,
    /// and 69 if it is unreachable.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let source = match &self.server {
            Some(url) => Source::Service {
                url,
                access: &self.access,
                format: &self.format,
                encoding: self.encoding.as_deref(),
                keep_noted: self.keep_noted,
            },
            None => self.offline()?,
        };
        let inputs = if self.files.is_empty() {
            vec![Input::of_stdin()?]
        } else {
            self.read_files()?
        };
        let outputs = inputs
            .iter()
            .map(|input| input.process(&source, self.ids))
            .collect::<Result<Vec<_>, _>>()?;
        if self.in_place {
            let changed: Vec<_> = inputs
                .iter()
                .zip(&outputs)
                .filter(|(input, output)| input.bytes != **output)
                .collect();
            for (replaced, (input, output)) in changed.iter().enumerate() {
                replace_file(Path::new(&input.name), output).map_err(|error| {
                    let of = changed.len();
                    let what = format!("{error}; {replaced} of {of} files were replaced before, repeat the command for the rest");
                    input.failed(Exit::Io, what)
                })?;
            }
            return Ok(());
        }
        outputs.iter().try_for_each(|output| print_bytes(output))
    }

    fn read_files(&self) -> Result<Vec<Input>, Failure> {
        let read = |path: &PathBuf| {
            let Some(name) = path.to_str() else {
                let why = format!("{}: the path is not UTF-8", path.display());
                return Err(Failure::new(Exit::Usage, why));
            };
            let bytes = fs::read(path).map_err(|error| Failure::io(name, error))?;
            Ok(Input {
                name: name.to_owned(),
                bytes,
            })
        };
        self.files.iter().map(read).collect()
    }

    fn offline(&self) -> Result<Source<'static>, Failure> {
        let config = self.settings.load_without_slot()?;
        let offline = GroupedOffline::of(&config, &self.format, self.encoding.as_deref())?;
        let (objects, note) = (config.conjunction.object_rules(), config.conjunction.note);
        Ok(Source::Offline {
            offline,
            objects,
            note,
        })
    }
}

/// The source of the ids.
enum Source<'a> {
    /// The ids are computed from the reports, without a service.
    Offline {
        offline: GroupedOffline,
        objects: ObjectRules,
        note: Option<NoteForm>,
    },
    /// A running service mints the ids.
    Service {
        url: &'a str,
        access: &'a AccessArgs,
        format: &'a str,
        encoding: Option<&'a str>,
        keep_noted: bool,
    },
}

/// An input document.
struct Input {
    name: String,
    bytes: Vec<u8>,
}

impl Input {
    fn of_stdin() -> Result<Input, Failure> {
        let mut bytes = Vec::new();
        io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::new(Exit::Io, error))?;
        Ok(Input {
            name: STDIN.to_owned(),
            bytes,
        })
    }

    /// Inserts an id into each message of this document, and returns the document. If `only_ids` is
    /// `true`, returns a line of text for each id instead.
    fn process(&self, source: &Source<'_>, only_ids: bool) -> Result<Vec<u8>, Failure> {
        let form = CdmForm::of(&self.bytes);
        let read = |objects: &ObjectRules, note| {
            let document = Document::read_by(
                ReadRule {
                    objects,
                    note,
                    is_partial: false,
                    count_max: u32::MAX,
                },
                form,
                &self.bytes,
            )?;
            self.warn(&document);
            Ok::<_, CdmError>(document)
        };
        match source {
            Source::Offline {
                offline,
                objects,
                note,
            } => {
                let document = read(objects, *note).map_err(|error| self.malformed(&error))?;
                let (sent_reports, ids) =
                    ids_of(&document, offline).map_err(|error| self.malformed(&error))?;
                Ok(if only_ids {
                    self.lines(&document, ids.iter())
                } else {
                    document.annotate(&sent_reports, &ids)
                })
            }
            Source::Service {
                url,
                access,
                format,
                encoding,
                keep_noted,
            } => {
                let media_type = match form {
                    CdmForm::Kvn => "text/plain",
                    CdmForm::Xml => "application/xml",
                    CdmForm::SpaceTrack => "application/json",
                    CdmForm::Csv => "text/csv",
                };
                let body = CdmBody {
                    media_type,
                    bytes: self.bytes.clone(),
                    keep_noted: *keep_noted,
                };
                // Parse the document here, too, to find errors before it is sent and to get the
                // line number of each message. Accept every name of a space object, because only
                // the service knows which names are configured.
                let document = read(&ObjectRules::accepting_all(), None)
                    .map_err(|error| self.malformed(&error))?;
                let document = Some(document).filter(|_| only_ids);
                let answer = ask_once(access.client(url)?, async |client| {
                    if let Some(document) = &document {
                        let ids = client.ids_of_document(format, *encoding, body).await?;
                        return Ok(self.lines(document, ids.lines()));
                    }
                    client.annotate_document(format, *encoding, body).await
                });
                answer.map_err(|failure| self.failed(failure.exit(), failure))
            }
        }
    }

    fn lines(
        &self,
        document: &Document<&Vec<u8>>,
        ids: impl Iterator<Item = impl AsRef<str>>,
    ) -> Vec<u8> {
        let line = |(message, id): (&Message, _)| {
            format!(
                "{}\t{}\t{}\n",
                self.name,
                message.line(),
                AsRef::as_ref(&id)
            )
        };
        document
            .messages()
            .iter()
            .zip(ids)
            .map(line)
            .collect::<String>()
            .into_bytes()
    }

    /// Prints a warning for each message whose version is unknown. Such a message is read as
    /// version 2.0.
    fn warn(&self, document: &Document<&Vec<u8>>) {
        for message in document.messages() {
            if let Some(warning) = message.version().warning() {
                print_note(format_args!("{}:{}: {warning}", self.name, message.line()));
            }
        }
    }

    fn malformed(&self, error: &CdmError) -> Failure {
        let message = format!("{}:{}: {}", self.name, error.line, error.without_line());
        Failure::new(Exit::Damaged, message)
    }

    fn failed(&self, exit: Exit, error: impl std::fmt::Display) -> Failure {
        Failure::new(exit, format!("{}: {error}", self.name))
    }
}

/// Returns the reports in a document, with an id for each. A service with `conjunction.mode =
/// "pure"`, which computes each id from the report alone, returns the same ids.
fn ids_of(
    document: &Document<&Vec<u8>>,
    offline: &GroupedOffline,
) -> Result<(Vec<SentReport>, Vec<String>), CdmError> {
    let minter = &offline.minter;
    let sent_reports = document.sent_reports(minter, offline.encoding)?;
    let encoding = &offline.format.encodings[offline.encoding];
    let outcomes = GroupRequest::new(Arc::clone(minter), &sent_reports).and_then(|request| {
        // Keep an id that the document already contains. A service may have minted it from an
        // earlier report of the same close approach, which this command cannot see.
        request
            .with_noted_rule(NotedRule {
                keep: true,
                must_agree: true,
                ..NotedRule::default()
            })
            .decide_ungrouped()
    });
    let outcomes = outcomes.map_err(|refusal| document.explain(&refusal, encoding))?;
    let ids = outcomes
        .iter()
        .map(|outcome| encoding.to_text(outcome.id))
        .collect();
    Ok((sent_reports, ids))
}
