//! `idmint conjunction`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use indicatif::ProgressBar;

use crate::cli::exit::{Exit, Failure};
use crate::cli::print::{Lines, conjunction_bar, print};
use crate::cli::running_service::{AccessArgs, ask_once, service_url};
use crate::wire::ConjunctionInfo;

/// How many conjunctions are sent at once.
const BATCH_LEN: usize = 1_000;

/// Work with the conjunctions that a service stores.
#[derive(Debug, Args)]
pub(in crate::cli) struct Conjunction {
    #[command(subcommand)]
    command: ConjunctionCommand,
}

#[derive(Debug, Subcommand)]
enum ConjunctionCommand {
    /// Print every stored conjunction as a line of JSON.
    Export(Export),
    /// Store conjunctions that another service has printed, with the ids that they have there.
    Import(Import),
}

#[derive(Debug, Args)]
struct Export {
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, Args)]
struct Import {
    /// What was printed; standard input if absent.
    file: Option<PathBuf>,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, Args)]
struct ServiceArgs {
    /// The format.
    #[arg(long, default_value = "conjunction")]
    format: String,
    /// Where the service listens.
    #[arg(long, default_value_t = service_url())]
    server: String,
    #[command(flatten)]
    access: AccessArgs,
}

impl Conjunction {
    /// Runs the command that was named.
    ///
    /// # Errors
    /// 1 when the service refuses, or has another conjunction where one should be stored; 65 for a line that is no
    /// conjunction; 69 when the service cannot be reached; 74.
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        match self.command {
            ConjunctionCommand::Export(export) => export.run(),
            ConjunctionCommand::Import(import) => import.run(),
        }
    }
}

impl Export {
    fn run(self) -> Result<(), Failure> {
        let mut lines = Lines::begin();
        // Lines on the same terminal say how far it is.
        let bar = if io::stdout().is_terminal() {
            ProgressBar::hidden()
        } else {
            conjunction_bar(None)
        };
        let mut after: Option<String> = None;
        while lines.are_read() {
            let ServiceArgs {
                format,
                server,
                access,
            } = &self.service;
            let page = ask_once(access.client(server)?, async |client| {
                client.conjunctions(format, after.as_deref()).await
            })?;
            for conjunction in &page.conjunctions {
                lines.write(
                    &serde_json::to_string(conjunction)
                        .expect("texts and numbers always serialize"),
                )?;
            }
            bar.inc(page.conjunctions.len() as u64);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        bar.finish_and_clear();
        lines.end()
    }
}

impl Import {
    fn run(self) -> Result<(), Failure> {
        let mut conjunctions = self.read()?;
        // Of anchors near each other the older ones have lower ranks, and must come first to have them again.
        conjunctions.sort_by_key(|conjunction| conjunction.rank);
        let ServiceArgs {
            format,
            server,
            access,
        } = &self.service;
        let (mut stored, mut known, mut differing) = (0_u64, 0_u64, Vec::new());
        let bar = conjunction_bar(Some(conjunctions.len() as u64));
        for batch in conjunctions.chunks(BATCH_LEN) {
            let details = ask_once(access.client(server)?, async |client| {
                client.adopt_conjunctions(format, batch).await
            })?;
            for (conjunction, detail) in batch.iter().zip(details) {
                match (detail.id == conjunction.id, detail.created) {
                    (false, _) => {
                        differing.push(format!("{} is {} there", conjunction.id, detail.id))
                    }
                    (true, Some(true)) => stored += 1,
                    (true, _) => known += 1,
                }
            }
            bar.inc(batch.len() as u64);
        }
        bar.finish_and_clear();
        print(format_args!("{stored} stored, {known} known already\n"))?;
        if differing.is_empty() {
            return Ok(());
        }
        let count = differing.len();
        let message = format!(
            "{count} have another id, since another conjunction is within reach: {}",
            differing.join(", ")
        );
        Err(Failure::new(Exit::No, message))
    }

    fn read(&self) -> Result<Vec<ConjunctionInfo>, Failure> {
        let (name, input): (String, Box<dyn BufRead>) = match &self.file {
            None => ("-".to_owned(), Box::new(io::stdin().lock())),
            Some(path) => {
                let file = File::open(path);
                let file = file.map_err(|error| {
                    Failure::new(Exit::Io, format!("{}: {error}", path.display()))
                })?;
                (path.display().to_string(), Box::new(BufReader::new(file)))
            }
        };
        let mut conjunctions = Vec::new();
        for (number, line) in (1..).zip(input.lines()) {
            let line = line.map_err(|error| Failure::new(Exit::Io, format!("{name}: {error}")))?;
            let read = serde_json::from_str(&line);
            let damaged = |error| Failure::new(Exit::Damaged, format!("{name}:{number}: {error}"));
            conjunctions.push(read.map_err(damaged)?);
        }
        Ok(conjunctions)
    }
}
