//! The long run of `kill -9` under load.

use std::time::{Duration, Instant};

use crate::load::kill_under_load;
use crate::service::Home;

#[test]
fn no_id_comes_twice_through_200_kills_and_a_start_is_ready_within_a_second() {
    let begun = Instant::now();
    let killed = kill_under_load(&Home::new(), 200, Duration::from_millis(900));
    killed.print(begun);
    assert!(
        killed.median() < Duration::from_secs(1),
        "{:?}",
        killed.ready_after
    );
    assert!(
        *killed.ready_after.last().unwrap() < Duration::from_secs(3),
        "{:?}",
        killed.ready_after
    );
    // A second, and a whole tick of `payment` more.
    assert!(
        killed.ahead_ms_at_the_end <= 2_000,
        "{} ms ahead",
        killed.ahead_ms_at_the_end
    );
}
