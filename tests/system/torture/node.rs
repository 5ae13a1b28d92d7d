//! The node of the torture test: its folder, its wall clock, and one process after another.

use std::fs;

use idmint_core::time::UnixTime;

use super::schedule::Configuration;
use crate::wall_clock::{WallClock, now_s};
use idmint_testing::service::{Ended, Home, Service, run, until};

/// An offset of the wall clock in seconds. It is larger than the time by which the horizon is ahead
/// of the clock at a start.
const FAR_BEHIND_S: i64 = 3 * 3_600;

/// The byte offsets of the horizon in its file, which contains two copies.
const HORIZON_AT: [usize; 2] = [24, 4_096 + 24];

pub(crate) struct Node {
    home: Home,
    wall: WallClock,
    /// The time by which the node's right time is ahead of the time of this machine, in seconds. It
    /// only increases.
    ahead_s: i64,
    /// `true` if the last process began at its clock's time or earlier. Its ids were then not far
    /// ahead of the clock.
    began_by_its_clock: bool,
}

/// A process that began without a record of earlier ids. It knew only a lower bound for the times
/// of its own ids, which is a floor or its clock.
pub(crate) struct Fresh {
    pub(crate) service: Service,
    /// `true` if the earlier process may have reserved time beyond that lower bound. In that case,
    /// only the wait for whole ticks prevents repeated ids.
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

    /// Starts the node, and waits until it mints.
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

    /// Starts the node with a configuration in which `from` is replaced by `to`. The node must
    /// refuse to start.
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

    /// Starts the node while its wall clock is hours behind. As soon as the start waits for the
    /// clock, sets the clock right.
    pub(crate) fn start_behind(&mut self, configuration: &Configuration) -> Service {
        self.began_by_its_clock = self.horizon_s() <= self.now_s();
        self.set_wall(-FAR_BEHIND_S);
        let service = self
            .wall
            .start(self.home.serve_with(&configuration.to_toml()));
        until("the start has found its clock behind", || {
            service
                .log()
                .contains("this node does not mint yet")
                .then_some(())
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

    /// Removes the folder, and starts the node with the floor that docs/OPERATIONS.md prescribes.
    /// The floor is slightly later than now. If the last process began ahead of its clock, the
    /// floor is above the horizon.
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

    /// Removes the folder, and starts the node with a right clock. The start is slightly later than
    /// the end of the last process. If that process began ahead of its clock, the start is later
    /// than all time that it may have reserved.
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

    /// Sets the wall clock ahead by `by_s` seconds, and keeps it there.
    pub(crate) fn step_ahead(&mut self, by_s: i64) {
        self.ahead_s += by_s;
        self.set_wall(0);
    }

    /// Sets the wall clock to `off_s` seconds after the right time.
    pub(crate) fn set_wall(&self, off_s: i64) {
        self.wall.set(self.ahead_s + off_s);
    }

    /// Returns the right time of the node, in seconds since 1970.
    fn now_s(&self) -> i64 {
        now_s() + self.ahead_s
    }

    /// Returns the time up to which ids may have been minted, in seconds since 1970, rounded up.
    fn horizon_s(&self) -> i64 {
        let file = fs::read(self.home.data_dir().join("horizon")).unwrap();
        let copy = |at: usize| u64::from_be_bytes(file[at..at + 8].try_into().unwrap());
        let nanos = HORIZON_AT.map(copy).into_iter().max().unwrap();
        i64::try_from(nanos.div_ceil(1_000_000_000)).unwrap()
    }
}
