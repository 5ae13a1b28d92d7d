//! Checks a format with long ticks after the data folder was lost, or restored as documented. The
//! format must wait for its next tick, while other formats mint immediately.

use std::process::Command;

use crate::wall_clock::{WallClock, now_s};
use idmint_testing::service::{Home, Service, until};

const MINUTE_S: i64 = 60;

/// A configuration that adds a format with ticks of a minute.
const MINUTES: &str = r#"
clock.max_ahead = "60s"
[formats.minutes]
summary = "a tick of a minute"
rule = "sequenced"
tick = "60s"
epoch = "2020-01-01T00:00:00Z"
encodings = ["decimal"]
fields = [
    { name = "time", kind = "time", bits = 32 },
    { name = "worker", kind = "worker", bits = 4 },
    { name = "sequence", kind = "sequence", bits = 16 },
]
"#;

/// A node whose wall clock the test sets between starts, so that the test need not wait for a
/// minute.
struct Node {
    home: Home,
    wall: WallClock,
    /// The beginning of the current minute, in seconds since 1970.
    minute_s: i64,
    /// The minted ids of the format `minutes`, and then those of `snowflake`.
    minted: [Vec<u128>; 2],
}

impl Node {
    fn new() -> Node {
        let home = Home::new();
        let wall = WallClock::of(&home);
        Node {
            home,
            wall,
            minute_s: now_s() / MINUTE_S * MINUTE_S,
            minted: [Vec::new(), Vec::new()],
        }
    }

    /// Starts the node `second` seconds after the beginning of the minute.
    fn start_at(&self, second: i64, floor: Option<i64>) -> Service {
        self.wall.set(self.minute_s + second - now_s());
        let mut command: Command = self.home.serve_with(MINUTES);
        if let Some(second) = floor {
            let floor = idmint_core::time::UnixTime::from_nanos(
                i128::from(self.minute_s + second) * 1_000_000_000,
            );
            command.args(["--floor", &floor.to_text(0).unwrap()]);
        }
        let service = self.wall.start(command);
        service.wait_until_ready();
        service
    }

    fn mint(&mut self, service: &Service) {
        for (minted, order) in self
            .minted
            .iter_mut()
            .zip(["minutes?count=500", "snowflake?count=500"])
        {
            minted.extend(
                service
                    .mint(order)
                    .iter()
                    .map(|id| id.parse::<u128>().unwrap()),
            );
        }
    }

    /// Asserts that `minutes` waits for its next tick, and that `snowflake` mints.
    #[track_caller]
    fn assert_minutes_wait(&mut self, service: &Service) {
        let refused = service.post("/ids/minutes");
        assert_eq!(
            (refused.status, refused.json()["type"].as_str()),
            (503, Some("/problems/horizon-reached"))
        );
        assert!(
            refused.text().contains("begins with its next whole tick"),
            "{}",
            refused.text()
        );
        let wait_s: i64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=2 * MINUTE_S).contains(&wait_s), "{wait_s}");
        assert_eq!(service.get("/health/ready").status, 200);
        self.minted[1].extend(
            service
                .mint("snowflake?count=500")
                .iter()
                .map(|id| id.parse::<u128>().unwrap()),
        );
    }

    /// Asserts that the ids of each format increase in the order in which they were minted. No id
    /// is therefore minted twice.
    fn assert_no_id_twice(self) {
        for mut minted in self.minted {
            assert!(minted.len() >= 1_500, "{}", minted.len());
            assert!(
                minted.is_sorted_by(|a, b| a < b),
                "each id is above the one before it"
            );
            minted.dedup();
            println!("{} ids, none twice", minted.len());
        }
    }
}

/// Asserts that `minutes` mints again after the minute in which it was refused. The test uses a
/// process that starts shortly before the end of this minute, and then a process that starts later.
fn assert_minutes_go_on(mut node: Node) {
    // Restart within the same minute. `minutes` must still wait, because the record of the first
    // start determines when the format begins, and not the clock.
    let service = node.start_at(25, None);
    node.assert_minutes_wait(&service);
    service.kill();

    // `minutes` must begin to mint when the minute ends, without a restart.
    let service = node.start_at(MINUTE_S - 2, None);
    until("the next minute has begun", || {
        (service.post("/ids/minutes").status == 200).then_some(())
    });
    node.mint(&service);
    service.kill();
    let service = node.start_at(MINUTE_S + 20, None);
    node.mint(&service);
    node.assert_no_id_twice();
}

#[test]
fn a_lost_folder_holds_a_format_of_a_minute_to_its_next_tick_and_no_other() {
    let mut node = Node::new();
    // A first start has no record of earlier ids either, so `minutes` must also wait.
    let service = node.start_at(-30, None);
    node.assert_minutes_wait(&service);
    service.kill();
    let service = node.start_at(5, None);
    node.mint(&service);
    service.kill();

    std::fs::remove_dir_all(node.home.data_dir()).unwrap();
    let service = node.start_at(20, None);
    assert_eq!(service.metric("idmint_horizon_cold_starts_total"), 1.0);
    node.assert_minutes_wait(&service);
    service.kill();
    assert_minutes_go_on(node);
}

#[test]
fn a_restore_by_the_book_holds_a_format_of_a_minute_to_its_next_tick_and_no_other() {
    let mut node = Node::new();
    let service = node.start_at(-30, None);
    service.kill();
    let service = node.start_at(5, None);
    node.mint(&service);
    service.kill();

    std::fs::remove_dir_all(node.home.data_dir()).unwrap();
    // Use a floor that is slightly later than now, as docs/OPERATIONS.md prescribes.
    let service = node.start_at(10, Some(20));
    service.log_once_it_says("starting above the stated floor");
    node.assert_minutes_wait(&service);
    service.kill();
    assert_minutes_go_on(node);
}
