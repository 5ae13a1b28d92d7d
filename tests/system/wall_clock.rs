//! Gives a service a wall clock that the test sets. The time since boot stays right.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::tools::libfaketime;
use idmint_testing::service::{Home, Service};

pub(crate) struct WallClock {
    file: PathBuf,
    new: PathBuf,
    /// The process ids of the processes that use this clock.
    pids: RefCell<Vec<u32>>,
}

impl WallClock {
    /// Creates the clock for services with their folder in `home`. The clock is right at first.
    pub(crate) fn of(home: &Home) -> WallClock {
        let clock = WallClock {
            file: home.path("wall-clock"),
            new: home.path("wall-clock.new"),
            pids: RefCell::default(),
        };
        clock.set(0);
        clock
    }

    /// Sets the clock to the right time plus `ahead_s` seconds. All processes that use the clock
    /// see this immediately.
    pub(crate) fn set(&self, ahead_s: i64) {
        fs::write(&self.new, format!("{ahead_s:+}\n")).unwrap();
        // Replace the file in one step. A process that reads a partly written file would see
        // neither the old time nor the new one.
        fs::rename(&self.new, &self.file).unwrap();
    }

    /// Returns the offset from now to the second day of 1970, in seconds.
    pub(crate) fn in_1970() -> i64 {
        86_400 - now_s()
    }

    /// Returns the offset from now to the last day of 1969, in seconds.
    pub(crate) fn before_1970() -> i64 {
        -43_200 - now_s()
    }

    /// Changes a command so that its process uses this clock.
    pub(crate) fn give_to(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", libfaketime())
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }

    /// Starts a service that uses this clock.
    pub(crate) fn start(&self, mut command: Command) -> Service {
        self.give_to(&mut command);
        let service = Service::start(command);
        self.pids.borrow_mut().push(service.pid());
        service
    }
}

/// Returns the right time, in seconds since 1970.
pub(crate) fn now_s() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
        .try_into()
        .unwrap()
}

impl Drop for WallClock {
    /// Removes the shared memory of libfaketime. The library does not remove it if its process is
    /// killed.
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
