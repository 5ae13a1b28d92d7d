//! Tests with power losses, disk errors and full disks. Every acknowledged record must be stored,
//! and no record may be stored twice.
//!
//! The record writer runs on a simulated disk that loses, tears and reorders writes that were not
//! synced. All replies are remembered and later compared with the store. To replay a failing seed,
//! run `POWER_LOSS_SEED=7 cargo test --lib power_loss`. To run more seeds, set
//! `POWER_LOSS_SEEDS=10000`.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::mpsc::{self, Sender};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::oneshot::{self, Receiver as Answer};

use super::*;
use crate::embedded::simulation::{Fault, SimulatedDatabase};
use crate::records::{DoneRequest, RecordStore, SeriesSummary};
use crate::samples::{NOW, append, create, form, number_request, reports, series, void_request};
use crate::writers::job::job;
use crate::writers::round::{Appended, Numbered};
use idmint_core::time::ManualClock;
use idmint_records::conjunction::Grouped;
use idmint_records::ledger::{
    EventId, GivenNumbers, KeyHash, LedgerId, LedgerRequest, Link, NumberForm, NumberRequest,
    SeriesName, VoidedNumber,
};

const SEEDS: u64 = 300;
const LIVES: usize = 8;
const ROUNDS_MAX: u32 = 8;
/// The maximum number of writes and syncs before a fault. A round of one append takes about this
/// many.
const OPERATIONS_MAX: u64 = 90;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// A request, remembered so that it can be sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Asked {
    Create(String),
    Append(LedgerId, Vec<String>),
}

impl Asked {
    fn order(&self, key: u128) -> LedgerRequest {
        match self {
            Asked::Create(name) => create(name, key),
            Asked::Append(ledger, names) => append(
                *ledger,
                &names.iter().map(String::as_str).collect::<Vec<_>>(),
                key,
            ),
        }
    }

    fn len(&self) -> usize {
        match self {
            Asked::Create(_) => 1,
            Asked::Append(_, names) => names.len(),
        }
    }
}

/// All requests that were sent, and their replies.
#[derive(Default)]
struct Told {
    asked: BTreeMap<u128, Asked>,
    /// The events of every acknowledged request, by request key.
    acknowledged: BTreeMap<u128, Vec<Link>>,
    /// The request keys whose outcome is unknown.
    unknown: BTreeSet<u128>,
    ledgers: Vec<LedgerId>,
    /// The time of the anchor in the reply to each report, by the report's second object and time.
    grouped: BTreeMap<(u64, i64), i64>,
    numbers: ToldNumbers,
    counts: Counts,
}

/// All requests for numbers that were sent, and their replies.
#[derive(Default)]
struct ToldNumbers {
    /// The series and the requested count, by request key.
    asked: BTreeMap<String, (SeriesName, u32)>,
    /// The issued numbers, by request key.
    given: BTreeMap<String, GivenNumbers>,
    /// The text form of the issued numbers, by request key.
    forms: BTreeMap<String, Option<NumberForm>>,
    /// The request keys whose outcome is unknown.
    unknown: BTreeSet<String>,
    /// The numbers that were acknowledged as void.
    voids: BTreeMap<(SeriesName, u64), VoidedNumber>,
}

/// Counts of outcomes, which show whether the disk failed often enough.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    acknowledged: u64,
    replayed: u64,
    unknown_and_kept: u64,
    unknown_and_lost: u64,
    failed: u64,
    full: u64,
    numbers: u64,
    voids: u64,
}

/// A request that was sent in the current round and has no reply yet.
enum Waiting {
    Append(u128, Answer<Result<Appended, RecordError>>),
    Group(u64, Vec<i64>, Answer<Result<Vec<Grouped>, RecordError>>),
    Number(String, Answer<Result<Numbered<GivenNumbers>, RecordError>>),
    Void(Answer<Result<Numbered<VoidedNumber>, RecordError>>),
}

/// The process has ended because of a fault.
struct Ended;

struct Life {
    writer: RecordWriter,
    jobs: Sender<AnyJob>,
}

impl Life {
    fn begin(backend: &SimulatedDatabase, hand: &ManualClock) -> Result<Life, StoreError> {
        let (jobs, waiting) = mpsc::channel();
        let writer = RecordWriter::new(
            backend.open_records()?,
            Arc::new(hand.clock()),
            waiting,
            None,
            Arc::default(),
        );
        Ok(Life { writer, jobs })
    }

