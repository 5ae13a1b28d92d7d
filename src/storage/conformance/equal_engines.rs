//! Engines that were asked for the same have stored the same, whatever it was.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::fleet_records;
use crate::conjunction::{Anchor, Pair, Tca};
use crate::ledger::{KeyHash, LedgerId};
use crate::storage::coordinator::MemoryCoordinator;
use crate::storage::embedded::simulation::SimulatedDatabase;
use crate::storage::fleet::FleetRecords;
use crate::storage::records::{
    NumberStore, RecordPlan, RecordStore, SeriesSummary, TalliedAnchor, WriteError,
};
use crate::storage::samples::{
    NOW, anchor_of, append, at, create, given_plan, plan, series, void_plan,
};

const SEEDS: u64 = 40;
const STEPS: u64 = 60;
/// Two hours, so that the steps are some days.
const STEP_MICROS: u64 = 7_200_000_000;

/// A few plans, sound ones and stale ones, for the state of `records`.
fn random_plans(records: &dyn RecordStore, random: &mut StdRng, step: u64) -> Vec<RecordPlan> {
    let ledgers = records.ledgers(None, 9).expect("reads");
    let micros = NOW + step * STEP_MICROS;
    let mut plans = Vec::new();
    for number in 0..random.random_range(1..4_u128) {
        let key = u128::from(step) * 10 + number;
        plans.push(match random.random_range(0..6) {
            0 => RecordPlan::Append(plan(
                &create(&format!("ledger {}", random.random_range(0..9)), key),
                None,
                micros,
            )),
            1..4 if !ledgers.is_empty() => {
                let head = ledgers[random.random_range(0..ledgers.len())].head;
                let names = &["a", "b", "c"][..random.random_range(1..4)];
                // The second append to one ledger in a call is stale: it was not made for the first.
                RecordPlan::Append(plan(
                    &append(head.id.ledger(), names, key),
                    Some(head),
                    micros,
                ))
            }
            _ => {
                let (delta, secondary) = (
                    random.random_range(0..20) * 700_000,
                    random.random_range(1..3),
                );
                let near = (
                    Pair {
                        primary: 1,
                        secondary,
                    },
                    Tca(delta),
                );
                let near = records
                    .neighbours("conjunction", &mut std::iter::once(near))
                    .expect("reads");
                let rank =
                    Anchor::create(Tca(delta), &near[0]).rank + u32::from(random.random_bool(0.1));
                anchor_of("conjunction", (1, secondary), delta, rank)
            }
        });
    }
    plans
}

/// A few plans of numbers, sound ones and stale ones.
fn random_numbers(numbers: &dyn NumberStore, random: &mut StdRng, step: u64) -> Vec<RecordPlan> {
    let mut plans = Vec::new();
    for number in 0..random.random_range(1..4) {
        let name = series(&format!("series-{}", random.random_range(0..4)));
        let head = numbers.series_head(&name).expect("reads");
        plans.push(match head {
            Some(head) if random.random_bool(0.3) => void_plan(
                &name,
                random.random_range(1..=head.last),
                &format!("reason {number}"),
            ),
            // The second plan for one series in a call is stale: it was not made for the first.
            head => given_plan(
                &name,
                random.random_range(1..5),
                &format!("{step}-{number}"),
                head,
            ),
        });
    }
    plans
}

/// All that can be read of numbers, as one text.
fn all_numbers(numbers: &dyn NumberStore) -> String {
    let summaries = numbers.series(None, 100).expect("reads");
    let mut text = format!("{summaries:?}");
    for SeriesSummary { series, .. } in &summaries {
        let given = numbers.given(series, 0, 1_000).expect("reads");
        let keys: Vec<_> = given
            .iter()
            .map(|given| (series.clone(), given.mark.key))
            .collect();
        assert_eq!(
            numbers.given_to(&keys).expect("reads"),
            given.iter().cloned().map(Some).collect::<Vec<_>>()
        );
        text += &format!(
            "{given:?} {:?}\n",
            numbers.voids(series, 0..=u64::MAX).expect("reads")
        );
    }
    text
}

/// Whether all engines wrote the plans, or none of them since they were stale.
fn is_written_by_all(all: [&dyn RecordStore; 3], plans: &[RecordPlan], place: &str) -> bool {
    match all.map(|records| records.write(plans)) {
        [Ok(()), Ok(()), Ok(())] => true,
        [
            Err(WriteError::Stale),
            Err(WriteError::Stale),
            Err(WriteError::Stale),
        ] => false,
        differing => panic!("{place}: {differing:?}"),
    }
}

