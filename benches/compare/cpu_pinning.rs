//! Pins programs to CPUs. The servers run on one CPU, and the load runs on another one.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::{Signal, geteuid};

/// The two CPUs that a run uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuPinning {
    /// The CPU of the servers, and the CPU of the load. `None` if only one CPU is available.
    cpus: Option<(usize, usize)>,
}

/// The side of a benchmark to which a program belongs: the servers or the load.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    Server,
    Load,
}

impl CpuPinning {
    /// Takes the first two CPUs that this process may use, and moves this thread to the second one.
    /// Threads and processes that this thread starts inherit the pinning.
    pub(crate) fn pin_load() -> Self {
        let cpus = match allowed_cpus()[..] {
            [server, load, ..] => Some((server, load)),
            _ => None,
        };
        if let Some((_, load)) = cpus {
            let thread = fs::read_link("/proc/thread-self").expect("Linux tells about threads");
            let thread = thread.file_name().expect("the last part is its number");
            let moved = Command::new("taskset")
                .args(["-cp", &load.to_string()])
                .arg(thread)
                .output();
            assert!(
                moved
                    .expect("taskset runs: Debian package util-linux")
                    .status
                    .success(),
                "CPU {load} is ours"
            );
        }
        Self { cpus }
    }

    /// Returns a command that runs a program on the CPU of `side`.
    pub(crate) fn command(&self, side: Side, program: impl AsRef<Path>) -> Command {
        self.command_as("root", side, program, Signal::TERM)
    }

    /// Returns a command that runs a program on the CPU of `side`. If this process is root, the
    /// program runs as `user`, because some servers refuse to run as root.
    ///
    /// If this process dies without cleaning up, the kernel sends the signal `end` to the program.
    pub(crate) fn command_as(
        &self,
        user: &str,
        side: Side,
        program: impl AsRef<Path>,
        end: Signal,
    ) -> Command {
        let mut setpriv = vec![
            "setpriv".to_owned(),
            "--pdeathsig".to_owned(),
            name_of(end).to_owned(),
        ];
        if geteuid().is_root() && user != "root" {
            setpriv.extend([
                format!("--reuid={user}"),
                format!("--regid={user}"),
                "--clear-groups".to_owned(),
            ]);
        }
        let mut words = self.cpus.map_or_else(Vec::new, |(server, load)| {
            let cpu = match side {
                Side::Server => server,
                Side::Load => load,
            };
            vec!["taskset".to_owned(), "-c".to_owned(), cpu.to_string()]
        });
        words.append(&mut setpriv);
        let mut command = Command::new(&words[0]);
        // Use a working directory that every user may enter.
        command
            .args(&words[1..])
            .arg("--")
            .arg(program.as_ref())
            .current_dir("/");
        command
    }

    pub(crate) fn description(&self) -> String {
        match self.cpus {
            Some((server, load)) => format!("servers on CPU {server}, load on CPU {load}"),
            None => {
                "one CPU for servers and load: they take turns, so requests a second say little"
                    .to_owned()
            }
        }
    }
}

/// Returns the name of a signal, because `setpriv` does not accept numbers.
fn name_of(signal: Signal) -> &'static str {
    match signal {
        Signal::INT => "INT",
        Signal::KILL => "KILL",
        _ => "TERM",
    }
}

/// Returns the CPUs that this process may use. `/proc` contains them as a list such as `0-2,5`.
fn allowed_cpus() -> Vec<usize> {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells about processes");
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap_or_default();
    let numbers = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    list.split(',').filter_map(numbers).flatten().collect()
}
