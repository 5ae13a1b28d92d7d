//! Measures how long a new process takes to mint its first id, and how much memory it uses.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::Signal;

use crate::cpu_pinning::CpuPinning;
use crate::fetch::{batch, fetch};
use crate::load::{Generator, Workload};
use crate::process::Process;
use crate::rivals::idmint::{Idmint, binary, serve_from};

/// The number of starts. It is odd, so that the median is one of the measured values.
const STARTS: usize = 9;

/// The timeout for the first id of a process. A start takes less time than this if the clock is
/// correct.
const LONG: Duration = Duration::from_secs(30);

/// The cost of starting a process.
pub(crate) struct Startup {
    /// The time from spawning the process to the first id, in milliseconds, with an empty data
    /// directory.
    pub(crate) fresh_ms: Vec<f64>,
    /// The time from spawning the process to the first id, in milliseconds, after an earlier
    /// process on the same data directory was stopped.
    pub(crate) again_ms: Vec<f64>,
    /// The resident memory in MB at the first id.
    pub(crate) started_mb: Vec<f64>,
    /// The resident memory in MB after large batches.
    pub(crate) loaded_mb: Vec<f64>,
    pub(crate) binary_mb: f64,
}

impl Startup {
    /// Measures the durations of starts, and the memory usage.
    ///
    /// # Errors
    /// Returns an error if a process does not start.
    pub(crate) fn measure(pinning: &CpuPinning, time: Duration) -> Result<Self, String> {
        let told = |error: std::io::Error| error.to_string();
        let binary_mb = fs::metadata(binary()).map_err(told)?.len() as f64 / 1e6;
        let [mut fresh_ms, mut again_ms, mut started_mb] = [const { Vec::new() }; 3];
        for number in 0..STARTS {
            eprintln!("starts: {} of {STARTS}", number + 1);
            let home = tempfile::tempdir().map_err(told)?;
            fresh_ms.push(start(pinning, home.path())?.0);
            let (again, memory) = start(pinning, home.path())?;
            again_ms.push(again);
            started_mb.push(memory);
        }
        let loaded_mb = vec![load(pinning, time)?];
        Ok(Self {
            fresh_ms,
            again_ms,
            started_mb,
            loaded_mb,
            binary_mb,
        })
    }
}

/// Starts a process. Returns the time until its first id in milliseconds, and its memory at that
/// time in MB. The process has exited cleanly when this function returns.
fn start(pinning: &CpuPinning, data_dir: &Path) -> Result<(f64, f64), String> {
    let began = Instant::now();
    let mut process = Process::start(serve_from(pinning, data_dir), Signal::TERM)?;
    wait_until_minting(process.address()?)?;
    let passed = began.elapsed();
    Ok((passed.as_secs_f64() * 1e3, resident_mb(process.pid())?))
}

/// Requests an id until the service mints one.
///
/// # Errors
/// Returns the last failure if no id is minted in time.
pub(crate) fn wait_until_minting(address: SocketAddr) -> Result<(), String> {
    let began = Instant::now();
    loop {
        match fetch(address, &batch("snowflake", 1), "") {
            Ok(_) => return Ok(()),
            Err(reason) if began.elapsed() > LONG => return Err(reason),
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Returns the memory in MB after the largest batches were minted on 16 connections at the same
/// time.
fn load(pinning: &CpuPinning, time: Duration) -> Result<f64, String> {
    let idmint = Idmint::start(pinning, "")?;
    wait_until_minting(idmint.address())?;
    let told = |error: std::io::Error| error.to_string();
    Generator::connect(
        idmint.address(),
        &Workload::of(&batch("snowflake", 100_000), "", ""),
    )
    .map_err(told)?
    .run(time)
    .map_err(told)?;
    resident_mb(idmint.target().pid)
}

fn resident_mb(pid: u32) -> Result<f64, String> {
    let status =
        fs::read_to_string(format!("/proc/{pid}/status")).map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: Option<f64> = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    kib.map(|kib| kib * 1024.0 / 1e6)
        .ok_or_else(|| "it has no memory".to_owned())
}
