//! The released binary beside everything else that hands out ids or answers requests, in one run: `make compare`.
//!
//! Every server is a process of its own. Rounds measure each row once, so that a slow moment of the machine slows all
//! of them; ratios are of figures of one round. The results are a table, a chart and every figure of every round, in
//! `target/compare/`.

mod ask;
mod busy;
mod claims;
mod growth;
#[path = "../harness/mod.rs"]
mod harness;
mod load;
mod machine;
mod places;
mod process;
mod report;
mod rivals;
mod row;
mod rows;
mod settings;
mod starts;
mod uniqueness;

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use machine::Machine;
use places::Places;
use report::Results;
use rows::Servers;
use settings::Settings;
use starts::Starts;

fn main() -> ExitCode {
    rivals::bare::serve_if_asked();
    match Settings::from_environment().and_then(|settings| compare(&settings)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn compare(settings: &Settings) -> Result<(), String> {
    let began = Instant::now();
    let machine = Machine::seen();
    let places = Places::taken();
    let starts = Starts::measured(&places, settings.time);
    let servers = Servers::start(&places)?;
    uniqueness::checked(servers.wide.address())?;
    let mut rows = servers.rows()?;
    // A start begins at the next whole second, and is ahead of its clock until that has come.
    thread::sleep(Duration::from_secs(2));
    row::measure_all("rows", &mut rows, settings.rounds, settings.time);
    let verdicts = claims::judged(&rows, &starts);
    let growth = growth::measured(&places, &servers, settings)?;
    let results = Results { machine, places, settings, rows, verdicts, growth, passed: began.elapsed() };
    results.written().map_err(|error| format!("{}: {error}", settings.output.display()))
}
