//! System calls of a running process that fail from one moment on, as on a disk that breaks.

use std::fs;
use std::process::{Child, Command, Stdio};

use crate::service::{Home, Service, until};

/// What the disk refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Broken {
    /// What was written may last or not.
    Sync,
    /// Nothing more is written.
    Write,
}

/// strace, which makes the calls of one process fail until that ends.
pub(crate) struct FailingDisk {
    strace: Child,
    home: Home,
}

impl FailingDisk {
    /// From the moment this returns, the calls of the service fail.
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

    /// How many calls failed, once the process has ended.
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