    /// Processes the queued requests in one transaction.
    fn serve(&mut self) -> Result<(), StoreError> {
        let first = self.writer.waiting.recv().expect("something was sent");
        self.writer.serve(first)
    }
}

impl Told {
    /// Sends a few requests at the same time.
    fn ask(&mut self, jobs: &Sender<AnyJob>, random: &mut StdRng) -> Vec<Waiting> {
        (0..random.random_range(1..6))
            .map(|_| self.ask_once(jobs, random))
            .collect()
    }

    fn ask_once(&mut self, jobs: &Sender<AnyJob>, random: &mut StdRng) -> Waiting {
        if random.random_bool(0.3) {
            let secondary = random.random_range(2..4);
            let count = random.random_range(1..4);
            let time = |_| random.random_range(0..5_i64) * 1_000_000 + random.random_range(-1..=1);
            let times: Vec<i64> = (0..count).map(time).collect();
            let (answer, answered) = oneshot::channel();
            jobs.send(job(Arc::new(reports(&times, 1, secondary)), answer))
                .expect("the writer lives");
            return Waiting::Group(secondary, times, answered);
        }
        if random.random_bool(0.4) {
            return self.numbers.ask_once(jobs, random);
        }
        let key = self.next_key(random);
        let (answer, answered) = oneshot::channel();
        jobs.send(job(self.asked[&key].order(key), answer))
            .expect("the writer lives");
        Waiting::Append(key, answered)
    }

    /// Returns the key for the next request. The key is either new, or the key of an earlier
    /// request.
    fn next_key(&mut self, random: &mut StdRng) -> u128 {
        let retried: Vec<u128> = match random.random_range(0..4) {
            0 => self.acknowledged.keys().copied().collect(),
            1 => self.unknown.iter().copied().collect(),
            _ => Vec::new(),
        };
        if !retried.is_empty() {
            return retried[random.random_range(0..retried.len())];
        }
        let key = u128::try_from(self.asked.len()).expect("fits");
        let asked = if self.ledgers.is_empty() || random.random_bool(0.1) {
            Asked::Create(format!("ledger {}", random.random_range(0..3)))
        } else {
            let ledger = self.ledgers[random.random_range(0..self.ledgers.len())];
            let many = if random.random_bool(0.1) { 60 } else { 4 };
            Asked::Append(
                ledger,
                (0..random.random_range(1..many))
                    .map(|at| format!("{key} {at}"))
                    .collect(),
            )
        };
        self.asked.insert(key, asked);
        key
    }

    fn hear(&mut self, waiting: Vec<Waiting>) {
        for waiting in waiting {
            match waiting {
                Waiting::Append(key, mut answer) => match answer.try_recv() {
                    Ok(Ok(appended)) => self.hear_appended(key, appended),
                    Ok(Err(RecordError::Unavailable(_))) => {}
                    Ok(Err(RecordError::Unknown)) | Err(_) => self.hear_unknown(key),
                    Ok(Err(other)) => panic!("{key}: {other:?}"),
                },
                Waiting::Group(secondary, times, mut answer) => match answer.try_recv() {
                    Ok(Ok(grouped)) => self.hear_grouped(secondary, &times, &grouped),
                    Ok(Err(RecordError::Unavailable(_) | RecordError::Unknown)) | Err(_) => {}
                    Ok(Err(other)) => panic!("{other:?}"),
                },
                Waiting::Number(key, mut answer) => match answer.try_recv() {
                    Ok(Ok(numbered)) => self.numbers.hear_given(&key, numbered, &mut self.counts),
                    Ok(Err(RecordError::Unavailable(_))) => {}
                    Ok(Err(RecordError::Unknown)) | Err(_) => self.numbers.hear_unknown(key),
                    Ok(Err(other)) => panic!("{key}: {other:?}"),
                },
                Waiting::Void(mut answer) => match answer.try_recv() {
                    Ok(Ok(Numbered { stored, .. })) => {
                        let told = self
                            .numbers
                            .voids
                            .entry((stored.series.clone(), stored.number));
                        assert_eq!(
                            *told.or_insert(stored.clone()),
                            stored,
                            "it was told in another way before"
                        );
                        self.counts.voids += 1;
                    }
                    Ok(Err(RecordError::Unavailable(_) | RecordError::Unknown)) | Err(_) => {}
                    Ok(Err(other)) => panic!("{other:?}"),
                },
            }
        }
    }