#[test]
fn engines_that_are_asked_for_the_same_numbers_store_the_same() {
    let (mut written, mut stale) = (0, 0);
    for seed in 0..SEEDS {
        let random = &mut StdRng::seed_from_u64(seed);
        let memory = FleetRecords::in_memory();
        let embedded = SimulatedDatabase::new(seed)
            .open_records()
            .expect("the disk works");
        let fleet = fleet_records(Arc::new(MemoryCoordinator::default()));
        let all: [&dyn RecordStore; 3] = [&memory, &*embedded, &fleet];
        for step in 0..STEPS {
            let plans = random_numbers(all[0], random, step);
            let is_written = is_written_by_all(all, &plans, &format!("seed {seed}, step {step}"));
            written += u32::from(is_written);
            stale += u32::from(!is_written);
        }
        let texts = all.map(|records| all_numbers(records));
        assert!(
            texts.iter().all(|text| *text == texts[0]),
            "seed {seed}: {texts:#?}"
        );
    }
    assert!(
        written > 500 && stale > 200,
        "{written} written, {stale} stale"
    );
}

/// All that can be read, as one text.
fn everything(records: &dyn RecordStore, random: &mut StdRng) -> String {
    let ledgers = records.ledgers(None, 100).expect("reads");
    let mut text = format!("{ledgers:?}\n");
    for ledger in &ledgers {
        let id = ledger.head.id.ledger();
        let chain = records.chain(id, None, 1_000).expect("reads");
        let some = chain[random.random_range(0..chain.len())].id;
        text += &format!(
            "{:?} {:?} {chain:?}\n",
            records.head(id),
            records.ledger(id)
        );
        text += &format!(
            "{:?}\n",
            records.chain(id, Some(some), random.random_range(0..5))
        );
        text += &format!(
            "{:?} {:?} {:?}\n",
            records.link(some),
            records.append(some),
            records.append(ledger.head.id)
        );
        text += &format!("{:?}\n", records.ledgers(Some(id), 2));
    }
    text += &format!(
        "{:?}\n",
        LedgerId::from_bits(0).map(|none| records.ledger(none))
    );
    for secondary in 1..3 {
        let times = (0..20).map(|at| {
            (
                Pair {
                    primary: 1,
                    secondary,
                },
                Tca(at * 700_000),
            )
        });
        text += &format!("{:?}\n", records.neighbours("conjunction", &mut { times }));
    }
    let days = records.request_days().expect("reads");
    text += &format!("{:?}\n", &days[days.len().saturating_sub(3)..]);
    let request = |key| records.request(KeyHash(key)).expect("reads");
    text + &format!(
        "{:?}",
        (0..u128::from(STEPS) * 10)
            .filter_map(request)
            .collect::<Vec<_>>()
    )
}

#[test]
fn engines_that_are_asked_for_the_same_store_the_same() {
    let (mut written, mut stale) = (0, 0);
    for seed in 0..SEEDS {
        let random = &mut StdRng::seed_from_u64(seed);
        let memory = FleetRecords::in_memory();
        let embedded = SimulatedDatabase::new(seed)
            .open_records()
            .expect("the disk works");
        let fleet = fleet_records(Arc::new(MemoryCoordinator::default()));
        let all: [&dyn RecordStore; 3] = [&memory, &*embedded, &fleet];
        for step in 0..STEPS {
            let plans = random_plans(&memory, random, step);
            let is_written = is_written_by_all(all, &plans, &format!("seed {seed}, step {step}"));
            written += u32::from(is_written);
            stale += u32::from(!is_written);
            if random.random_bool(0.05) {
                let before = Tca(random.random_range(0..20) * 700_000);
                let lists = all.map(|records| {
                    let listed = records.anchors(None, 5).expect("works");
                    let is_old = |anchor: &&TalliedAnchor| anchor.key.tca < before;
                    let old: Vec<TalliedAnchor> = listed.iter().filter(is_old).cloned().collect();
                    records.forget_anchors(&old).expect("works");
                    listed
                });
                assert!(
                    lists.iter().all(|list| *list == lists[0]),
                    "seed {seed}, step {step}: {lists:?}"
                );
            }
            if random.random_bool(0.1) {
                let since = at(NOW + random.random_range(0..=step) * STEP_MICROS);
                // A day at a time, or all of them.
                let has_forgotten = |records: &dyn RecordStore| {
                    let forget = || records.forget_requests(since, 1_000).expect("works");
                    std::iter::repeat_with(forget)
                        .take_while(|has_old| *has_old)
                        .count()
                        > 0
                };
                let outcomes = all.map(has_forgotten);
                assert!(
                    outcomes.iter().all(|one| *one == outcomes[0]),
                    "seed {seed}, step {step}: {outcomes:?}"
                );
            }
        }
        let read = random.random();
        let texts = all.map(|records| everything(records, &mut StdRng::seed_from_u64(read)));
        assert!(
            texts.iter().all(|text| *text == texts[0]),
            "seed {seed}: {texts:#?}"
        );
    }
    assert!(
        written > 500 && stale > 200,
        "{written} written, {stale} stale"
    );
}
