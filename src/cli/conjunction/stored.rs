//! The command `idmint conjunction`, which exports and imports the conjunctions (close approaches
//! of two objects) that a service stores.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use indicatif::ProgressBar;

use crate::cli::exit::{Exit, Failure};
use crate::cli::print::{Lines, conjunction_bar, json, print};
use crate::cli::running_service::{ServiceArgs, ask_once};
use idmint_wire::{ConjunctionInfo, ReportDetail};

/// The number of conjunctions per request.
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
    /// Store conjunctions exported by another service, with their ids.
    Import(Import),
}

#[derive(Debug, Args)]
struct Export {
    #[command(flatten)]
    stored: FormatArgs,
}

#[derive(Debug, Args)]
struct Import {
    /// The exported conjunctions; standard input if absent.
    file: Option<PathBuf>,
    #[command(flatten)]
    stored: FormatArgs,
}

#[derive(Debug, Args)]
struct FormatArgs {
    /// The format.
    #[arg(long, default_value = "conjunction")]
    format: String,
    #[command(flatten)]
    service: ServiceArgs,
}

impl Conjunction {
    /// Runs the subcommand `export` or `import`.
    ///
    /// # Errors
    /// Returns exit code 1 if the service refuses the request or stores a different conjunction
    /// (close approach), 65 if a line is not a conjunction, 69 if the service is unreachable, and
    /// 74 if input or output fails.
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
        // If the lines are printed on a terminal, the lines themselves show the progress, so no
        // progress bar is needed.
        let bar = if io::stdout().is_terminal() {
            ProgressBar::hidden()
        } else {
            conjunction_bar(None)
        };
        let mut after: Option<String> = None;
        while lines.are_read() {
            let FormatArgs { format, service } = &self.stored;
            let page = ask_once(service.client()?, async |client| {
                client.conjunctions(format, after.as_deref()).await
            })?;
            for conjunction in &page.conjunctions {
                lines.write(&json(conjunction))?;
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
        // If conjunctions of the same two objects are close in time, a service numbers them in the
        // order in which they are stored (`rank`). Send them in that order, so that the new service
        // gives them the same ranks.
        conjunctions.sort_by_key(|conjunction| conjunction.rank);
        let (mut stored, mut known, mut differing) = (0_u64, 0_u64, Vec::new());
        let bar = conjunction_bar(Some(conjunctions.len() as u64));
        let ids: HashSet<&str> = conjunctions.iter().map(|one| one.id.as_str()).collect();
        let of_each_rank = conjunctions.chunk_by(|one, next| one.rank == next.rank);
        for batch in of_each_rank.flat_map(|of_rank| of_rank.chunks(BATCH_LEN)) {
            let details = self.send(batch, &ids).map_err(|failure| match stored + known {
                0 => failure,
                before => failure.and(format_args!(
                    "the service has {before} conjunctions of the file, repeat the command for the rest"
                )),
            })?;
            for (conjunction, detail) in batch.iter().zip(details) {
                match (detail.id == conjunction.id, detail.created) {
                    (_, None) => {
                        let message = "the service stores no conjunctions, because its `conjunction.mode` is `pure`";
                        return Err(Failure::new(Exit::No, message));
                    }
                    (false, _) => differing.push(format!(
                        "{} has the id {} in the service",
                        conjunction.id, detail.id
                    )),
                    (true, Some(true)) => stored += 1,
                    (true, Some(false)) => known += 1,
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
            "{count} conjunctions have another id in the service, because a conjunction of the same objects is too \
             close in time: {}",
            differing.join(", ")
        );
        Err(Failure::new(Exit::No, message))
    }

    /// Sends conjunctions that have the same rank, and returns the service's response for each of
    /// them. `ids` contains the ids of all conjunctions in the file.
    ///
    /// In the file, two conjunctions of the same objects may be within a second of each other. This
    /// is so if a report was once sent with `noted=keep`, which keeps the id in the report. The
    /// service then takes the second conjunction for a report of the first one, so this method
    /// sends the second one again with `noted=keep`. It does so before the next rank is sent,
    /// because all conjunctions of a rank must be stored before those of higher ranks.
    fn send(
        &self,
        batch: &[ConjunctionInfo],
        ids: &HashSet<&str>,
    ) -> Result<Vec<ReportDetail>, Failure> {
        let FormatArgs { format, service } = &self.stored;
        let mut details = ask_once(service.client()?, async |client| {
            client.adopt_conjunctions(format, batch).await
        })?;
        let (places, close): (Vec<usize>, Vec<ConjunctionInfo>) = batch
            .iter()
            .zip(&details)
            .enumerate()
            .filter(|(_, (sent, detail))| detail.id != sent.id && ids.contains(detail.id.as_str()))
            .map(|(place, (sent, _))| (place, sent.clone()))
            .unzip();
        if !close.is_empty() {
            let kept = ask_once(service.client()?, async |client| {
                client.keep_conjunctions(format, &close).await
            })?;
            for (place, detail) in places.into_iter().zip(kept) {
                details[place] = detail;
            }
        }
        Ok(details)
    }

    fn read(&self) -> Result<Vec<ConjunctionInfo>, Failure> {
        let (name, input): (String, Box<dyn BufRead>) = match &self.file {
            None => ("-".to_owned(), Box::new(io::stdin().lock())),
            Some(path) => {
                let file = File::open(path);
                let file = file.map_err(|error| Failure::io(path.display(), error))?;
                (path.display().to_string(), Box::new(BufReader::new(file)))
            }
        };
        let mut conjunctions = Vec::new();
        for (number, line) in (1..).zip(input.lines()) {
            let line = line.map_err(|error| Failure::io(&name, error))?;
            if line.trim().is_empty() {
                continue;
            }
            let damaged = |error: serde_json::Error| {
                // `text` ends with a position inside the parsed line, such as `at line 1 column 7`.
                // The position is removed, because its line number would contradict `number`, the
                // line number in the file.
                let text = error.to_string();
                let place = format!(" at line {} column {}", error.line(), error.column());
                let what = text.strip_suffix(&place).unwrap_or(&text);
                Failure::new(Exit::Damaged, format!("{name}:{number}: {what}"))
            };
            conjunctions.push(serde_json::from_str(&line).map_err(damaged)?);
        }
        Ok(conjunctions)
    }
}
