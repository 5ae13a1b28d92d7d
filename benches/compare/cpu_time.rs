//! Measures the running time of a server's threads. Other work on the machine hardly changes this
//! figure.

use std::fs;
use std::iter::Sum;
use std::ops::{Add, Sub};
use std::path::Path;
use std::time::Duration;

/// The number of clock ticks per second. Linux counts the CPU time of ended processes in these
/// ticks. The number is the same on every architecture for which there is a server binary.
const TICKS_PER_SECOND: u32 = 100;

/// The CPU time of several threads together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuTime {
    pub(crate) running: Duration,
    /// The time for which the threads were ready to run while other work was using the CPU.
    pub(crate) waiting: Duration,
}

impl Add for CpuTime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            running: self.running + other.running,
            waiting: self.waiting + other.waiting,
        }
    }
}

impl Sum for CpuTime {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::add)
    }
}

impl Sub for CpuTime {
    type Output = Self;

    /// Subtracts an earlier CPU time. A difference below zero becomes zero. Such a difference is
    /// possible, because the waiting time of a process is lost when the process ends.
    fn sub(self, before: Self) -> Self {
        let running = self.running.saturating_sub(before.running);
        Self {
            running,
            waiting: self.waiting.saturating_sub(before.waiting),
        }
    }
}

/// Returns the CPU time of all threads of a process and of its children. Children that have ended
/// are included.
pub(crate) fn of_server(pid: u32) -> CpuTime {
    let ended = CpuTime {
        running: of_ended(pid).unwrap_or_default(),
        waiting: Duration::ZERO,
    };
    of_threads(pid) + ended + children_of(pid).into_iter().map(of_server).sum()
}

/// Returns the CPU time of all threads of one process.
pub(crate) fn of_threads(pid: u32) -> CpuTime {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    tasks.filter_map(|task| of_thread(&task.path())).sum()
}

/// Parses the first two numbers in `schedstat`: the running time and the waiting time of a thread,
/// in nanoseconds.
fn of_thread(task: &Path) -> Option<CpuTime> {
    let text = fs::read_to_string(task.join("schedstat")).ok()?;
    let mut nanos = text
        .split(' ')
        .map(|nanos| nanos.parse().map(Duration::from_nanos));
    Some(CpuTime {
        running: nanos.next()?.ok()?,
        waiting: nanos.next()?.ok()?,
    })
}

fn children_of(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    children
        .flat_map(|list| {
            list.split(' ')
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the CPU time of the children that have ended and for which the process has waited, such
/// as PostgreSQL sessions.
fn of_ended(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Split after the `)` that ends the name, because the name may contain any character. The
    // fields after the name start with number 3. The two needed fields are cutime (16) and cstime
    // (17).
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: Vec<u32> = fields
        .split_whitespace()
        .skip(13)
        .take(2)
        .filter_map(|field| field.parse().ok())
        .collect();
    Some(Duration::from_secs(ticks.iter().sum::<u32>().into()) / TICKS_PER_SECOND)
}
