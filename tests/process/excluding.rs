//! A service that is killed again and again, beside the ids of another generator that it must leave out.

use std::collections::HashSet;
use std::fmt::Write;
use std::fs;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::ids::{SEQUENCED, SNOWFLAKE};
use crate::service::{Home, Service};

/// The worker numbers that a node alone has.
const LANES: u128 = 8;

/// What came of it.
#[derive(Debug)]
pub(crate) struct Excluded {
    /// How many ids were left out.
    pub(crate) ids: usize,
    /// How many were minted while ticks to come were left out.
    pub(crate) minted_among: usize,
    /// How many batches were asked for that no tick alone has.
    pub(crate) long_batches: usize,
}

/// Leaves one id out of every even millisecond from now on, of each worker number; mints between kills, for at least so long each time
/// and at least so many ids in all, and holds every id to it.
pub(crate) fn mint_among_excluded_ids(
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
                // The disk was busy for seconds; the next one may be minted.
                if answer.text().contains("horizon-reached") {
                    continue;
                }
                if answer.status != 200 {
                    // Nothing longer than the gap between two of them is minted among them; everything else is.
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
