//! Runs Redis and measures its counters with `redis-benchmark`.

use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use super::Target;
use crate::cpu_pinning::{CpuPinning, Side};
use crate::cpu_time;
use crate::process::{Process, free_port, run_to_end};
use crate::scenario::Round;

pub(crate) struct Redis {
    pinning: CpuPinning,
    _process: Process,
    target: Target,
    _home: TempDir,
}

impl Redis {
    /// Starts Redis.
    ///
    /// # Errors
    /// Returns the reason if the server does not run.
    pub(crate) fn start(pinning: &CpuPinning) -> Result<Self, String> {
        let asked = ["redis-server", "redis-benchmark"]
            .map(|program| version(pinning, program))
            .map(run_to_end);
        asked
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| "not installed: Debian packages redis-server and redis-tools")?;
        let home = tempfile::tempdir().map_err(|error| error.to_string())?;
        let address = free_port();
        let mut command = pinning.command(Side::Server, "redis-server");
        command
            .args([
                "--bind",
                "127.0.0.1",
                "--port",
                &address.port().to_string(),
                "--dir",
            ])
            .arg(home.path());
        let mut process = Process::start(command, Signal::TERM)?;
        process.accepts_at(address)?;
        let target = Target {
            address,
            pid: process.pid(),
        };
        Ok(Self {
            pinning: *pinning,
            _process: process,
            target,
            _home: home,
        })
    }

    /// Returns a benchmark of a Redis command. Each connection sends the command `depth` times at
    /// once. A response counts as `ids` ids.
    pub(crate) fn benchmark(
        &self,
        words: &'static [&'static str],
        depth: usize,
        ids: u32,
    ) -> impl FnMut(Duration) -> Result<Round, String> + use<> {
        let (pinning, target) = (self.pinning, self.target);
        // redis-benchmark needs a number of requests instead of a duration. Use the number of
        // requests that take this duration at the rate of the last round.
        let mut per_second = 20_000.0;
        move |time| {
            let requests = (per_second * time.as_secs_f64()).max(1_000.0).round();
            let mut command = pinning.command(Side::Load, "redis-benchmark");
            command.args([
                "-h",
                "127.0.0.1",
                "-p",
                &target.address.port().to_string(),
                "-c",
                "16",
                "--csv",
            ]);
            command
                .args(["-P", &depth.to_string(), "-n", &requests.to_string()])
                .args(words);
            let before = cpu_time::of_server(target.pid);
            let printed = run_to_end(command)?;
            let spent = cpu_time::of_server(target.pid) - before;
            let line = printed.lines().last().unwrap_or_default();
            // The columns are the name, the requests per second, and then latencies in
            // milliseconds. These are the mean, the minimum, and the 50th, 95th, 99th and 100th
            // percentile.
            let figures: Vec<f64> = line
                .split(',')
                .filter_map(|figure| figure.trim_matches('"').parse().ok())
                .collect();
            let [rate, _, _, p50_ms, _, p99_ms, _] = figures[..] else {
                return Err(format!("it printed {line:?}"));
            };
            per_second = rate;
            let server_us = spent.running.as_secs_f64() * 1e6 / requests;
            Ok(Round {
                requests_per_second: rate,
                ids_per_second: rate * f64::from(ids),
                megabytes_per_second: None,
                p50_us: p50_ms * 1e3,
                p99_us: p99_ms * 1e3,
                p999_us: None,
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

/// Returns a command that prints the version of a program.
fn version(pinning: &CpuPinning, program: &str) -> Command {
    let mut command = pinning.command(Side::Load, program);
    command.arg("--version");
    command
}
