//! A service whose wall clock the test sets, while the time since boot stays true.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::service::{Home, Service};
use crate::tools::libfaketime;

pub(crate) struct WallClock {
    file: PathBuf,
    new: PathBuf,
    /// The processes that run by it.
    pids: RefCell<Vec<u32>>,
}

impl WallClock {
    /// The clock of the services in this folder; right at first.
    pub(crate) fn of(home: &Home) -> WallClock {
        let clock = WallClock {
            file: home.path("wall-clock"),
            new: home.path("wall-clock.new"),
            pids: RefCell::default(),
        };
        clock.set(0);
        clock
    }

    /// Sets it to the true time and so many seconds more, at once for whoever runs by it.
    pub(crate) fn set(&self, ahead_s: i64) {
        fs::write(&self.new, format!("{ahead_s:+}\n")).unwrap();
        // In one step: a file that is read half written would be a third time.
        fs::rename(&self.new, &self.file).unwrap();
    }

    /// How far the second day of 1970 is ahead of now.
    pub(crate) fn in_1970() -> i64 {
        86_400 - now_s()
    }

    /// How far the last day of 1969 is ahead of now.
    pub(crate) fn before_1970() -> i64 {
        -43_200 - now_s()
    }

    /// Starts a service that runs by this clock.
    pub(crate) fn start(&self, mut command: Command) -> Service {
        command
            .env("LD_PRELOAD", libfaketime())
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        let service = Service::start(command);
        self.pids.borrow_mut().push(service.pid());
        service
    }
}

/// The true time, in seconds since 1970.
pub(crate) fn now_s() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
        .try_into()
        .unwrap()
}

impl Drop for WallClock {
    /// The library removes these itself, but not from a process that is killed.
    fn drop(&mut self) {
        for pid in self.pids.borrow().iter() {
            for name in [
                format!("faketime_shm_{pid}"),
                format!("sem.faketime_sem_{pid}"),
            ] {
                let _ = fs::remove_file(format!("/dev/shm/{name}"));
            }
        }
    }
}
