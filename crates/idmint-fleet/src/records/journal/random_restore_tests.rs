//! Tests with random histories. Three nodes append events and issue numbers, and are sometimes
//! killed. Then their coordinator is restored from a backup, and their journals are imported. To
//! replay a failing seed, run `RESTORE_SEED=7 cargo test --lib any_restore`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Reimported;
use super::sample_nodes::{FIRST, SampleNodes};
use crate::records::FleetRecords;
use idmint_records::ledger::{
    AppendPlan, EventId, GivenNumbers, KeyHash, LedgerId, Link, NumberForm, NumberPlan, SeriesName,
    VoidPlan, VoidedNumber,
};
use idmint_storage::samples::{
    NOW, anchor_of, append, at, correction_plan, create, form, given_plan, in_form, number_request,
    plan, series, void_request,
};
use idmint_storage::{LedgerStore, NumberStore, RecordPlan, RecordStore, RequestStore};

const SEEDS: u64 = 300;
const NODES: usize = 3;
const STEPS: u64 = 60;

/// The series whose first number is corrected.
const CORRECTED: &str = "corrected";
const WRONG: u64 = 12;

/// A random history of appends and numbers, and what callers know of it.
struct History {
    dice: StdRng,
    samples: SampleNodes,
    nodes: Vec<FleetRecords>,
    /// The last append of each ledger.
    ledgers: BTreeMap<LedgerId, AppendPlan>,
    /// The appends that were acknowledged to callers.
    acknowledged: Vec<AppendPlan>,
    /// The appends without a response, because their nodes were killed.
    unanswered: Vec<AppendPlan>,
    conjunctions: u64,
    /// The latest numbers of each series.
    series: BTreeMap<SeriesName, GivenNumbers>,
    /// The numbers that were acknowledged to callers.
    told: Vec<GivenNumbers>,
    /// The numbers without a response, because their nodes were killed.
    untold: Vec<GivenNumbers>,
    voids: BTreeMap<(SeriesName, u64), VoidedNumber>,
    /// The idempotency key of the request that got the wrong first number.
    begun: Option<KeyHash>,
    /// The form in which the numbers of each request are written, by idempotency key.
    forms: BTreeMap<KeyHash, NumberForm>,
    now: u64,
}

impl History {
    fn of(seed: u64) -> History {
        let samples = SampleNodes::of(NODES);
        let nodes = (0..NODES).map(|node| samples.node(node, FIRST)).collect();
        History {
            dice: StdRng::seed_from_u64(seed),
            samples,
            nodes,
            ledgers: BTreeMap::new(),
            acknowledged: Vec::new(),
            unanswered: Vec::new(),
            conjunctions: 0,
            series: BTreeMap::new(),
            told: Vec::new(),
            untold: Vec::new(),
            voids: BTreeMap::new(),
            begun: None,
            forms: BTreeMap::new(),
            now: NOW,
        }
    }

    fn step(&mut self) {
        self.now += self.dice.random_range(0..2_000);
        let node = self.dice.random_range(0..NODES);
        match self.dice.random_range(0..16) {
            0 | 1 => {
                let event = format!("genesis {}", self.now);
                let plan = plan(&create(&event, self.key()), None, self.now);
                if !self.ledgers.contains_key(&plan.ledger()) {
                    self.append(node, vec![plan]);
                }
            }
            2 => {
                let object = self.conjunctions + 10;
                self.nodes[node]
                    .write(&[anchor_of("conjunction", (1, object), 0, 0)])
                    .unwrap();
                self.conjunctions += 1;
            }
            3 => {
                // The caller asks another node for the outcome.
                if let Some(plan) = self.unanswered.pop() {
                    assert!(self.nodes[node].append(plan.head().id).unwrap().is_some());
                    self.acknowledged.push(plan);
                }
            }
            9 => self.begin_or_correct(node),
            10..=13 => self.give(node),
            14 => {
                if let Some(given) = self.untold.pop() {
                    let key = (given.series.clone(), given.mark.key);
                    assert_eq!(
                        self.nodes[node].given_to(&[key]).unwrap(),
                        [Some(given.clone())]
                    );
                    let form = self.nodes[node]
                        .form_at(&given.series, given.first)
                        .unwrap();
                    assert_eq!(form.as_ref(), self.forms.get(&given.mark.key));
                    self.told.push(given);
                }
            }
            15 => {
                let chosen = self.dice.random_range(0..self.told.len().max(1));
                if let Some(given) = self
                    .told
                    .get(chosen)
                    .filter(|given| !self.voids.contains_key(&place(given)))
                {
                    let request = void_request(&given.series, given.first, "cancelled");
                    let plan = VoidPlan::make(&request, Some(given), at(self.now)).unwrap();
                    self.nodes[node]
                        .write(&[RecordPlan::Void(plan.clone())])
                        .unwrap();
                    self.voids.insert(place(given), plan.void);
                }
            }
            _ => {
                let chosen: Vec<AppendPlan> = self.ledgers.values().cloned().collect();
                let mut plans = Vec::new();
                for before in chosen {
                    if self.dice.random_range(0..3) == 0 {
                        let names = ["a", "b", "c"];
                        let names = &names[..self.dice.random_range(1..=3)];
                        let request = append(before.ledger(), names, self.key());
                        plans.push(plan(&request, Some(before.head()), self.now));
                    }
                }
                self.append(node, plans);
            }
        }
    }

