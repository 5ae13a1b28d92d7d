//! The one node: its folder, its wall clock, and the processes that run one after the other.

use std::fs;

use idmint::time::UnixTime;

use super::schedule::Configuration;
use crate::service::{Ended, Home, Service, run, until};
use crate::wall_clock::{WallClock, now_s};

/// Further back than the horizon may be ahead of the clock at a start.
const FAR_BEHIND_S: i64 = 3 * 3_600;

/// Where the horizon stands in each of the two copies in its file.
const HORIZON_AT: [usize; 2] = [24, 4_096 + 24];

pub(crate) struct Node {
    home: Home,
    wall: WallClock,
    /// How far its right time is ahead of the time of this machine. Only grows.
    ahead_s: i64,
}

impl Node {
    pub(crate) fn new() -> Node {
        let home = Home::new();
        let wall = WallClock::of(&home);
        Node { home, wall, ahead_s: 0 }
    }

    /// Starts and waits until it mints.
    pub(crate) fn start(&self, configuration: &Configuration) -> Service {
        self.start_with(configuration, &[])
    }

    fn start_with(&self, configuration: &Configuration, args: &[&str]) -> Service {
        let mut command = self.home.serve_with(&configuration.to_toml());
        command.args(args);
        let service = self.wall.start(command);
        service.wait_until_ready();
        service
    }

    /// Starts with a configuration that must be refused; this much of it is replaced.
    pub(crate) fn start_refused(&self, configuration: &Configuration, from: &str, to: &str) -> Ended {
        let toml = configuration.to_toml();
        assert!(toml.contains(from), "{from} is not in {toml}");
        run(self.home.serve_with(&toml.replace(from, to)))
    }

    /// Starts while the wall clock is hours behind, which it must wait for, and sets it right.
    pub(crate) fn start_behind(&self, configuration: &Configuration) -> Service {
        self.set_wall(-FAR_BEHIND_S);
        let service = self.wall.start(self.home.serve_with(&configuration.to_toml()));
        until("the start has found its clock behind", || service.log().contains("not minting yet").then_some(()));
        let refused = service.post("/ids/snowflake");
        assert_eq!((refused.status, refused.json()["type"].as_str()), (503, Some("/problems/clock-behind")));
        self.set_wall(0);
        service.wait_until_ready();
        service
    }

    /// Removes the folder and starts with the floor that docs/OPERATIONS.md prescribes: a little after now, if the clock has
    /// been right, and above the horizon that was reserved in any case.
    pub(crate) fn restore(&self, configuration: &Configuration) -> Service {
        let now_s = self.now_s();
        let floor_s = (now_s + 10).max(self.horizon_s() + 1);
        fs::remove_dir_all(self.home.data_dir()).unwrap();
        let floor = UnixTime::from_nanos(i128::from(floor_s) * 1_000_000_000).to_text(0).unwrap();
        let service = self.start_with(configuration, &["--floor", &floor]);
        assert!(service.log().contains("starting above the stated floor"), "{}", service.log());
        service
    }

    /// Removes the folder, and starts once the right time is later than any that was minted, as it is wherever a clock was
    /// right and some time has passed.
    pub(crate) fn lose_folder(&mut self, configuration: &Configuration) -> Service {
        let passed_s = (self.horizon_s() + 1 - self.now_s()).max(1);
        fs::remove_dir_all(self.home.data_dir()).unwrap();
        self.step_ahead(passed_s);
        let service = self.start(configuration);
        assert_eq!(service.metric("idmint_horizon_cold_starts_total"), 1.0);
        service
    }

    /// Sets the wall clock ahead, for good.
    pub(crate) fn step_ahead(&mut self, by_s: i64) {
        self.ahead_s += by_s;
        self.set_wall(0);
    }

    /// Sets the wall clock so far from the right time.
    pub(crate) fn set_wall(&self, off_s: i64) {
        self.wall.set(self.ahead_s + off_s);
    }

    /// Its right time, in seconds since 1970.
    fn now_s(&self) -> i64 {
        now_s() + self.ahead_s
    }

    /// Up to where ids may have been minted, rounded up to a second.
    fn horizon_s(&self) -> i64 {
        let file = fs::read(self.home.data_dir().join("horizon")).unwrap();
        let copy = |at: usize| u64::from_be_bytes(file[at..at + 8].try_into().unwrap());
        let nanos = HORIZON_AT.map(copy).into_iter().max().unwrap();
        i64::try_from(nanos.div_ceil(1_000_000_000)).unwrap()
    }
}
