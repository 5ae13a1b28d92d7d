//! Checks that all storage engines store the same records if they receive the same random plans. A
//! plan is a decision to write a record.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::records::{
    CountedAnchor, NumberStore, RecordPlan, RecordStore, Records, SeriesSummary, WriteError,
};
use crate::samples::{
    NOW, anchor_of, append, at, close_plan, create, form, given_plan, in_form, plan, series,
    void_plan,
};
use idmint_records::conjunction::{Anchor, Pair, Tca};
use idmint_records::ledger::{KeyHash, LedgerId};

const SEEDS: u64 = 40;
const STEPS: u64 = 60;
/// The simulated time between two steps of a test, in microseconds. It is two hours, so that the
/// steps of one test cover some days.
const STEP_MICROS: u64 = 7_200_000_000;

/// Returns a few random plans to write records, based on the content of `records`. Some plans are
/// stale, so a store must refuse them.
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
                // Plans are based on stored events. So if two plans of one call append to one
                // ledger, the second is stale.
                RecordPlan::Append(plan(
                    &append(head.id.ledger(), names, key),
                    Some(head),
                    micros,
                ))
            }
            _ => {
                let delta = random.random_range(0..20) * 700_000;
                let secondary = random.random_range(1..3);
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

/// Returns a few random plans to issue or void numbers, or to close a series. Some plans are stale,
/// so a store must refuse them.
fn random_numbers(numbers: &dyn NumberStore, random: &mut StdRng, step: u64) -> Vec<RecordPlan> {
    let mut plans = Vec::new();
    for number in 0..random.random_range(1..4) {
        let name = series(&format!(
            "series-{}",
            random.random_range(0..4) + step / 20 * 4
        ));
        let head = numbers.series_head(&name).expect("reads");
        plans.push(match head {
            Some(head) if random.random_bool(0.3) => void_plan(
                numbers,
                &name,
                random.random_range(1..=head.last),
                &format!("reason {number}"),
            ),
            head if random.random_bool(0.02) => close_plan(&name, head),
            // No plan is written before this function returns. So if two plans issue numbers of one
            // series, the second is stale.
            head => {
                let key = format!("{step}-{number}");
                let plan = given_plan(&name, random.random_range(1..5), &key, head);
                in_form(plan, form(["A-", "B-"][random.random_range(0..2)]))
            }
        });
    }
    plans
}

/// Calls `read` on each store, and returns all results.
fn map_all<T>(all: &[Records], mut read: impl FnMut(&dyn RecordStore) -> T) -> Vec<T> {
    all.iter().map(|records| read(&**records)).collect()
}

/// Returns all stored data about numbers as one text.
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
            "{given:?} {:?} {:?}\n",
            numbers.voids(series, 0..=u64::MAX).expect("reads"),
            numbers.forms(series, 0..=u64::MAX).expect("reads"),
        );
    }
    text
}

/// Returns `true` if all stores wrote the planned records, or `false` if all stores refused the
/// plans as stale.
fn is_written_by_all(all: &[Records], plans: &[RecordPlan], place: &str) -> bool {
    let outcomes: Vec<_> = all.iter().map(|records| records.write(plans)).collect();
    if outcomes.iter().all(Result::is_ok) {
        return true;
    }
    let is_stale = |outcome: &Result<(), WriteError>| matches!(outcome, Err(WriteError::Stale));
    assert!(outcomes.iter().all(is_stale), "{place}: {outcomes:?}");
    false
}

/// Writes the same random changes of series to several empty stores, and checks that all stores
/// have the same data afterwards.
///
/// `open` takes a seed and returns the empty stores.
pub fn stores_agree_on_numbers(open: impl Fn(u64) -> Vec<Records>) {
    let (mut written, mut stale) = (0, 0);
    for seed in 0..SEEDS {
        let random = &mut StdRng::seed_from_u64(seed);
        let all = open(seed);
        for step in 0..STEPS {
            let plans = random_numbers(&*all[0], random, step);
            let is_written = is_written_by_all(&all, &plans, &format!("seed {seed}, step {step}"));
            written += u32::from(is_written);
            stale += u32::from(!is_written);
        }
        let texts = map_all(&all, |records| all_numbers(records));
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

/// Returns all stored data as one text.
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

/// Writes the same random plans to append events and to create anchors to several empty stores, and
/// checks that all stores have the same data afterwards.
///
/// `open` takes a seed and returns the empty stores.
pub fn stores_agree_on_records(open: impl Fn(u64) -> Vec<Records>) {
    let (mut written, mut stale) = (0, 0);
    for seed in 0..SEEDS {
        let random = &mut StdRng::seed_from_u64(seed);
        let all = open(seed);
        for step in 0..STEPS {
            let plans = random_plans(&*all[0], random, step);
            let is_written = is_written_by_all(&all, &plans, &format!("seed {seed}, step {step}"));
            written += u32::from(is_written);
            stale += u32::from(!is_written);
            if random.random_bool(0.05) {
                let before = Tca(random.random_range(0..20) * 700_000);
                let lists = map_all(&all, |records| {
                    let listed = records.anchors(None, 5).expect("works");
                    let is_old = |anchor: &&CountedAnchor| anchor.key.tca < before;
                    let old: Vec<CountedAnchor> = listed.iter().filter(is_old).cloned().collect();
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
                // Call `forget_requests` until no old idempotency key is left to remove. A storage
                // engine may remove the keys of one day per call, or those of all days at once.
                let has_forgotten = |records: &dyn RecordStore| {
                    let forget = || records.forget_requests(since, 1_000).expect("works");
                    std::iter::repeat_with(forget)
                        .take_while(|has_old| *has_old)
                        .count()
                        > 0
                };
                let outcomes = map_all(&all, has_forgotten);
                assert!(
                    outcomes.iter().all(|one| *one == outcomes[0]),
                    "seed {seed}, step {step}: {outcomes:?}"
                );
            }
        }
        let read = random.random();
        let texts = map_all(&all, |records| {
            everything(records, &mut StdRng::seed_from_u64(read))
        });
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
