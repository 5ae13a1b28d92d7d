//! The command line: parses the arguments, runs the command and returns the exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use super::conjunction::{Cdm, Conjunction};
use super::decode::{Decode, Encode, Formats, HYPHEN_MARK, Inspect, Range};
use super::exit::{Exit, Failure};
use super::fleet::Fleet;
use super::ledger::Ledger;
use super::manual::{Completions, Man};
use super::mint::Mint;
use super::node::{Backup, Check, Health, Restore, Serve, Status};
use super::numbers::Numbers;
use super::print::{complain, is_read};
use super::token::Token;

/// Mints ids of many layouts and decodes them; no id is ever minted twice.
#[derive(Debug, Parser)]
#[command(name = "idmint", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The maximum length of a short option after its hyphen. `decode` treats a longer argument with
/// one hyphen as an id, for example the Firebase push id `-NqKxY3bA1cDeFgHiJkL`.
const OPTION_LEN_MAX: usize = 6;

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service.
    Serve(Serve),
    /// Mint ids at a running service.
    Mint(Mint),
    /// Decode ids, offline.
    Decode(Decode),
    /// Find the common format of the ids in files, offline.
    Inspect(Inspect),
    /// Write the id of given fields in every encoding, offline; this mints nothing.
    Encode(Encode),
    /// Print the lowest and the highest id of a time span, offline.
    Range(Range),
    /// List the formats, or describe one, offline.
    Formats(Formats),
    /// Put conjunction ids into Conjunction Data Messages, offline or at a running service.
    Cdm(Cdm),
    /// Work with the conjunctions that a service stores.
    Conjunction(Conjunction),
    /// Copy the data of a running node.
    Backup(Backup),
    /// Fill an empty data folder from a backup.
    Restore(Restore),
    /// Check a configuration and print its effect.
    Check(Check),
    /// Work with ledgers of events.
    #[command(subcommand)]
    Ledger(Ledger),
    /// Work with numbers without gaps.
    Numbers(Numbers),
    /// Work with a fleet: nodes that share an etcd.
    #[command(subcommand)]
    Fleet(Fleet),
    /// Make tokens for the callers of a service.
    #[command(subcommand)]
    Token(Token),
    /// Check if a running service mints: exit code 0 or 1.
    Health(Health),
    /// Show the state of a running service, and how to fix problems: exit code 0 if all is well.
    Status(Status),
    /// Print the shell completions of these commands.
    Completions(Completions),
    /// Write the manual, a page for each command.
    Man(Man),
}

/// Marks arguments of `decode` that begin with a hyphen but are ids, such as negative numbers and
/// push ids of Firebase. Without this mark, they would be parsed as options.
fn mark_ids(mut args: Vec<OsString>) -> Vec<OsString> {
    if args.get(1).is_none_or(|command| command != "decode") {
        return args;
    }
    for arg in args.iter_mut().skip(2).take_while(|arg| *arg != "--") {
        let is_id = arg
            .to_str()
            .and_then(|arg| arg.strip_prefix('-'))
            .is_some_and(|rest| {
                let is_number = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
                is_number || rest.len() > OPTION_LEN_MAX && !rest.starts_with('-')
            });
        if is_id {
            let mut marked = OsString::from(HYPHEN_MARK);
            marked.push(&*arg);
            *arg = marked;
        }
    }
    args
}

/// Runs the command that is named in the arguments of the process. Returns the exit code of the
/// command.
pub fn run() -> ExitCode {
    let done = match Cli::try_parse_from(mark_ids(std::env::args_os().collect())) {
        Ok(cli) => cli.command.run(),
        // Help and version are not errors. They are written to standard output.
        Err(text) if !text.use_stderr() => is_read(text.print()).map(drop),
        Err(error) => {
            let _ = error.print();
            return Exit::Usage.into();
        }
    };
    match done {
        Ok(()) => Exit::Ok.into(),
        Err(failure) => {
            complain(&failure);
            failure.exit().into()
        }
    }
}

impl Command {
    fn run(self) -> Result<(), Failure> {
        match self {
            Command::Serve(serve) => serve.run(),
            Command::Mint(mint) => mint.run(),
            Command::Decode(decode) => decode.run(),
            Command::Inspect(inspect) => inspect.run(),
            Command::Encode(encode) => encode.run(),
            Command::Range(range) => range.run(),
            Command::Formats(formats) => formats.run(),
            Command::Cdm(cdm) => cdm.run(),
            Command::Conjunction(conjunction) => conjunction.run(),
            Command::Backup(backup) => backup.run(),
            Command::Restore(restore) => restore.run(),
            Command::Check(check) => check.run(),
            Command::Ledger(ledger) => ledger.run(),
            Command::Numbers(numbers) => numbers.run(),
            Command::Fleet(fleet) => fleet.run(),
            Command::Token(token) => token.run(),
            Command::Health(health) => health.run(),
            Command::Status(status) => status.run(),
            Command::Completions(completions) => completions.run(Cli::command()),
            Command::Man(man) => man.run(Cli::command()),
        }
    }
}
