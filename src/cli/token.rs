//! The command `idmint token`, which makes tokens for the callers of a service.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::exit::Failure;
use super::settings::Settings;
use crate::server::Catalog;
use idmint_core::id::FormatAlias;
use idmint_core::time::{Clock, UnixTime};
use idmint_http::{Scope, TokenEntry, TokenText, Tokens};

/// Make tokens for the callers of a service.
#[derive(Debug, Subcommand)]
pub(super) enum Token {
    /// Make a token, printed only once, and its entry for the file that http.tokens names.
    New {
        /// The owner of the token, such as billing.
        #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
        name: String,
        /// The scopes of the token: mint, ledger, decode, metrics, import, number.
        #[arg(long, value_delimiter = ',', required = true)]
        scopes: Vec<Scope>,
        /// Only these formats.
        #[arg(long, value_delimiter = ',')]
        formats: Option<Vec<String>>,
        /// Only these ledgers.
        #[arg(long, value_delimiter = ',')]
        ledgers: Option<Vec<String>>,
        /// Allow only these series of numbers; acme-* stands for all series that begin with acme-.
        #[arg(long, value_delimiter = ',')]
        series: Option<Vec<String>>,
        /// The instant at which it expires, such as 2027-01-01T00:00:00Z.
        #[arg(long, value_name = "INSTANT")]
        expires: Option<UnixTime>,
        /// Add the token's entry to this file, created if absent, instead of printing the entry.
        #[arg(long)]
        file: Option<PathBuf>,
        /// The configuration whose formats may be named.
        #[command(flatten)]
        settings: Settings,
    },
}

impl Token {
    /// Prints the token.
    ///
    /// Returns exit code 64 if a format is unknown, a service would refuse the entry or `--expires`
    /// has passed, 65 if a service would refuse the file with the entry, 74 if the system has no
    /// randomness or if the token or its entry cannot be written, and 78 if the configuration is
    /// invalid.
    pub(super) fn run(self) -> Result<(), Failure> {
        let Token::New {
            name,
            scopes,
            formats,
            ledgers,
            series,
            expires,
            file,
            settings,
        } = self;
        let catalog = Catalog::of(&settings.load_without_slot()?)?;
        let known: Vec<_> = catalog.names().into_iter().map(str::to_owned).collect();
        check_formats(formats.as_deref().unwrap_or_default(), &known)?;
        let failed = |error| {
            Failure::io(
                "the operating system returned no random bytes for the token",
                error,
            )
        };
        let token = TokenText::random().map_err(failed)?;
        if let Some(past) = expires.filter(|at| *at <= Clock::system().now().into()) {
            return Err(Failure::usage(format!(
                "--expires {past} has passed: give a later instant, or omit --expires"
            )));
        }
        let expires = expires.map(|instant| instant.to_string());
        let entry = TokenEntry {
            name,
            sha256: token.digest(),
            scopes,
            formats,
            ledgers,
            series,
            expires,
        };
        entry.check(&known).map_err(Failure::usage)?;
        let entry = entry.to_toml();
        match &file {
            Some(path) => {
                add(path, &entry, &known)?;
                print(&format!("{}\n", token.text()))
            }
            None => print(&format!("{}\n\n{entry}", token.text())),
        }
    }
}

/// Checks that all named formats, by their present or former names, are known. Unlike the error of
/// [`TokenEntry::check`], the error suggests `--config`, because a configuration may define the
/// format. Returns exit code 64 for an unknown format.
fn check_formats(names: &[String], known: &[String]) -> Result<(), Failure> {
    let is_known = |name: &str| known.iter().any(|known| known == name);
    let is_unknown = |name: &&String| !is_known(FormatAlias::current_name(name));
    names.iter().find(is_unknown).map_or(Ok(()), |name| {
        Err(Failure::usage(format!(
            "--formats has the unknown format {name}; choose from {}; use --config FILE for configured formats",
            known.join(", ")
        )))
    })
}

/// Appends an entry to a file of tokens. If the file is new, other users get no access to it. If a
/// service would refuse the result, because the file is another one for example, writes nothing and
/// returns exit code 65. `formats` are the known formats.
#[expect(
    clippy::disallowed_methods,
    reason = "the command says that it writes this file"
)]
fn add(path: &Path, entry: &str, formats: &[String]) -> Result<(), Failure> {
    let name = format!("--file {}", path.display());
    let refused = |error: &dyn fmt::Display| {
        Failure::damaged(format!(
            "{name} is unchanged, because a service would refuse it with the new token: {error}; use --config FILE for configured formats"
        ))
    };
    let old = match path.is_file() {
        true => fs::read_to_string(path),
        false => Ok(String::new()),
    };
    let old = match old {
        Err(error) if error.kind() == ErrorKind::InvalidData => return Err(refused(&error)),
        read => read.map_err(|error| Failure::io(&name, error))?,
    };
    let gap = if old.is_empty() { "" } else { "\n" };
    let added = format!("{gap}{entry}");
    Tokens::parse(&format!("{old}{added}"), path, formats).map_err(|error| refused(&error))?;
    let append = || {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(added.as_bytes())?;
        file.sync_all()
    };
    append().map_err(|error: io::Error| Failure::io(name, error))
}

/// Prints the token. A closed pipe is a failure here, unlike in other commands, because a token
/// that was not printed is lost.
fn print(text: &str) -> Result<(), Failure> {
    let printed = io::stdout()
        .write_all(text.as_bytes())
        .and_then(|()| io::stdout().flush());
    printed.map_err(|error| Failure::io("the token cannot be printed", error))
}
