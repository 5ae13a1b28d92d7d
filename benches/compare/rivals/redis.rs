//! Redis counters, loaded by its own benchmark program.

use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use super::Target;
use crate::busy;
use crate::places::{Places, Side};
use crate::process::{Process, finished, free_port};
use crate::row::Round;

pub(crate) struct Redis {
    places: Places,
    _process: Process,
    target: Target,
    _home: TempDir,
}

impl Redis {
    /// # Errors
    /// Says why it does not run.
    pub(crate) fn start(places: &Places) -> Result<Self, String> {
        let asked = ["redis-server", "redis-benchmark"].map(|program| version(places, program)).map(finished);
        asked
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| "not installed: Debian packages redis-server and redis-tools")?;
        let home = tempfile::tempdir().map_err(|error| error.to_string())?;
        let address = free_port();
        let mut command = places.command(Side::Server, "redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string(), "--dir"]).arg(home.path());
        let mut process = Process::start(command, Signal::TERM)?;
        process.accepts_at(address)?;
        let target = Target { address, pid: process.pid() };
        Ok(Self { places: *places, _process: process, target, _home: home })
    }

    /// Measures a command, asked so many at once on each connection; each answer gives so many ids.
    pub(crate) fn measuring(
        &self,
        words: &'static [&'static str],
        depth: usize,
        ids: u32,
    ) -> impl FnMut(Duration) -> Result<Round, String> + use<> {
        let (places, target) = (self.places, self.target);
        // The program takes a number of requests and no time: as many as the last round would have answered.
        let mut per_second = 20_000.0;
        move |time| {
            let requests = (per_second * time.as_secs_f64()).max(1_000.0).round();
            let mut command = places.command(Side::Load, "redis-benchmark");
            command.args(["-h", "127.0.0.1", "-p", &target.address.port().to_string(), "-c", "16", "--csv"]);
            command.args(["-P", &depth.to_string(), "-n", &requests.to_string()]).args(words);
            let before = busy::of_server(target.pid);
            let printed = finished(command)?;
            let spent = busy::of_server(target.pid) - before;
            let line = printed.lines().last().unwrap_or_default();
            // Name, requests a second, then milliseconds: mean, least, and 50, 95, 99 and 100 % of the requests.
            let figures: Vec<f64> =
                line.split(',').filter_map(|figure| figure.trim_matches('"').parse().ok()).collect();
            let [rate, _, _, p50_ms, _, p99_ms, _] = figures[..] else { return Err(format!("it printed {line:?}")) };
            per_second = rate;
            let server_us = spent.running.as_secs_f64() * 1e6 / requests;
            Ok(Round {
                requests_per_second: rate,
                ids_per_second: rate * f64::from(ids),
                megabytes_per_second: None,
                p50_us: p50_ms * 1e3,
                p99_us: p99_ms * 1e3,
                server_us,
                busy_percent: rate * server_us / 1e4,
                waiting_percent: None,
                load_us: None,
                refused: 0,
                refusal: 0,
            })
        }
    }
}

/// Prints its version.
fn version(places: &Places, program: &str) -> Command {
    let mut command = places.command(Side::Load, program);
    command.arg("--version");
    command
}