    /// Commits one transaction of a node. The node may be killed before it journals the commit.
    fn append(&mut self, node: usize, plans: Vec<AppendPlan>) {
        let records: Vec<RecordPlan> = plans.iter().cloned().map(RecordPlan::Append).collect();
        if !plans.is_empty() && self.dice.random_range(0..8) == 0 {
            self.samples
                .killed(node, FIRST)
                .write(&records)
                .unwrap_err();
            self.nodes[node] = self.samples.node(node, FIRST);
            self.unanswered.extend(plans.iter().cloned());
        } else {
            self.nodes[node].write(&records).unwrap();
            self.acknowledged.extend(plans.iter().cloned());
        }
        self.ledgers
            .extend(plans.into_iter().map(|plan| (plan.ledger(), plan)));
    }

    /// Issues numbers of one series.
    fn give(&mut self, node: usize) {
        let name = series(["acme", "acme-2", "b", CORRECTED][self.dice.random_range(0..4)]);
        let is_unready = self.wrong_first().is_some() || !self.series.contains_key(&name);
        if name.as_str() == CORRECTED && is_unready {
            return;
        }
        let head = self.series.get(&name).map(GivenNumbers::head);
        let plan = given_plan(
            &name,
            self.dice.random_range(1..4),
            &self.key().to_string(),
            head,
        );
        self.commit_numbers(node, plan);
    }

    /// Begins the series [`CORRECTED`] with a wrong number, or corrects this number.
    fn begin_or_correct(&mut self, node: usize) {
        let (name, key) = (series(CORRECTED), self.key().to_string());
        let plan = match self.wrong_first() {
            Some(wrong) => correction_plan(&wrong, 10, &key),
            None if self.series.contains_key(&name) => return,
            None => {
                let request = number_request(&name, 1, &key).beginning_with(WRONG);
                RecordPlan::Number(NumberPlan::make(&request, None, at(NOW)).unwrap())
            }
        };
        let is_other = |given: &GivenNumbers| given.series != name;
        self.told.retain(is_other);
        self.untold.retain(is_other);
        self.commit_numbers(node, plan);
    }

    /// Returns the wrong first number of the series [`CORRECTED`], until it is corrected.
    fn wrong_first(&self) -> Option<GivenNumbers> {
        let given = self.series.get(&series(CORRECTED))?;
        let is_wrong = given.first == WRONG && !self.voids.contains_key(&place(given));
        let is_first = self.begun == Some(given.mark.key);
        (is_wrong && is_first).then(|| given.clone())
    }

