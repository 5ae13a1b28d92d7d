//! Runs PostgreSQL and measures a sequence with pgbench.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, geteuid};
use tempfile::TempDir;

use super::Target;
use crate::cpu_pinning::{CpuPinning, Side};
use crate::cpu_time;
use crate::process::{Process, free_port, run_to_end};
use crate::scenario::{Round, percentile_us};

const USER: &str = "postgres";
const CLIENTS: &str = "16";

pub(crate) struct Postgresql {
    pinning: CpuPinning,
    programs: PathBuf,
    _process: Process,
    target: Target,
    home: TempDir,
}

impl Postgresql {
    /// Starts PostgreSQL with its default settings, with which commits are durable. Only this
    /// machine can connect, and no password is needed.
    ///
    /// # Errors
    /// Returns the reason if the server does not run.
    pub(crate) fn start(pinning: &CpuPinning) -> Result<Self, String> {
        let programs = programs().ok_or("not installed: Debian package postgresql")?;
        let home = home().map_err(|error| format!("there is no folder for {USER}: {error}"))?;
        let data = home.path().join("data");
        let mut initdb =
            pinning.command_as(USER, Side::Load, programs.join("initdb"), Signal::TERM);
        initdb
            .args([
                "--auth=trust",
                "--username=postgres",
                "--no-sync",
                "--locale=C.UTF-8",
                "--pgdata",
            ])
            .arg(&data);
        run_to_end(initdb)?;
        let address = free_port();
        let mut postgres =
            pinning.command_as(USER, Side::Server, programs.join("postgres"), Signal::INT);
        postgres.arg("-D").arg(&data).args([
            "-h",
            "127.0.0.1",
            "-p",
            &address.port().to_string(),
            "-k",
            "",
        ]);
        let mut process = Process::start(postgres, Signal::INT)?;
        process.accepts_at(address)?;
        let target = Target {
            address,
            pid: process.pid(),
        };
        let server = Self {
            pinning: *pinning,
            programs,
            _process: process,
            target,
            home,
        };
        server.make_sequence()?;
        Ok(server)
    }

    fn make_sequence(&self) -> Result<(), String> {
        let create = || {
            let mut psql = client(
                &self.pinning,
                &self.programs.join("psql"),
                self.target.address,
            );
            psql.args([
                "--no-psqlrc",
                "--quiet",
                "--command",
                "create sequence if not exists s",
                "postgres",
            ]);
            run_to_end(psql)
        };
        // Retry, because PostgreSQL accepts connections slightly earlier than logins.
        let mut tries = (0..100).map(|_| {
            let created = create();
            if created.is_err() {
                thread::sleep(Duration::from_millis(50));
            }
            created
        });
        tries.find(Result::is_ok).ok_or("it lets nobody in")??;
        fs::write(
            self.home.path().join("nextval.sql"),
            "select nextval('s');\n",
        )
        .map_err(|error| error.to_string())
    }

    /// Returns a benchmark of `nextval`, with one id for each request.
    pub(crate) fn benchmark(&self) -> impl FnMut(Duration) -> Result<Round, String> + use<> {
        let (pinning, target, pgbench) = (self.pinning, self.target, self.programs.join("pgbench"));
        let script = self.home.path().join("nextval.sql");
        // pgbench writes one log file in each round. The folder of these files is removed with this
        // value.
        let log = tempfile::tempdir();
        move |time| {
            let log = log.as_ref().map_err(|error| error.to_string())?.path();
            let mut command = client(&pinning, &pgbench, target.address);
            // Round up, because pgbench accepts only whole seconds.
            let seconds = time.as_secs_f64().ceil().to_string();
            command.args([
                "-n",
                "-M",
                "prepared",
                "-c",
                CLIENTS,
                "-j",
                "1",
                "-T",
                &seconds,
                "-l",
                "--log-prefix",
            ]);
            command
                .arg(log.join("log"))
                .arg("-f")
                .arg(&script)
                .arg("postgres");
            let before = cpu_time::of_server(target.pid);
            let printed = run_to_end(command)?;
            let spent = cpu_time::of_server(target.pid) - before;
            let rate = printed
                .lines()
                .find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
            let rate: f64 = rate.ok_or_else(|| format!("it printed {printed:?}"))?;
            let mut latencies = latencies_ns(log)?;
            let server_us = spent.running.as_secs_f64() * 1e6 / latencies.len() as f64;
            Ok(Round {
                requests_per_second: rate,
                ids_per_second: rate,
                megabytes_per_second: None,
                server_us,
                busy_percent: rate * server_us / 1e4,
                p50_us: percentile_us(&mut latencies, 500),
                p99_us: percentile_us(&mut latencies, 990),
                p999_us: Some(percentile_us(&mut latencies, 999)),
                waiting_percent: None,
                load_us: None,
                refused: 0,
                refusal: 0,
            })
        }
    }
}

/// Reads the latency of each request from the log files of a round, and then removes these files.
fn latencies_ns(folder: &Path) -> Result<Vec<u64>, String> {
    let mut latencies = Vec::new();
    for entry in fs::read_dir(folder)
        .map_err(|error| error.to_string())?
        .flatten()
    {
        let text = fs::read_to_string(entry.path()).map_err(|error| error.to_string())?;
        // The columns are the client, the number of the transaction, its latency in microseconds,
        // and its time.
        let microseconds = text
            .lines()
            .filter_map(|line| line.split(' ').nth(2)?.parse::<u64>().ok());
        latencies.extend(microseconds.map(|us| us * 1_000));
        fs::remove_file(entry.path()).map_err(|error| error.to_string())?;
    }
    Ok(latencies)
}

/// Returns a command of a client program that connects to the server.
fn client(pinning: &CpuPinning, program: &Path, address: SocketAddr) -> Command {
    let mut command = pinning.command(Side::Load, program);
    command.args([
        "-h",
        "127.0.0.1",
        "-U",
        "postgres",
        "-p",
        &address.port().to_string(),
    ]);
    command
}

/// Returns the folder with the programs of the newest PostgreSQL. On Debian, this folder is not in
/// `PATH`.
pub(crate) fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let newest = versions.max_by_key(|version| {
        version
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
    })?;
    let programs = newest.path().join("bin");
    ["initdb", "postgres", "pgbench"]
        .iter()
        .all(|name| programs.join(name).exists())
        .then_some(programs)
}

fn home() -> Result<TempDir, String> {
    let home = tempfile::tempdir().map_err(|error| error.to_string())?;
    if geteuid().is_root() {
        let mut chown = Command::new("chown");
        chown.arg(USER).arg(home.path());
        run_to_end(chown)?;
    }
    fs::set_permissions(home.path(), Permissions::from_mode(0o755))
        .map_err(|error| error.to_string())?;
    Ok(home)
}
