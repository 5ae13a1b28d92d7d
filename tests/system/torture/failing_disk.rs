//! Makes system calls of a running process fail, as if its disk had broken.

use std::fs;
use std::process::{Child, Command, Stdio};

use idmint_testing::service::{Home, Service, until};

/// The operation of the disk that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Broken {
    /// Syncs fail. Data that was written may or may not be durable.
    Sync,
    /// Writes fail.
    Write,
}

/// An strace that makes the calls of one process fail, until that process ends.
pub(crate) struct FailingDisk {
    strace: Child,
    home: Home,
}

impl FailingDisk {
    /// Attaches strace to the service. When this function returns, the calls of the service fail.
    pub(crate) fn of(service: &Service, broken: Broken) -> FailingDisk {
        let calls = match broken {
            Broken::Sync => "fsync,fdatasync",
            Broken::Write => "pwrite64",
        };
        let home = Home::new();
        let strace = Command::new("strace")
            .args([
                "--follow-forks",
                &format!("--trace={calls}"),
                &format!("--inject={calls}:error=EIO"),
            ])
            .arg("--output")
            .arg(home.path("calls"))
            .arg(format!("--attach={}", service.pid()))
            .stderr(fs::File::create(home.path("said")).unwrap())
            .stdin(Stdio::null())
            .spawn()
            .expect("strace runs: Debian package strace, installed by .ci/install-packages");
        let disk = FailingDisk { strace, home };
        until("strace is attached", || {
            disk.said().contains("attached").then_some(())
        });
        disk
    }

    fn said(&self) -> String {
        fs::read_to_string(self.home.path("said")).unwrap()
    }

    /// Waits until the process of the service has ended. Returns the number of calls that failed.
    pub(crate) fn calls_failed(mut self) -> usize {
        until("strace ends with its process", || {
            self.strace.try_wait().unwrap()
        });
        fs::read_to_string(self.home.path("calls"))
            .unwrap()
            .matches("(INJECTED)")
            .count()
    }
}

impl Drop for FailingDisk {
    fn drop(&mut self) {
        let _ = self.strace.kill();
        let _ = self.strace.wait();
    }
}