    /// Commits a plan to issue numbers. The node may be killed before it journals them.
    fn commit_numbers(&mut self, node: usize, plan: RecordPlan) {
        let form = form(["A-", "B-"][self.dice.random_range(0..2)]);
        let plan = in_form(plan, form.clone());
        let RecordPlan::Number(NumberPlan { given, .. }) = &plan else {
            unreachable!("made above")
        };
        self.forms.insert(given.mark.key, form);
        if self.dice.random_range(0..8) == 0 {
            self.samples
                .killed(node, FIRST)
                .write(std::slice::from_ref(&plan))
                .unwrap_err();
            self.nodes[node] = self.samples.node(node, FIRST);
            self.untold.push(given.clone());
        } else {
            self.nodes[node].write(std::slice::from_ref(&plan)).unwrap();
            self.told.push(given.clone());
        }
        if given.first == WRONG && !self.series.contains_key(&given.series) {
            self.begun = Some(given.mark.key);
        }
        self.series.insert(given.series.clone(), given.clone());
    }

    /// Returns the stored numbers of each series.
    fn numbers(&self) -> BTreeMap<SeriesName, Vec<GivenNumbers>> {
        let records = self.samples.forgetful();
        self.series
            .keys()
            .map(|name| (name.clone(), records.given(name, 0, usize::MAX).unwrap()))
            .collect()
    }

    fn key(&mut self) -> u128 {
        self.dice.random()
    }

    /// Returns the stored chain of each ledger.
    fn chains(&self) -> BTreeMap<LedgerId, Vec<Link>> {
        let records = self.samples.forgetful();
        self.ledgers
            .keys()
            .map(|ledger| (*ledger, records.chain(*ledger, None, usize::MAX).unwrap()))
            .collect()
    }
}

/// Returns the key in `History::voids` for the first of these numbers.
fn place(given: &GivenNumbers) -> (SeriesName, u64) {
    (given.series.clone(), given.first)
}

/// Checks the numbers after an import. Each series must be a prefix of the original one, or
/// complete if all journals were imported.
fn check_numbers(
    history: &History,
    truth: &BTreeMap<SeriesName, Vec<GivenNumbers>>,
    of_backup: &BTreeMap<SeriesName, Vec<GivenNumbers>>,
    done: &Reimported,
    has_all: bool,
) {
    let there = history.numbers();
    // If a journal is missing, skip the corrected series, because the correction may be only in
    // that journal.
    let is_known = |name: &SeriesName| has_all || name.as_str() != CORRECTED;
    for (name, truth) in truth.iter().filter(|(name, _)| is_known(name)) {
        let there = &there[name];
        assert!(
            truth.starts_with(there),
            "{name} is a prefix of what it was"
        );
        assert!(
            there.len() >= of_backup.get(name).map_or(0, Vec::len),
            "and nothing less than the backup"
        );
        let first = truth.first().map(|given| given.first);
        assert!(there.is_empty() || there.first().map(|given| given.first) == first);
        assert!(
            there.is_sorted_by(|one, next| one.last + 1 == next.first),
            "{name} has no gap"
        );
        let lost = done
            .lost_numbers
            .iter()
            .filter(|lost| lost.given.series == *name);
        assert!(
            lost.clone()
                .all(|lost| !there.contains(&lost.given) && truth.contains(&lost.given))
        );
    }
    let records = history.samples.forgetful();
    for given in history.told.iter().filter(|told| is_known(&told.series)) {
        let is_back = there[&given.series].contains(given);
        assert!(is_back || !has_all, "{given:?} was told");
        let of_key = records
            .given_to(&[(given.series.clone(), given.mark.key)])
            .unwrap()
            .remove(0);
        assert_eq!(of_key, is_back.then(|| given.clone()), "its key with it");
        if is_back {
            let form = records.form_at(&given.series, given.last).unwrap();
            assert_eq!(
                form.as_ref(),
                history.forms.get(&given.mark.key),
                "{given:?} has its text"
            );
        }
        let void = history.voids.get(&place(given)).filter(|_| has_all);
        let is_void = records
            .number(&given.series, given.first)
            .unwrap()
            .and_then(|number| number.void);
        assert!(
            void.is_none_or(|void| is_void.as_ref() == Some(void)),
            "{given:?} is void"
        );
    }
}

