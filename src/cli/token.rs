//! `idmint token`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::exit::{Exit, Failure};
use super::settings::Settings;
use crate::http::{Scope, TokenEntry, TokenText};
use crate::server::Catalog;
use crate::time::UnixTime;

/// Make tokens for the callers of a service.
#[derive(Debug, Args)]
pub(super) struct Token {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token, shown this once, and its entry for the file that http.tokens names.
    New(New),
}

#[derive(Debug, Args)]
struct New {
    /// Whose it is, such as billing.
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    name: String,
    /// What it is good for: mint, ledger, decode, metrics, import, number.
    #[arg(long, value_delimiter = ',', required = true)]
    scopes: Vec<Scope>,
    /// Only these formats.
    #[arg(long, value_delimiter = ',')]
    formats: Option<Vec<String>>,
    /// Only these ledgers.
    #[arg(long, value_delimiter = ',')]
    ledgers: Option<Vec<String>>,
    /// Only these series of numbers, or those that begin so: acme-*.
    #[arg(long, value_delimiter = ',')]
    series: Option<Vec<String>>,
    /// The instant from which it is not accepted any more, such as 2027-01-01T00:00:00Z.
    #[arg(long, value_name = "INSTANT")]
    expires: Option<UnixTime>,
    /// The file to add the entry to; made if it is not there. Without it the entry is printed below the token.
    #[arg(long)]
    file: Option<PathBuf>,
    /// The configuration whose formats may be named.
    #[command(flatten)]
    settings: Settings,
}

impl Token {
    /// Prints the token.
    ///
    /// # Errors
    /// 64 for a format that there is not, 74 without randomness, and when the token or its entry cannot be written, 78.
    pub(super) fn run(self) -> Result<(), Failure> {
        let TokenCommand::New(New {
            name,
            scopes,
            formats,
            ledgers,
            series,
            expires,
            file,
            settings,
        }) = self.command;
        check_formats(formats.as_deref().unwrap_or_default(), &settings)?;
        let failed =
            |error| Failure::new(Exit::Io, format!("the system has no randomness: {error}"));
        let token = TokenText::random().map_err(failed)?;
        let expires = expires.map(|instant| instant.to_string());
        let entry = TokenEntry {
            name,
            sha256: token.digest(),
            scopes,
            formats,
            ledgers,
            series,
            expires,
        }
        .to_toml();
        match &file {
            Some(path) => {
                add(path, &entry)?;
                print(&format!("{}\n", token.text()))
            }
            None => print(&format!("{}\n\n{entry}", token.text())),
        }
    }
}

/// That there are formats of these names: a service would not start with the entry.
fn check_formats(names: &[String], settings: &Settings) -> Result<(), Failure> {
    let catalog = Catalog::of(&settings.load(toml::Table::new())?)?;
    let known: Vec<_> = catalog
        .formats
        .iter()
        .map(|format| format.name.as_str())
        .collect();
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(Failure::new(
            Exit::Usage,
            format!(
                "--formats {name}: there is {}; --config FILE for those of a configuration",
                known.join(", ")
            ),
        )),
    }
}

/// Adds an entry to the end of a file, which others cannot read if it is new.
#[expect(
    clippy::disallowed_methods,
    reason = "the command says that it writes this file"
)]
fn add(path: &Path, entry: &str) -> Result<(), Failure> {
    let append = || {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        let gap = if file.metadata()?.len() > 0 { "\n" } else { "" };
        file.write_all(format!("{gap}{entry}").as_bytes())?;
        file.sync_all()
    };
    append().map_err(|error: io::Error| {
        Failure::new(Exit::Io, format!("--file {}: {error}", path.display()))
    })
}

/// A token that nobody has seen is lost, so this may fail.
fn print(text: &str) -> Result<(), Failure> {
    let printed = io::stdout()
        .write_all(text.as_bytes())
        .and_then(|()| io::stdout().flush());
    printed
        .map_err(|error| Failure::new(Exit::Io, format!("the token could not be printed: {error}")))
}
