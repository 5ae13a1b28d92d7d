//! Compares the release binary with other servers that issue ids or respond to requests, in one run
//! (`make compare`).
//!
//! Every server is a separate process. Each round measures each scenario once, so that a slow
//! moment of the machine affects all scenarios. A ratio is computed from figures of the same round.
//! The results are in `target/compare/`: a table, a chart, and every figure of every round.

mod cpu_pinning;
mod cpu_time;
mod fetch;
mod goals;
#[path = "../harness/mod.rs"]
mod harness;
mod load;
mod machine;
mod process;
mod report;
mod rivals;
mod scaling;
mod scenario;
mod scenarios;
mod settings;
mod startup;
mod uniqueness;

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use cpu_pinning::CpuPinning;
use machine::Machine;
use report::Results;
use scenarios::Servers;
use settings::Settings;
use startup::Startup;

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
    let machine = Machine::inspect();
    let pinning = CpuPinning::pin_load();
    let startup = Startup::measure(&pinning, settings.time);
    let servers = Servers::start(&pinning)?;
    uniqueness::check(servers.wide.address())?;
    let mut scenarios = servers.scenarios()?;
    // A new service mints only from the next whole second on. Wait until then.
    thread::sleep(Duration::from_secs(2));
    scenario::measure_all("scenarios", &mut scenarios, settings.rounds, settings.time);
    let verdicts = goals::check(&scenarios, &startup);
    let scaling = scaling::measure(&pinning, &servers, settings)?;
    let results = Results {
        machine,
        pinning,
        settings,
        scenarios,
        verdicts,
        scaling,
        passed: began.elapsed(),
    };
    results
        .write()
        .map_err(|error| format!("{}: {error}", settings.output.display()))
}
