//! Tests a service that must skip the ids of another generator, and that is killed again and again.

use std::collections::HashSet;
use std::fmt::Write;
use std::fs;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::ids::{SEQUENCED, SNOWFLAKE};
use crate::service::{Home, Service};

/// The number of lanes (worker numbers) that a single node has.
const LANES: u128 = 8;

/// The result of [`mint_among_excluded_ids`].
#[derive(Debug)]
pub struct Excluded {
    /// The number of excluded ids, which another generator has used.
    pub ids: usize,
    /// The number of ids that the service minted in the time span of the excluded ids.
    pub minted_among: usize,
    /// The number of refused batches. Only a batch with more ids than one tick can hold may be
    /// refused.
    pub long_batches: usize,
}

/// Excludes one id of each worker number in every second millisecond, for the next `milliseconds`
/// milliseconds. Asserts that the service mints no id in an excluded tick.
///
/// The service is killed `rounds` times. In each round, the service mints for at least `minting`.
/// In total, it mints at least `least` ids.
pub fn mint_among_excluded_ids(
    milliseconds: u128,
    rounds: usize,
    minting: Duration,
    least: usize,
) -> Excluded {
    let (home, format) = (Home::new(), &SEQUENCED[SNOWFLAKE]);
    let first = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_millis()
        / 2
        * 2;
    let (mut file, mut ids) = (String::new(), 0);
    for millisecond in (first..first + milliseconds).step_by(2) {
        for worker in 0..LANES {
            let sequence = (millisecond / 2 * 7 + worker) % 4096;
            writeln!(file, "{}", format.id(millisecond, worker, sequence)).unwrap();
            ids += 1;
        }
    }
    let path = home.path("issued");
    fs::write(&path, file).unwrap();
    let settings = format!("[formats.snowflake]\nexclude = {path:?}\n");
    let (mut seen, mut minted_among, mut long_batches) = (HashSet::new(), 0, 0);
    for round in 1..=rounds {
        let service = Service::start(home.serve_with(&settings));
        service.wait_until_ready();
        let begun = Instant::now();
        while begun.elapsed() < minting || seen.len() < least / rounds * round {
            for count in [1, 40, 3_000, 4_096, 5_000] {
                let answer = service.post(&format!("/ids/snowflake?count={count}"));
                // The disk was too busy to reserve minting time for this batch. Try the next batch.
                if answer.text().contains("horizon-reached") {
                    continue;
                }
                if answer.status != 200 {
                    // Only a batch that does not fit into the single tick between two excluded
                    // ticks may be refused.
                    assert!(count > 4_096, "{count}: {}", answer.text());
                    assert!(
                        answer.text().contains("sequence-exhausted"),
                        "{}",
                        answer.text()
                    );
                    long_batches += 1;
                    continue;
                }
                let batch: Vec<u128> = answer
                    .text()
                    .lines()
                    .map(|text| format.value(text))
                    .collect();
                assert_eq!(batch.len(), count);
                assert!(
                    batch.windows(2).all(|pair| pair[0] < pair[1]),
                    "a batch ascends"
                );
                for id in batch {
                    let millisecond = format.unix_ms(id);
                    let is_among = (first..first + milliseconds).contains(&millisecond);
                    assert!(
                        !is_among || millisecond % 2 == 1,
                        "{id} is of an excluded tick"
                    );
                    assert!(seen.insert(id), "{id} came twice");
                    minted_among += usize::from(is_among);
                }
            }
        }
        service.kill();
    }
    Excluded {
        ids,
        minted_among,
        long_batches,
    }
}
