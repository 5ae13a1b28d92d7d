//! Collects facts about the machine of a run, and the versions of all programs.

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use serde::Serialize;

use crate::rivals::idmint::binary;
use crate::rivals::postgresql;

/// Facts about the machine. Each has a name and a text.
#[derive(Serialize)]
pub(crate) struct Machine(pub(crate) Vec<(&'static str, String)>);

impl Machine {
    /// Collects the facts. Call this function before the benchmark starts any program, so that the
    /// load average covers only other work.
    pub(crate) fn inspect() -> Self {
        let cpus = available_parallelism().map_or_else(|_| "?".to_owned(), |cpus| cpus.to_string());
        let model = read("/proc/cpuinfo")
            .lines()
            .find_map(|line| Some(line.strip_prefix("model name")?.to_owned()));
        let model = model
            .unwrap_or_default()
            .trim_start_matches(['\t', ' ', ':'])
            .to_owned();
        let postgres =
            postgresql::programs().map(|programs| programs.join("postgres").display().to_string());
        Self(vec![
            ("CPU", format!("{model}, {cpus} to be used")),
            (
                "Kernel",
                format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            ),
            (
                "Load before the run",
                read("/proc/loadavg")
                    .split(' ')
                    .take(3)
                    .collect::<Vec<_>>()
                    .join(" "),
            ),
            (
                "idmint",
                first_line_of(&binary().display().to_string(), &["--version"]),
            ),
            (
                "Commit",
                first_line_of("git", &["describe", "--always", "--dirty"]),
            ),
            ("Rust", first_line_of("rustc", &["--version"])),
            ("hyper", version_of("hyper")),
            ("axum", version_of("axum")),
            ("tokio", version_of("tokio")),
            ("nginx", first_line_of("/usr/sbin/nginx", &["-v"])),
            ("Redis", first_line_of("redis-server", &["--version"])),
            (
                "PostgreSQL",
                postgres.map_or_else(
                    || "not installed".to_owned(),
                    |postgres| first_line_of(&postgres, &["--version"]),
                ),
            ),
        ])
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns the first line that a program prints, on standard output or standard error.
fn first_line_of(program: &str, words: &[&str]) -> String {
    let Ok(output) = Command::new(program).args(words).output() else {
        return "not installed".to_owned();
    };
    let printed = if output.stdout.is_empty() {
        output.stderr
    } else {
        output.stdout
    };
    String::from_utf8_lossy(&printed)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Returns the version of a crate that this program is built with.
fn version_of(name: &str) -> String {
    let lock: toml::Table = include_str!("../../Cargo.lock").parse().unwrap_or_default();
    let packages = lock
        .get("package")
        .and_then(|packages| packages.as_array())
        .into_iter()
        .flatten();
    let versions = packages.filter(|package| package["name"].as_str() == Some(name));
    versions
        .filter_map(|package| package["version"].as_str())
        .collect::<Vec<_>>()
        .join(", ")
}
