//! How soon a new process mints, and how much memory it takes.

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

/// An odd number, so that the median is one of them.
const STARTS: usize = 9;

/// Longer than a start waits for a clock that is right.
const LONG: Duration = Duration::from_secs(30);

/// What a process costs before it does anything.
pub(crate) struct Startup {
    /// From the call that starts it to the first id, in milliseconds, on a data directory that was empty.
    pub(crate) fresh_ms: Vec<f64>,
    /// The same where a process ran before and was told to end.
    pub(crate) again_ms: Vec<f64>,
    /// Resident memory in MB once it mints, and after large batches.
    pub(crate) started_mb: Vec<f64>,
    pub(crate) loaded_mb: Vec<f64>,
    pub(crate) binary_mb: f64,
}

impl Startup {
    /// # Errors
    /// When a process does not start.
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

/// Milliseconds to the first id, and megabytes then. The process has ended in good order when this returns.
fn start(pinning: &CpuPinning, data_dir: &Path) -> Result<(f64, f64), String> {
    let began = Instant::now();
    let mut process = Process::start(serve_from(pinning, data_dir), Signal::TERM)?;
    wait_until_minting(process.address()?)?;
    let passed = began.elapsed();
    Ok((passed.as_secs_f64() * 1e3, resident_mb(process.pid())?))
}

/// Sends requests for an id until there is one.
///
/// # Errors
/// When none comes.
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

/// Megabytes after the largest batches, on 16 connections at once.
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