    fn hear_appended(&mut self, key: u128, appended: Appended) {
        self.counts.acknowledged += 1;
        assert_eq!(
            appended.links.len(),
            self.asked[&key].len(),
            "{key} is whole"
        );
        match self.acknowledged.get(&key) {
            Some(links) => {
                assert!(appended.is_replayed, "{key} was appended twice");
                assert_eq!(&appended.links, links, "{key} was told other ids before");
                self.counts.replayed += 1;
            }
            None => {
                self.unknown.remove(&key);
                if let Asked::Create(_) = self.asked[&key] {
                    self.ledgers.push(appended.links[0].id.ledger());
                }
                self.acknowledged.insert(key, appended.links);
            }
        }
    }

    fn hear_unknown(&mut self, key: u128) {
        if !self.acknowledged.contains_key(&key) {
            self.unknown.insert(key);
        }
    }

    fn hear_grouped(&mut self, secondary: u64, times: &[i64], grouped: &[Grouped]) {
        assert_eq!(times.len(), grouped.len());
        for (time, grouped) in times.iter().zip(grouped) {
            assert!(grouped.delta_us.abs() <= 1_000_000);
            let told = *self
                .grouped
                .entry((secondary, *time))
                .or_insert(grouped.anchor.0);
            assert_eq!(
                told, grouped.anchor.0,
                "the report at {time} of {secondary} was told another anchor before"
            );
        }
    }

    /// Compares the content of the store with the replies.
    fn check(&mut self, records: &dyn RecordStore) {
        let request = |key: &u128| records.request(KeyHash(*key)).expect("reads");
        let done: Vec<DoneRequest> = self.asked.keys().filter_map(request).collect();
        let mut stored = BTreeMap::new();
        for request in &done {
            let (append, links) = records
                .append(request.last)
                .expect("reads")
                .expect("its append is there");
            assert_eq!(append.mark.map(|mark| mark.key), Some(request.key));
            let KeyHash(key) = request.key;
            assert_eq!(links.len(), self.asked[&key].len(), "{key} is there whole");
            assert!(stored.insert(key, links).is_none(), "{key} is there twice");
        }
        for (key, links) in &self.acknowledged {
            assert_eq!(stored.get(key), Some(links), "{key} was acknowledged");
        }
        let found = self
            .unknown
            .iter()
            .filter(|key| stored.contains_key(key))
            .count();
        self.counts.unknown_and_kept += u64::try_from(found).expect("fits");
        self.counts.unknown_and_lost += u64::try_from(self.unknown.len() - found).expect("fits");
        let allowed =
            |key: &&u128| self.acknowledged.contains_key(key) || self.unknown.contains(key);
        assert!(
            stored.keys().all(|key| allowed(&key)),
            "what was refused is stored"
        );
        check_chains(records, stored.values().flatten().copied().collect());
        self.check_anchors(records);
        self.numbers.check(records);
    }

    fn check_anchors(&self, records: &dyn RecordStore) {
        for ((secondary, time), anchor) in &self.grouped {
            let order = reports(&[*time], 1, *secondary);
            let stored = records
                .neighbours(order.format(), &mut order.keys())
                .expect("reads");
            let known = order
                .join_stored(&stored)
                .expect("no id is expected")
                .expect("it was acknowledged");
            assert_eq!(
                known[0].anchor.0, *anchor,
                "the report at {time} of {secondary}"
            );
        }
    }
}

impl ToldNumbers {
    /// Sends a request for numbers with a new or an old key, or a request to void a number.
    fn ask_once(&mut self, jobs: &Sender<AnyJob>, random: &mut StdRng) -> Waiting {
        if let Some(given) = self
            .given
            .values()
            .nth(random.random_range(0..40))
            .filter(|_| random.random_bool(0.3))
        {
            let (answer, answered) = oneshot::channel();
            let request = void_request(
                &given.series,
                random.random_range(given.first..=given.last),
                "cancelled",
            );
            jobs.send(job(request, answer)).expect("the writer lives");
            return Waiting::Void(answered);
        }
        let retried: Vec<&String> = match random.random_range(0..4) {
            0 => self.given.keys().collect(),
            1 => self.unknown.iter().collect(),
            _ => Vec::new(),
        };
        let key = match retried.len() {
            0 => self.asked.len().to_string(),
            many => retried[random.random_range(0..many)].clone(),
        };
        let new = || {
            (
                series(&format!("series-{}", random.random_range(0..3))),
                random.random_range(1..6),
            )
        };
        let (name, count) = self.asked.entry(key.clone()).or_insert_with(new);
        let (answer, answered) = oneshot::channel();
        // The configured text form changes often, even between a request and its repetition.
        let form = form(["A-", "B-"][random.random_range(0..2)]);
        let request = NumberRequest {
            form: Some(form),
            ..number_request(name, *count, &key)
        };
        jobs.send(job(request, answer)).expect("the writer lives");
        Waiting::Number(key, answered)
    }

