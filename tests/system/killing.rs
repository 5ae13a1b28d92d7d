//! Kills the service with `kill -9` under load over and over, for longer than
//! tests/process/killing.rs.

use std::time::{Duration, Instant};

use idmint_testing::load::kill_under_load;
use idmint_testing::service::Home;

#[test]
fn no_id_comes_twice_through_kills_under_load() {
    let begun = Instant::now();
    let kills = std::env::var("KILLS").map_or(60, |kills| kills.parse().expect("a number"));
    let killed = kill_under_load(&Home::new(), kills, Duration::from_millis(900));
    killed.print(begun);
    // The limit is one second, plus a whole tick of `payment`.
    assert!(
        killed.ahead_ms_at_the_end <= 2_000,
        "{} ms ahead",
        killed.ahead_ms_at_the_end
    );
}
