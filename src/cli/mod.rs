//! The commands of `idmint`.

mod cdm;
mod check;
mod decode;
mod exit;
mod formats;
mod health;
mod ledger;
mod mint;
mod print;
mod serve;
mod settings;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use exit::{Exit, Failure};

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
    Serve(serve::Serve),
    /// Mint ids at a running service.
    Mint(mint::Mint),
    /// Say what ids can be, offline.
    Decode(decode::Decode),
    /// Say which formats there are, or everything about one, offline.
    Formats(formats::Formats),
    /// Put conjunction ids into Conjunction Data Messages, offline or at a running service.
    Cdm(cdm::Cdm),
    /// Check a configuration and print what it means.
    Check(check::Check),
    /// Work with ledgers of events.
    Ledger(ledger::Ledger),
    /// Say whether a running service mints: exit code 0 or 1.
    Health(health::Health),
}

/// Runs the command that the arguments name, and says with which code to exit.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no mistakes.
            let code = if error.use_stderr() { Exit::Usage } else { Exit::Ok };
            let _ = error.print();
            return code.into();
        }
    };
    let done = match cli.command {
        Command::Serve(serve) => serve.run(),
        Command::Mint(mint) => mint.run(),
        Command::Decode(decode) => decode.run(),
        Command::Formats(formats) => formats.run(),
        Command::Cdm(cdm) => cdm.run(),
        Command::Check(check) => check.run(),
        Command::Ledger(ledger) => ledger.run(),
        Command::Health(health) => health.run(),
    };
    match done {
        Ok(()) => Exit::Ok.into(),
        Err(failure) => {
            eprintln!("idmint: {failure}");
            failure.exit().into()
        }
    }
}