    fn hear_given(
        &mut self,
        key: &str,
        Numbered {
            is_replayed,
            stored,
            form,
        }: Numbered<GivenNumbers>,
        counts: &mut Counts,
    ) {
        assert_eq!(
            (&stored.series, stored.count()),
            (&self.asked[key].0, self.asked[key].1.into()),
            "{key} is whole"
        );
        counts.numbers += 1;
        self.unknown.remove(key);
        let told = self.forms.entry(key.to_owned()).or_insert(form.clone());
        assert_eq!(*told, form, "the text of {key} has changed");
        if let Some(before) = self.given.insert(key.to_owned(), stored.clone()) {
            assert!(
                is_replayed && before == stored,
                "{key} was given {before:?} before, and {stored:?} now"
            );
        }
    }

    fn hear_unknown(&mut self, key: String) {
        if !self.given.contains_key(&key) {
            self.unknown.insert(key);
        }
    }

    /// Checks that the numbers of every series are 1, 2, 3 and so on. Each number must be issued
    /// once, and each key must still have the numbers that were first issued for it.
    fn check(&self, records: &dyn RecordStore) {
        let mut stored = BTreeMap::new();
        for SeriesSummary {
            series,
            first,
            last,
            ..
        } in records.series(None, usize::MAX).expect("reads")
        {
            let (mut next, mut recorded) = (1, None);
            for given in records.given(&series, 0, usize::MAX).expect("reads") {
                assert_eq!(given.first, next, "{series} has a gap");
                assert!(Some(given.recorded) >= recorded, "{series} goes back");
                (next, recorded) = (given.last + 1, Some(given.recorded));
                assert!(
                    stored
                        .insert((series.clone(), given.mark.key), given)
                        .is_none(),
                    "a key was given numbers twice"
                );
            }
            assert_eq!((first, last), (1, next - 1));
        }
        let place = |key: &String| {
            let (name, _) = &self.asked[key];
            (name.clone(), KeyHash::of_series(name, key))
        };
        for (key, given) in &self.given {
            assert_eq!(
                stored.get(&place(key)),
                Some(given),
                "{key} was acknowledged"
            );
            let form = records.form_at(&given.series, given.last).expect("reads");
            assert_eq!(form, self.forms[key], "the text of {key} has changed");
        }
        let allowed: BTreeSet<_> = self.given.keys().chain(&self.unknown).map(place).collect();
        assert!(
            stored.keys().all(|key| allowed.contains(key)),
            "what was refused is stored"
        );
        let keys: Vec<_> = stored.keys().cloned().collect();
        let by_key = records.given_to(&keys).expect("reads");
        assert!(
            by_key
                .iter()
                .zip(stored.values())
                .all(|(found, given)| found.as_ref() == Some(given))
        );
        for ((name, number), void) in &self.voids {
            assert_eq!(
                records.voids(name, *number..=*number).expect("reads"),
                slice::from_ref(void)
            );
        }
    }
}

/// Checks that every ledger is one chain without gaps, and has exactly the events of the requests.
fn check_chains(records: &dyn RecordStore, of_requests: Vec<Link>) {
    let mut of_requests: Vec<Link> = of_requests;
    let mut chained = Vec::new();
    for ledger in records.ledgers(None, usize::MAX).expect("reads") {
        let id = ledger.head.id.ledger();
        let chain = records.chain(id, None, usize::MAX).expect("reads");
        let mut previous = EventId::before_genesis(chain[0].id.timestamp(), id);
        for (place, link) in (1..).zip(&chain) {
            assert_eq!(
                (link.place, link.previous),
                (place, previous),
                "{id} has a gap"
            );
            assert!(
                place == 1 || link.id.timestamp() > previous.timestamp(),
                "{id} goes back"
            );
            previous = link.id;
        }
        assert_eq!((chain[0].id, previous), (ledger.genesis, ledger.head.id));
        chained.extend(chain);
    }
    let key = |link: &Link| (link.id.ledger(), link.place);
    chained.sort_by_key(key);
    of_requests.sort_by_key(key);
    assert_eq!(chained, of_requests, "the chains are the requests");
}

