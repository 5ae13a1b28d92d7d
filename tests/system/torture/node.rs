//! The node: its folder, its wall clock, and its successive processes.

use std::fs;

use idmint_core::time::UnixTime;

use super::schedule::Configuration;
use crate::wall_clock::{WallClock, now_s};
use idmint_testing::service::{Ended, Home, Service, run, until};

/// An offset that is larger than the lead of the horizon over the clock at a start.
const FAR_BEHIND_S: i64 = 3 * 3_600;

/// The offsets of the horizon in the two copies in its file.
const HORIZON_AT: [usize; 2] = [24, 4_096 + 24];

pub(crate) struct Node {
    home: Home,
    wall: WallClock,
    /// The lead of the node's right time over the time of this machine. The lead only grows.
    ahead_s: i64,
    /// `true` if the last process began no later than its clock, so that its ids were not far ahead
    /// of the clock.
    began_by_its_clock: bool,
}

/// A process that began with only a lower bound on the time of its ids, and no record of earlier
/// ids.
pub(crate) struct Fresh {
    pub(crate) service: Service,
    /// `true` if ids may have been reserved beyond that bound. Only waiting for whole ticks then
    /// keeps new ids distinct.
    pub(crate) is_below_reserved: bool,
}

impl Node {
    pub(crate) fn new() -> Node {
        let home = Home::new();
        let wall = WallClock::of(&home);
        Node {
            home,
            wall,
            ahead_s: 0,
            began_by_its_clock: true,
        }
    }

    /// Starts the node and waits until it mints.
    pub(crate) fn start(&mut self, configuration: &Configuration) -> Service {
        self.began_by_its_clock =
            !self.home.data_dir().exists() || self.horizon_s() <= self.now_s();
        self.start_with(configuration, &[])
    }

    fn start_with(&self, configuration: &Configuration, args: &[&str]) -> Service {
        let mut command = self.home.serve_with(&configuration.to_toml());
        command.args(args);
        let service = self.wall.start(command);
        service.wait_until_ready();
        service
    }

    /// Starts the node with a configuration in which `from` is replaced by `to`. The start must be
    /// refused.
    pub(crate) fn start_refused(
        &self,
        configuration: &Configuration,
        from: &str,
        to: &str,
    ) -> Ended {
        let toml = configuration.to_toml();
        assert!(toml.contains(from), "{from} is not in {toml}");
        run(self.home.serve_with(&toml.replace(from, to)))
    }

    /// Starts the node while its wall clock is hours behind, and sets the clock right once the
    /// start waits for it.
    pub(crate) fn start_behind(&mut self, configuration: &Configuration) -> Service {
        self.began_by_its_clock = self.horizon_s() <= self.now_s();
        self.set_wall(-FAR_BEHIND_S);
        let service = self
            .wall
            .start(self.home.serve_with(&configuration.to_toml()));
        until("the start has found its clock behind", || {
            service.log().contains("not minting yet").then_some(())
        });
        let refused = service.post("/ids/snowflake");
        assert_eq!(
            (refused.status, refused.json()["type"].as_str()),
            (503, Some("/problems/clock-behind"))
        );
        self.set_wall(0);
        service.wait_until_ready();
        service
    }

    /// Removes the folder and starts with the floor that docs/OPERATIONS.md prescribes. The floor
    /// is a little after now, or above the horizon if the last start was ahead of its clock.
    pub(crate) fn restore(&mut self, configuration: &Configuration) -> Fresh {
        let horizon_s = self.horizon_s();
        let floor_s = if self.began_by_its_clock {
            self.now_s() + 10
        } else {
            (self.now_s() + 10).max(horizon_s)
        };
        fs::remove_dir_all(self.home.data_dir()).unwrap();
        let floor = UnixTime::from_nanos(i128::from(floor_s) * 1_000_000_000)
            .to_text(0)
            .unwrap();
        let service = self.start_with(configuration, &["--floor", &floor]);
        assert!(
            service.log().contains("starting above the stated floor"),
            "{}",
            service.log()
        );
        self.began_by_its_clock = false;
        Fresh {
            service,
            is_below_reserved: floor_s < horizon_s,
        }
    }

    /// Removes the folder and starts with a right clock. The start is a little later than the end
    /// of the last process. If that process began ahead of its clock, the start is later than all
    /// time it may have reserved.
    pub(crate) fn lose_folder(&mut self, configuration: &Configuration) -> Fresh {
        let horizon_s = self.horizon_s();
        let passed_s = if self.began_by_its_clock {
            1
        } else {
            (horizon_s - self.now_s()).max(1)
        };
        fs::remove_dir_all(self.home.data_dir()).unwrap();
        self.step_ahead(passed_s);
        let begun_s = self.now_s() + 1;
        let service = self.start(configuration);
        assert_eq!(service.metric("idmint_horizon_cold_starts_total"), 1.0);
        Fresh {
            service,
            is_below_reserved: begun_s < horizon_s,
        }
    }

    /// Sets the wall clock ahead, permanently.
    pub(crate) fn step_ahead(&mut self, by_s: i64) {
        self.ahead_s += by_s;
        self.set_wall(0);
    }

    /// Sets the wall clock to an offset from the right time.
    pub(crate) fn set_wall(&self, off_s: i64) {
        self.wall.set(self.ahead_s + off_s);
    }

    /// Returns the node's right time, in seconds since 1970.
    fn now_s(&self) -> i64 {
        now_s() + self.ahead_s
    }

    /// Returns the time up to which ids may have been minted, rounded up to a second.
    fn horizon_s(&self) -> i64 {
        let file = fs::read(self.home.data_dir().join("horizon")).unwrap();
        let copy = |at: usize| u64::from_be_bytes(file[at..at + 8].try_into().unwrap());
        let nanos = HORIZON_AT.map(copy).into_iter().max().unwrap();
        i64::try_from(nanos.div_ceil(1_000_000_000)).unwrap()
    }
}
