//! The command line: which command, and with which code it ends.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use super::conjunction::{Cdm, Conjunction};
use super::decode::{Decode, Encode, Formats, Inspect, Range};
use super::exit::Exit;
use super::fleet::Fleet;
use super::ledger::Ledger;
use super::manual::{Completions, Man};
use super::mint::Mint;
use super::node::{Backup, Check, Health, Serve, Status};
use super::numbers::Numbers;
use super::print::complain;
use super::token::Token;

/// Mints ids of many layouts and reads them back; no id is ever minted twice.
#[derive(Debug, Parser)]
#[command(name = "idmint", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service.
    Serve(Serve),
    /// Mint ids at a running service.
    Mint(Mint),
    /// Say what ids can be, offline.
    Decode(Decode),
    /// Say what the ids of files are, all of them together, offline.
    Inspect(Inspect),
    /// Write the id of given fields in every encoding, offline; nothing is minted.
    Encode(Encode),
    /// Say the least and the greatest id of a time span, offline.
    Range(Range),
    /// Say which formats there are, or everything about one, offline.
    Formats(Formats),
    /// Put conjunction ids into Conjunction Data Messages, offline or at a running service.
    Cdm(Cdm),
    /// Work with the conjunctions that a service stores.
    Conjunction(Conjunction),
    /// Copy what a running node keeps.
    Backup(Backup),
    /// Check a configuration and print what it means.
    Check(Check),
    /// Work with ledgers of events.
    Ledger(Ledger),
    /// Work with numbers without gaps.
    Numbers(Numbers),
    /// Work with a fleet: nodes that share an etcd.
    Fleet(Fleet),
    /// Make tokens for the callers of a service.
    Token(Token),
    /// Say whether a running service mints: exit code 0 or 1.
    Health(Health),
    /// Say how a running service is, and what to do about what is wrong: exit code 0, 1 or 69.
    Status(Status),
    /// Print what completes these commands in a shell.
    Completions(Completions),
    /// Write the manual, a page for each command.
    Man(Man),
}

/// Runs the command that the arguments name, and says with which code to exit.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no mistakes.
            let code = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Ok
            };
            let _ = error.print();
            return code.into();
        }
    };
    let done = match cli.command {
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
        Command::Check(check) => check.run(),
        Command::Ledger(ledger) => ledger.run(),
        Command::Numbers(numbers) => numbers.run(),
        Command::Fleet(fleet) => fleet.run(),
        Command::Token(token) => token.run(),
        Command::Health(health) => health.run(),
        Command::Status(status) => status.run(),
        Command::Completions(completions) => completions.run(Cli::command()),
        Command::Man(man) => man.run(Cli::command()),
    };
    match done {
        Ok(()) => Exit::Ok.into(),
        Err(failure) => {
            complain(&failure);
            failure.exit().into()
        }
    }
}