/// Runs one process from its start until it ends.
fn live(
    backend: &SimulatedDatabase,
    hand: &ManualClock,
    random: &mut StdRng,
    told: &mut Told,
) -> Result<(), Ended> {
    let disk = backend.disk();
    let fault = [
        Fault::Halt,
        Fault::Error(EIO),
        Fault::Error(ENOSPC),
        Fault::Full,
    ][random.random_range(0..4)];
    if random.random_bool(0.9) {
        disk.fail_after(random.random_range(0..OPERATIONS_MAX), fault);
    }
    let ended = |error: &StoreError| {
        let kind = error.failure_kind();
        assert!(
            matches!(kind, FailureKind::NotUsable | FailureKind::Full),
            "{}",
            WithCauses(error)
        );
        Ended
    };
    let mut life = Life::begin(backend, hand).map_err(|error| ended(&error))?;
    for _ in 0..random.random_range(1..=ROUNDS_MAX) {
        hand.advance(Duration::from_micros(random.random_range(0..3_000_000)));
        let waiting = told.ask(&life.jobs, random);
        let served = life.serve();
        let failed_at = disk.operations();
        if let Err(error) = served {
            told.counts.failed += 1;
            assert!(
                ![Fault::Full, Fault::Error(ENOSPC)].contains(&fault),
                "a full disk is waited for"
            );
            drop(life);
            assert_eq!(
                disk.operations(),
                failed_at,
                "something was written after an error"
            );
            told.hear(waiting);
            return Err(ended(&error));
        }
        told.hear(waiting);
        if !life.writer.is_open() {
            told.counts.full += 1;
            if random.random() {
                disk.make_room();
            }
        }
    }
    Ok(())
}

fn run(seed: u64) -> Counts {
    let random = &mut StdRng::seed_from_u64(seed);
    let hand = ManualClock::at(UnixNanos::new(NOW * 1_000));
    let backend = SimulatedDatabase::new(seed);
    drop(backend.open_records().expect("nothing fails yet"));
    let mut told = Told::default();
    for _ in 0..LIVES {
        let _ = live(&backend, &hand, random, &mut told);
        match random.random() {
            true => backend.disk().power_on(),
            false => backend.disk().restart_process(),
        }
        backend.disk().make_room();
        told.check(
            &*backend
                .open_records()
                .expect("the database opens after any end of the process"),
        );
    }
    backend.disk().power_on();
    told.check(
        &*backend
            .open_records()
            .expect("the database opens after a loss of power"),
    );
    told.counts
}

#[test]
fn no_acknowledged_record_is_lost_or_doubled_by_any_loss_of_power() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().expect("a number"))
    };
    let seeds = match number("POWER_LOSS_SEED") {
        Some(seed) => seed..=seed,
        None => 0..=number("POWER_LOSS_SEEDS").unwrap_or(SEEDS),
    };
    let is_many = seeds.end() - seeds.start() >= SEEDS;
    let mut sum = Counts::default();
    for seed in seeds {
        let replay = std::panic::catch_unwind(|| run(seed));
        let Ok(counts) = replay else {
            panic!("replay with POWER_LOSS_SEED={seed}")
        };
        sum.acknowledged += counts.acknowledged;
        sum.replayed += counts.replayed;
        sum.unknown_and_kept += counts.unknown_and_kept;
        sum.unknown_and_lost += counts.unknown_and_lost;
        sum.failed += counts.failed;
        sum.full += counts.full;
        sum.numbers += counts.numbers;
        sum.voids += counts.voids;
    }
    println!("{sum:?}");
    let least = [
        sum.replayed,
        sum.unknown_and_kept,
        sum.unknown_and_lost,
        sum.failed,
        sum.full,
        sum.numbers,
        sum.voids,
    ];
    let least = least.into_iter().min();
    assert!(
        !is_many || least > Some(20),
        "the disk is too kind: {sum:?}"
    );
}