/// Replays a history and its restore. Returns the numbers of recovered events, lost events,
/// recovered numbers and lost numbers.
fn restore(seed: u64) -> [u64; 4] {
    let mut history = History::of(seed);
    let backed_up_at = history.dice.random_range(0..STEPS);
    let mut backup = history.samples.store.copy();
    let (mut of_backup, mut numbers_of_backup) = (BTreeMap::new(), BTreeMap::new());
    for step in 0..STEPS {
        if step == backed_up_at {
            (backup, of_backup) = (history.samples.store.copy(), history.chains());
            numbers_of_backup = history.numbers();
        }
        history.step();
    }
    let (truth, true_numbers) = (history.chains(), history.numbers());
    let conjunctions = history.samples.stored(&["conj-t"]);
    history.samples.store.restore(&backup);
    let is_whole = history.dice.random_range(0..2) == 0;
    let journals: Vec<usize> = (0..NODES)
        .filter(|_| is_whole || history.dice.random_range(0..2) == 0)
        .collect();
    let has_all = journals.len() == NODES;
    let copies = history.samples.copies(journals);
    let done = history.samples.import(&copies);

    check_numbers(&history, &true_numbers, &numbers_of_backup, &done, has_all);
    let there = history.chains();
    for (ledger, truth) in &truth {
        let before = of_backup.get(ledger).map_or(0, Vec::len);
        assert!(
            truth.starts_with(&there[ledger]),
            "seed {seed}: a prefix of the true chain"
        );
        assert!(
            there[ledger].len() >= before,
            "seed {seed}: and nothing less than the backup"
        );
    }
    let is_there: BTreeSet<EventId> = there.values().flatten().map(|link| link.id).collect();
    let is_lost: BTreeSet<EventId> = done
        .lost
        .iter()
        .flat_map(|lost| lost.events.iter().copied())
        .collect();
    assert!(is_there.is_disjoint(&is_lost), "seed {seed}");
    for event in copies.ledgers.values().flat_map(BTreeMap::keys) {
        assert!(
            is_there.contains(event) || is_lost.contains(event),
            "seed {seed}: {event} is neither there nor lost"
        );
    }
    let records = history.samples.forgetful();
    for plan in &history.acknowledged {
        let is_back = is_there.contains(&plan.head().id);
        assert!(
            is_back || !has_all,
            "seed {seed}: {:?} was acknowledged",
            plan.head()
        );
        let known = records.request(KeyHash(plan.mark.unwrap().key.0)).unwrap();
        assert_eq!(
            known.map(|done| done.last),
            is_back.then_some(plan.head().id),
            "seed {seed}: its key with it"
        );
    }
    if has_all {
        let lost = (
            done.lost.len(),
            done.lost_conjunctions.len(),
            done.lost_numbers.len(),
        );
        assert_eq!(lost, (0, 0, 0), "seed {seed}");
        assert_eq!(
            history.samples.stored(&["conj-t"]),
            conjunctions,
            "seed {seed}"
        );
    }
    let revision = history.samples.store.revision();
    let again = history.samples.import(&copies);
    let anything = Reimported {
        lost: Vec::new(),
        lost_numbers: Vec::new(),
        ..again
    };
    assert_eq!(anything, Reimported::default(), "seed {seed}");
    assert_eq!(
        history.samples.store.revision(),
        revision,
        "seed {seed}: nothing is written twice"
    );
    let lost_numbers = done
        .lost_numbers
        .iter()
        .map(|lost| lost.given.count())
        .sum();
    [
        done.events,
        u64::try_from(is_lost.len()).unwrap(),
        done.numbers,
        lost_numbers,
    ]
}

#[test]
fn after_any_restore_all_records_are_a_prefix_of_what_they_were_and_all_of_it_where_all_journals_are_there()
 {
    let seeds = std::env::var("RESTORE_SEED")
        .ok()
        .map(|seed| seed.parse().unwrap());
    let mut sums = [0; 4];
    for seed in seeds.map_or(0..SEEDS, |seed: u64| seed..seed + 1) {
        sums.iter_mut()
            .zip(restore(seed))
            .for_each(|(sum, more)| *sum += more);
    }
    let [events, lost, numbers, lost_numbers] = sums;
    println!(
        "{events} events came back, {lost} were lost; {numbers} numbers came back, {lost_numbers} were lost"
    );
    let are_fair = events > 1_000 && lost > 100 && numbers > 1_000 && lost_numbers > 100;
    assert!(
        seeds.is_some() || are_fair,
        "the dice are too kind: {sums:?}"
    );
}
