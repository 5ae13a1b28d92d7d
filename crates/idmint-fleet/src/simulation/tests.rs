//! The properties that hold in every simulated run.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::{Mistake, Tally, run, run_regions};

/// The number of runs without a mistake, unless `SIMULATION_SEEDS` sets a different number.
const SEEDS: u64 = 1_500;

/// The simulation must find each deliberate mistake with a seed below this one.
const MISTAKE_SEEDS: u64 = 10_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().expect("a number"))
}

/// Returns the first seed whose run violates a property, with a description of the violation. If
/// there is none, returns the total counts of all runs.
fn search(
    seeds: Range<u64>,
    run: impl Fn(u64) -> Result<Tally, String> + Sync,
) -> Result<Tally, (u64, String)> {
    let (next, found) = (
        AtomicU64::new(seeds.start),
        Mutex::new(Ok(Tally::default())),
    );
    let threads = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let outcome = catch_unwind(AssertUnwindSafe(|| run(seed)));
                    let outcome = outcome.unwrap_or_else(|panic| Err(message_of(panic.as_ref())));
                    let mut found = found.lock().expect("no holder of this lock panics");
                    match (&mut *found, outcome) {
                        (Ok(tally), Ok(more)) => *tally += &more,
                        (Ok(_), Err(error)) => {
                            *found = Err((seed, error));
                            next.store(seeds.end, Ordering::Relaxed);
                        }
                        (Err(_), _) => return,
                    }
                }
            });
        }
    });
    found.into_inner().expect("no holder of this lock panics")
}

fn message_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
        .unwrap_or_default()
}

#[test]
fn no_id_is_minted_twice_whatever_fails() {
    if let Some(seed) = number("SIMULATION_SEED") {
        let tally = run(seed, Mistake::None).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        println!("{tally:#?}");
        return;
    }
    let seeds = number("SIMULATION_SEEDS").unwrap_or(SEEDS);
    let tally = search(0..seeds, |seed| run(seed, Mistake::None));
    let tally = tally.unwrap_or_else(|(seed, error)| panic!("SIMULATION_SEED={seed}: {error}"));
    println!("{seeds} seeds: {tally:#?}");
    let mishaps = &tally.mishaps;
    for (happened, what) in [
        (tally.minted / 1_000, "ids, in thousands"),
        (tally.acquired, "slots taken"),
        (tally.fenced, "fences"),
        (tally.adopted, "adoptions of a request"),
        (tally.reclaimed, "slots taken back"),
        (tally.crashes, "crashes"),
        (tally.pauses, "pauses"),
        (tally.freezes, "machines that stood still"),
        (tally.copies, "copies"),
        (tally.clock_steps, "clock steps"),
        (tally.clocks_mended, "clocks set right"),
        (tally.clocks_refused, "nodes without a slot for their clock"),
        (tally.clocks_stopped, "nodes that stopped for their clock"),
        (tally.clocks_healed, "clocks accepted again"),
        (tally.leaves, "slots given back"),
        (tally.restores, "restores from a backup"),
        (tally.waiting * 10, "own keys written without a slot"),
        (tally.regressions, "restores that were noticed"),
        (tally.acquired_after_a_fence, "slots taken after a fence"),
        (tally.adoptions, "adoptions of a single node"),
        (tally.wipes, "wipes"),
        (tally.appended, "appends"),
        (tally.refused, "refused appends and reads"),
        (tally.retried, "requests that were sent again"),
        (tally.swept, "keys of requests forgotten"),
        (mishaps.lost_requests, "lost requests"),
        (mishaps.lost_answers, "lost answers"),
        (mishaps.late, "late requests"),
        (mishaps.doubled, "doubled requests"),
        (mishaps.stale_reads, "stale reads"),
        (mishaps.leases_ended, "leases lost"),
        (mishaps.leaderless, "requests without a leader"),
        (mishaps.full, "requests to a full store"),
    ] {
        assert!(
            happened * 10 > seeds,
            "only {happened} {what} in {seeds} runs"
        );
    }
}

/// Checks that the simulation finds each deliberate mistake. Otherwise, runs without findings would
/// prove nothing. The search for a mistake begins at a seed that is known to be near a finding, to
/// save time.
#[test]
fn every_deliberate_mistake_is_found() {
    for (mistake, first) in [
        (Mistake::RenewsWithoutComparing, 0),
        (Mistake::StartsAtOwnClock, 0),
        (Mistake::LowersHorizonAtShutdown, 3_200),
        (Mistake::BelievesARead, 0),
        (Mistake::AdoptsByInstance, 0),
        (Mistake::ForgetsHighWater, 0),
        (Mistake::FloorsSlotZeroAlone, 0),
        (Mistake::LooksAtNoRevision, 0),
        (Mistake::ComparesNoOwnKey, 0),
        (Mistake::FoundsAsIfNobodyMinted, 0),
        (Mistake::TakesAFounderForAFence, 0),
        (Mistake::FencesAboveEveryHorizon, 0),
        (Mistake::SweepsByItsOwnClock, 0),
        (Mistake::CountsEveryHorizonOfAProcess, 1_000),
        (Mistake::ComparesNoWaitingKey, 0),
        (Mistake::OrdersErasByFloor, 0),
    ] {
        match search(first..MISTAKE_SEEDS, |seed| run(seed, mistake)) {
            Err((seed, error)) => println!("{mistake:?}: seed {seed}: {error}"),
            Ok(tally) => {
                panic!(
                    "{mistake:?} is not found in the runs from {first} to {MISTAKE_SEEDS}: {tally:?}"
                )
            }
        }
    }
}

#[test]
fn two_regions_with_a_share_of_the_slots_each_mint_no_id_twice() {
    const REGION_SEEDS: u64 = 500;
    let apart = search(0..REGION_SEEDS, |seed| run_regions(seed, ["0-3", "4-7"]));
    let tally = apart.unwrap_or_else(|(seed, error)| panic!("seed {seed}: {error}"));
    println!("{REGION_SEEDS} seeds: {tally:#?}");
    assert!(
        tally.minted > 1_000 * REGION_SEEDS && tally.acquired > 4 * REGION_SEEDS,
        "{tally:?}"
    );
    // Regions with disjoint shares of the slots mint no id twice, but regions that share a slot do.
    assert!(
        search(0..REGION_SEEDS, |seed| run_regions(seed, ["0-4", "4-7"])).is_err(),
        "a slot of two regions is found"
    );
}
