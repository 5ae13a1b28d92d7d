//! Histories drawn from a seed: three nodes append, are killed and asked again, their coordinator is restored from a backup of
//! some moment, and what journals have is imported. A failing seed replays: `RESTORE_SEED=7 cargo test --lib any_restore`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Reimported;
use super::sample_nodes::{FIRST, SampleNodes};
use crate::ledger::{AppendPlan, EventId, KeyHash, LedgerId, Link};
use crate::storage::fleet::FleetRecords;
use crate::storage::records::{RecordPlan, RecordStore};
use crate::storage::samples::{NOW, anchor_of, append, create, plan};

const SEEDS: u64 = 300;
const NODES: usize = 3;
const STEPS: u64 = 60;

/// A history on its way.
struct History {
    dice: StdRng,
    samples: SampleNodes,
    nodes: Vec<FleetRecords>,
    /// The last append of each ledger.
    ledgers: BTreeMap<LedgerId, AppendPlan>,
    /// What callers were told.
    acknowledged: Vec<AppendPlan>,
    /// The appends nobody was told of, since their nodes were killed.
    unanswered: Vec<AppendPlan>,
    conjunctions: u64,
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
            now: NOW,
        }
    }

    fn step(&mut self) {
        self.now += self.dice.random_range(0..2_000);
        let node = self.dice.random_range(0..NODES);
        match self.dice.random_range(0..10) {
            0 | 1 => {
                let event = format!("genesis {}", self.now);
                let plan = plan(&create(&event, self.key()), None, self.now);
                if !self.ledgers.contains_key(&plan.ledger()) {
                    self.append(node, vec![plan]);
                }
            }
            2 => {
                let object = self.conjunctions + 10;
                self.nodes[node].write(&[anchor_of("conjunction", (1, object), 0, 0)]).unwrap();
                self.conjunctions += 1;
            }
            3 => {
                // A caller asks another node again.
                if let Some(plan) = self.unanswered.pop() {
                    assert!(self.nodes[node].append(plan.head().id).unwrap().is_some());
                    self.acknowledged.push(plan);
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

    /// One transaction of a node, which may be killed before it has written it down.
    fn append(&mut self, node: usize, plans: Vec<AppendPlan>) {
        let records: Vec<RecordPlan> = plans.iter().cloned().map(RecordPlan::Append).collect();
        if !plans.is_empty() && self.dice.random_range(0..8) == 0 {
            self.samples.killed(node, FIRST).write(&records).unwrap_err();
            self.nodes[node] = self.samples.node(node, FIRST);
            self.unanswered.extend(plans.iter().cloned());
        } else {
            self.nodes[node].write(&records).unwrap();
            self.acknowledged.extend(plans.iter().cloned());
        }
        self.ledgers.extend(plans.into_iter().map(|plan| (plan.ledger(), plan)));
    }

    fn key(&mut self) -> u128 {
        self.dice.random()
    }

    /// The chain of each ledger, as it is stored.
    fn chains(&self) -> BTreeMap<LedgerId, Vec<Link>> {
        let records = self.samples.forgetful();
        self.ledgers.keys().map(|ledger| (*ledger, records.chain(*ledger, None, usize::MAX).unwrap())).collect()
    }
}

/// How much came back, and how much was lost.
fn restore(seed: u64) -> (u64, u64) {
    let mut history = History::of(seed);
    let backed_up_at = history.dice.random_range(0..STEPS);
    let mut backup = history.samples.store.copy();
    let mut of_backup = BTreeMap::new();
    for step in 0..STEPS {
        if step == backed_up_at {
            (backup, of_backup) = (history.samples.store.copy(), history.chains());
        }
        history.step();
    }
    let truth = history.chains();
    let conjunctions = history.samples.stored(&["conj-t"]);
    history.samples.store.restore(&backup);
    let is_whole = history.dice.random_range(0..2) == 0;
    let journals: Vec<usize> = (0..NODES).filter(|_| is_whole || history.dice.random_range(0..2) == 0).collect();
    let has_all = journals.len() == NODES;
    let copies = history.samples.copies(journals);
    let done = history.samples.import(&copies);

    let there = history.chains();
    for (ledger, truth) in &truth {
        let before = of_backup.get(ledger).map_or(0, Vec::len);
        assert!(truth.starts_with(&there[ledger]), "seed {seed}: a prefix of the true chain");
        assert!(there[ledger].len() >= before, "seed {seed}: and nothing less than the backup");
    }
    let is_there: BTreeSet<EventId> = there.values().flatten().map(|link| link.id).collect();
    let is_lost: BTreeSet<EventId> = done.lost.iter().flat_map(|lost| lost.events.iter().copied()).collect();
    assert!(is_there.is_disjoint(&is_lost), "seed {seed}");
    for event in copies.ledgers.values().flat_map(BTreeMap::keys) {
        assert!(is_there.contains(event) || is_lost.contains(event), "seed {seed}: {event} is neither there nor lost");
    }
    let records = history.samples.forgetful();
    for plan in &history.acknowledged {
        let is_back = is_there.contains(&plan.head().id);
        assert!(is_back || !has_all, "seed {seed}: {:?} was acknowledged", plan.head());
        let known = records.request(KeyHash(plan.mark.unwrap().key.0)).unwrap();
        assert_eq!(known.map(|done| done.last), is_back.then_some(plan.head().id), "seed {seed}: its key with it");
    }
    if has_all {
        assert_eq!((done.lost.len(), done.lost_conjunctions.len()), (0, 0), "seed {seed}");
        assert_eq!(history.samples.stored(&["conj-t"]), conjunctions, "seed {seed}");
    }
    let revision = history.samples.store.revision();
    let again = history.samples.import(&copies);
    assert_eq!(Reimported { lost: Vec::new(), ..again }, Reimported::default(), "seed {seed}");
    assert_eq!(history.samples.store.revision(), revision, "seed {seed}: nothing is written twice");
    (done.events, u64::try_from(is_lost.len()).unwrap())
}

#[test]
fn after_any_restore_a_ledger_is_a_prefix_of_what_it_was_and_all_of_it_where_all_journals_are_there() {
    let seeds = std::env::var("RESTORE_SEED").ok().map(|seed| seed.parse().unwrap());
    let (mut back, mut lost) = (0, 0);
    for seed in seeds.map_or(0..SEEDS, |seed: u64| seed..seed + 1) {
        let (events, missing) = restore(seed);
        back += events;
        lost += missing;
    }
    println!("{back} events came back, {lost} were lost");
    assert!(seeds.is_some() || back > 1_000 && lost > 100, "the dice are too kind: {back} back, {lost} lost");
}
