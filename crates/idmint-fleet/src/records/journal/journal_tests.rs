//! Tests which rows an import recovers from journals, which rows are lost, and which rows are never
//! journalled.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::journal_record::JournalRecord;
use super::sample_nodes::{FENCED, FIRST, LOWERED, SampleNodes, ids, write};
use super::segments::{self, JournalBounds};
use super::{JournalCopies, JournalError, LostAppend, LostConjunction, Reimported};
use crate::coordinator::{Coordinator, CoordinatorError, MemoryCoordinator, Transaction, Write};
use crate::nonce::Nonce;
use crate::records::keys::Keys;
use crate::records::known_fleet::FleetEra;
use crate::records::rows::{Attempt, pair_of_bytes, pair_to_bytes};
use crate::records::{FleetRecords, JOURNALLED_WITHIN};
use idmint_core::time::UnixNanos;
use idmint_records::conjunction::{Anchor, AnchorPlan, Pair, Tca};
use idmint_records::ledger::{AppendPlan, KeyHash, NumberPlan, SeriesName};
use idmint_storage::Namespace;
use idmint_storage::samples::{
    NOW, anchor, anchor_of, append, at, begin, close_plan, correction_plan, create, form, give,
    given_plan, in_form, links, near, number_request, plan, series,
};
use idmint_storage::{
    ConjunctionStore, LedgerStore, NumberStore, RecordPlan, RecordStore, RequestStore, WriteError,
};

/// The fates of the next transactions. For example, `(true, false)` means that the transaction is
/// committed, but its response is lost.
type Fates = Arc<Mutex<VecDeque<(bool, bool)>>>;

/// A store that applies the given fates to transactions in order, and works normally afterwards.
fn unsteady(store: &Arc<MemoryCoordinator>, fates: &Fates) -> Arc<dyn Coordinator> {
    let fates = Arc::clone(fates);
    store.committed_by(move |store, transaction| {
        let (is_done, is_answered) = fates.lock().unwrap().pop_front().unwrap_or((true, true));
        let outcome = is_done.then(|| store.commit(transaction)).transpose()?;
        match outcome.filter(|_| is_answered) {
            Some(outcome) => Ok(outcome),
            None if is_answered => Err(CoordinatorError::NotSent("told to".to_owned())),
            None => Err(CoordinatorError::NoAnswer("told to".to_owned())),
        }
    })
}

fn genesis(key: u128) -> AppendPlan {
    plan(&create(&format!("genesis {key}"), key), None, NOW)
}

fn behind(before: &AppendPlan, names: &[&str], key: u128) -> AppendPlan {
    plan(
        &append(before.ledger(), names, key),
        Some(before.head()),
        NOW + 1_000_000,
    )
}

fn lost(plan: &AppendPlan, is_replaced: bool) -> LostAppend {
    LostAppend {
        first_place: plan.first_place(),
        events: ids(plan),
        is_replaced,
    }
}

#[test]
fn what_a_restored_store_forgot_comes_back_byte_for_byte_and_once() {
    let samples = SampleNodes::of(2);
    let [one, two] = [0, 1].map(|node| samples.node(node, FIRST));
    let old = write(&one, genesis(1));
    let backup = samples.store.copy();
    let a = write(&one, behind(&old, &["a"], 2));
    let b = write(&two, behind(&a, &["b", "c"], 3));
    let new = write(&two, genesis(4));
    one.write(&[anchor(0, 0), anchor(1_500_000, 1)]).unwrap();
    let kinds = ["ledger", "event", "request", "conj-t"];
    let before = samples.stored(&kinds);
    samples.store.restore(&backup);

    // This process starts after the restore. Like a node that has checked the coordinator, it
    // accepts the coordinator's current state.
    let one = samples.node(0, FIRST);
    let copies = samples.copies([1, 0]);
    let done = samples.import(&copies);
    let expected = Reimported {
        ledgers: 2,
        events: 4,
        requests: 3,
        conjunctions: 2,
        ..Reimported::default()
    };
    assert_eq!(done, expected);
    assert_eq!(samples.stored(&kinds), before);
    assert_eq!(near(&one, 700_000), [(0, 0), (1_500_000, 1)]);
    assert_eq!(
        one.chain(old.ledger(), None, 9).unwrap(),
        links(&[old, a, b.clone()])
    );
    assert_eq!(
        one.append(new.head().id).unwrap().unwrap().0.mark,
        new.mark,
        "a retry is known"
    );
    let revision = samples.store.revision();
    assert_eq!(samples.import(&copies), Reimported::default());
    assert_eq!(
        samples.store.revision(),
        revision,
        "done already, nothing is written"
    );
    // The next append continues the ledger as if no restore had happened.
    write(&one, behind(&b, &["d"], 5));
}

#[test]
fn one_clock_that_was_a_day_ahead_takes_no_key_of_the_others_away() {
    const DAY: u64 = 86_400_000_000;
    let samples = SampleNodes::of(1);
    let node = samples.node(0, FIRST);
    let backup = samples.store.copy();
    for (key, micros) in [
        (1, NOW - 4 * DAY),
        (2, NOW - DAY),
        (3, NOW),
        (4, NOW + 28 * DAY / 24),
    ] {
        write(
            &node,
            plan(&create(&format!("genesis {key}"), key), None, micros),
        );
    }
    samples.store.restore(&backup);
    let done = samples.import(&samples.copies([0]));
    assert_eq!((done.events, done.requests), (4, 3));
    let node = samples.node(0, FIRST);
    let is_known = |key| node.request(KeyHash(key)).unwrap().is_some();
    assert_eq!([1, 2, 3, 4].map(is_known), [false, true, true, true]);
}

#[test]
fn what_stands_in_another_ones_place_or_behind_a_gap_is_lost_and_never_renumbered() {
    let samples = SampleNodes::of(3);
    let [one, two, three] = [0, 1, 2].map(|node| samples.node(node, FIRST));
    let old = write(&one, genesis(1));
    let a = behind(&old, &["a"], 2);
    let backup = samples.store.copy();
    write(&one, a.clone());
    let b = write(&two, behind(&a, &["b", "c"], 3));
    // Node 2 has b, and its predecessor a. Node 3 has e, and its predecessor d. No journal has c.
    let c = write(&samples.forgetful(), behind(&b, &["d"], 4));
    let d = write(&samples.forgetful(), behind(&c, &["e"], 5));
    let e = write(&three, behind(&d, &["f"], 6));

    samples.store.restore(&backup);
    let done = samples.import(&samples.copies([1]));
    assert_eq!(
        (done.events, done.lost),
        (3, vec![]),
        "a node has what its own appends stand behind"
    );
    samples.store.restore(&backup);
    let done = samples.import(&samples.copies([0, 1, 2]));
    assert_eq!(
        (done.events, done.lost),
        (3, vec![lost(&d, false), lost(&e, false)])
    );
    assert_eq!(
        one.chain(old.ledger(), None, 99).unwrap(),
        links(&[old.clone(), a.clone(), b.clone()])
    );

    samples.store.restore(&backup);
    let other = write(&samples.forgetful(), behind(&old, &["other"], 9));
    let done = samples.import(&samples.copies([0, 1]));
    assert_eq!(
        (done.events, done.lost),
        (0, vec![lost(&a, true), lost(&b, false)])
    );
    assert_eq!(
        one.chain(old.ledger(), None, 99).unwrap(),
        links(&[old, other])
    );
}

#[test]
fn of_two_that_followed_one_event_the_one_of_the_later_era_is_the_one_that_was_there() {
    let samples = SampleNodes::of(1);
    let old = write(&samples.node(0, FIRST), genesis(1));
    let backup = samples.store.copy();
    let first = write(
        &samples.node(0, FIRST),
        behind(&old, &["recorded later"], 2),
    );
    samples.store.restore(&backup);
    let again = plan(&append(old.ledger(), &["again"], 3), Some(old.head()), NOW);
    let again = write(&samples.node(0, FENCED), again);
    samples.store.restore(&backup);
    let done = samples.import(&samples.copies([0]));
    assert_eq!((done.events, done.lost), (1, vec![lost(&first, true)]));
    assert_eq!(
        samples.forgetful().head(old.ledger()).unwrap(),
        Some(again.head())
    );
}

#[test]
fn an_append_whose_node_was_killed_is_in_the_journal_of_whoever_told_a_caller_of_it() {
    let samples = SampleNodes::of(2);
    let old = write(&samples.forgetful(), genesis(1));
    let backup = samples.store.copy();
    let a = write(&samples.forgetful(), behind(&old, &["a"], 2));
    // Node 1 is killed after it has journalled the predecessor of its own append.
    let b = behind(&a, &["b"], 3);
    samples
        .killed(1, FIRST)
        .write(&[RecordPlan::Append(b.clone())])
        .unwrap_err();
    let node = samples.node(0, FIRST);
    assert_eq!(node.request(KeyHash(3)).unwrap().unwrap().last, b.head().id);
    node.append(b.head().id).unwrap().unwrap();
    samples.store.restore(&backup);
    assert_eq!(samples.import(&samples.copies([0, 1])).events, 2);
    assert_eq!(
        samples.forgetful().chain(old.ledger(), None, 9).unwrap(),
        links(&[old, a, b])
    );
}

#[test]
fn a_conjunction_whose_node_was_killed_is_in_the_journal_of_whoever_told_a_caller_of_it() {
    let samples = SampleNodes::of(1);
    samples.forgetful().write(&[anchor(0, 0)]).unwrap();
    assert_eq!(near(&samples.node(0, FIRST), 500_000), [(0, 0)]);
    samples.store.restore(&MemoryCoordinator::default());
    assert_eq!(samples.import(&samples.copies([0])).conjunctions, 1);
    assert_eq!(near(&samples.forgetful(), 500_000), [(0, 0)]);
}

#[test]
fn who_stands_still_behind_an_answer_tells_nobody_of_it_unless_it_is_in_the_journal_in_time() {
    let pair = || {
        std::iter::once((
            Pair {
                primary: 1,
                secondary: 2,
            },
            Tca(0),
        ))
    };
    for (pause, is_told) in [
        (JOURNALLED_WITHIN, true),
        (JOURNALLED_WITHIN + Duration::from_millis(1), false),
    ] {
        let samples = SampleNodes::of(1);
        let node = samples.node(0, FIRST);
        samples.store.stand_still_behind_answers(pause);
        let append = genesis(1);
        let written = node.write(&[RecordPlan::Append(append.clone()), anchor(0, 0)]);
        assert_eq!(written.is_ok(), is_told);
        assert!(
            matches!(written, Ok(()) | Err(WriteError::Store(_))),
            "it may be written: {written:?}"
        );
        assert_eq!(node.append(append.head().id).is_ok(), is_told);
        assert_eq!(node.neighbours("conjunction", &mut pair()).is_ok(), is_told);
        assert!(
            samples.forgetful().append(append.head().id).is_ok(),
            "without a journal nothing comes back anyhow"
        );
        // Once the process is no longer suspended, a retry of the caller succeeds.
        samples.store.stand_still_behind_answers(Duration::ZERO);
        assert!(node.append(append.head().id).unwrap().is_some());
    }
}

#[test]
fn what_was_committed_is_kept_however_late_that_was_known_and_nothing_else_is() {
    for (fates, is_kept) in [
        (vec![(true, false)], true),
        (vec![(false, false), (true, true)], true),
        (vec![(false, true)], false),
        (vec![(false, false); 6], false),
        // The first copy is committed without a response, and no later copy is sent. The outcome
        // stays unknown until the next append to the ledger.
        (
            vec![
                (true, false),
                (false, true),
                (false, true),
                (false, true),
                (false, true),
                (false, true),
            ],
            false,
        ),
    ] {
        let samples = SampleNodes::of(2);
        let fates = Arc::new(Mutex::new(fates.into()));
        let node = samples.node_on(unsteady(&samples.store, &fates), 0, FIRST);
        let genesis = genesis(1);
        let written = node.write(&[RecordPlan::Append(genesis.clone())]);
        let copies = samples.copies([0]);
        assert_eq!(
            (
                written.is_ok(),
                copies.ledgers.contains_key(&genesis.ledger())
            ),
            (is_kept, is_kept)
        );
        let is_there = samples
            .forgetful()
            .head(genesis.ledger())
            .unwrap()
            .is_some();
        if is_there && !is_kept {
            assert!(matches!(written, Err(WriteError::Store(_))), "{written:?}");
            write(&samples.node(1, FIRST), behind(&genesis, &["a"], 2));
            samples.store.restore(&MemoryCoordinator::default());
            assert_eq!(samples.import(&samples.copies([0, 1])).events, 2);
        }
    }
}

#[test]
fn an_import_that_is_broken_off_anywhere_goes_on_and_ends_the_same() {
    let samples = SampleNodes::of(1);
    let node = samples.node(0, FIRST);
    let mut last = write(&node, genesis(1));
    let backup = samples.store.copy();
    for key in 2..250 {
        last = write(&node, behind(&last, &["a", "b"], key));
    }
    write(&node, genesis(1_000));
    let long: Vec<&str> = vec!["long"; 10_000];
    for key in 2_000..2_004 {
        last = write(&node, behind(&last, &long, key));
    }
    let objects: Vec<_> = (2..80)
        .map(|n| anchor_of("conjunction", (n, 1), 5, 0))
        .chain((0..260).map(|n| anchor_of("conjunction", (80, 1), 100_000_000 * n, 0)))
        .collect();
    objects
        .chunks(40)
        .for_each(|some| node.write(some).unwrap());
    let kinds = ["ledger", "event", "request", "conj-t"];
    let (expected, copies) = (samples.stored(&kinds), samples.copies([0]));
    let mut transactions = 0;
    for broken_off_at in 0.. {
        samples.store.restore(&backup);
        for is_done in [false, true] {
            let mut fates = VecDeque::from(vec![(true, true); broken_off_at]);
            fates.extend([(is_done, false)]);
            fates.extend([(false, true); 5]);
            let fates = Arc::new(Mutex::new(fates));
            let broken = samples.try_import(unsteady(&samples.store, &fates), &copies);
            let has_failed = fates.lock().unwrap().is_empty();
            assert_eq!(broken.is_err(), has_failed);
            transactions = transactions.max(broken_off_at);
            let reader = samples.forgetful();
            let chain = reader.chain(last.ledger(), None, usize::MAX).unwrap();
            assert_eq!(
                reader.head(last.ledger()).unwrap().unwrap().place,
                chain.len() as u64,
                "no head without its events"
            );
        }
        let is_over = samples.import(&copies) == Reimported::default() && broken_off_at > 10;
        assert_eq!(
            samples.stored(&kinds),
            expected,
            "broken off at {broken_off_at}"
        );
        if is_over {
            break;
        }
    }
    println!("{transactions} transactions");
}

#[test]
fn a_pair_with_more_missing_anchors_than_a_transaction_holds_comes_back_whole() {
    for count in [124, 125, 126, 127, 128, 300] {
        let samples = SampleNodes::of(1);
        let node = samples.node(0, FIRST);
        for objects in [(1, 2), (1, 3), (1, 4)] {
            let anchors: Vec<_> = (0..count)
                .map(|n| anchor_of("conjunction", objects, 100_000_000 * n, 0))
                .collect();
            anchors
                .chunks(40)
                .for_each(|some| node.write(some).unwrap());
        }
        let expected = samples.stored(&["conj-t"]);
        samples.store.restore(&MemoryCoordinator::default());
        let copies = samples.copies([0]);
        let done = samples.import(&copies);
        let all = 3 * u64::try_from(count).unwrap();
        assert_eq!((done.conjunctions, done.lost_conjunctions), (all, vec![]));
        assert_eq!(samples.stored(&["conj-t"]), expected);
        let last = 100_000_000 * (count - 1);
        assert_eq!(near(&samples.forgetful(), last), [(last, 0)]);
        assert_eq!(samples.import(&copies), Reimported::default());
    }
}

#[test]
fn pairs_with_longer_rows_than_a_transaction_holds_come_back_whole() {
    let samples = SampleNodes::of(1);
    let node = samples.node(0, FIRST);
    let new = |primary| anchor_of("conjunction", (primary, 9), -10_000_000, 0);
    node.write(&(100..140).map(new).collect::<Vec<_>>())
        .unwrap();
    samples.store.restore(&MemoryCoordinator::default());
    let put = |primary, count| {
        let pair = Pair {
            primary,
            secondary: 9,
        };
        let tcas = (0..count).map(|at| Tca(10_000_000 * at));
        let anchors: Vec<Anchor> = tcas.map(|tca| Anchor { tca, rank: 0 }).collect();
        let key = Keys::of(&Namespace::default()).pair("conjunction", pair);
        let value = pair_to_bytes(&key, Attempt(0), &anchors);
        let transaction = Transaction {
            write: vec![Write::put(key, value)],
            ..Transaction::default()
        };
        samples.store.commit(&transaction).unwrap();
    };
    (100..140).for_each(|primary| put(primary, 8_000));
    let done = samples.import(&samples.copies([0]));
    assert_eq!((done.conjunctions, done.lost_conjunctions), (40, vec![]));
    let stored = samples.stored(&["conj"]);
    let is_whole = |(key, value): (&String, &Vec<u8>)| {
        pair_of_bytes(key, value).is_some_and(|there| there.len() == 8_001)
    };
    assert_eq!(stored.iter().filter(|row| is_whole(*row)).count(), 40);

    put(100, 130_800);
    let store = Arc::clone(&samples.store) as Arc<dyn Coordinator>;
    let error = samples.try_import(store, &samples.copies([0])).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("objects 100 and 9 (conjunction)"), "{text}");
}

#[test]
fn whoever_appends_meanwhile_is_not_written_over() {
    let samples = SampleNodes::of(1);
    let old = write(&samples.node(0, FIRST), genesis(1));
    let backup = samples.store.copy();
    write(&samples.node(0, FIRST), behind(&old, &["a"], 2));
    samples.store.restore(&backup);
    let other = behind(&old, &["other"], 3);
    let transaction_of = |plan: &AppendPlan| {
        let scratch = SampleNodes::of(0);
        scratch.store.restore(&samples.store.copy());
        write(&scratch.forgetful(), plan.clone());
        let written = scratch.stored(&["ledger", "event"]);
        let put = |(key, value)| crate::coordinator::Write::put(key, value);
        Transaction {
            write: written.into_iter().map(put).collect(),
            ..Transaction::default()
        }
    };
    // Another node appends between the read and the write.
    let before = Mutex::new(Some(transaction_of(&other)));
    let overtaken = samples.store.committed_by(move |store, transaction| {
        before
            .lock()
            .unwrap()
            .take()
            .map(|other| store.commit(&other))
            .transpose()?;
        store.commit(transaction)
    });
    let copies = samples.copies([0]);
    assert!(samples.try_import(overtaken, &copies).is_err());
    assert_eq!(
        samples.forgetful().chain(old.ledger(), None, 9).unwrap(),
        links(&[old, other])
    );
}

#[test]
fn a_conjunction_within_reach_of_another_one_does_not_come_back() {
    let samples = SampleNodes::of(1);
    let node = samples.node(0, FIRST);
    node.write(&[anchor(0, 0)]).unwrap();
    let backup = samples.store.copy();
    node.write(&[anchor(5_000_000, 0)]).unwrap();
    node.write(&[anchor(9_000_000, 0)]).unwrap();
    samples.store.restore(&backup);
    samples.forgetful().write(&[anchor(5_900_000, 0)]).unwrap();
    let done = samples.import(&samples.copies([0]));
    let pair = Pair {
        primary: 1,
        secondary: 2,
    };
    let anchor = Anchor {
        tca: Tca(5_000_000),
        rank: 0,
    };
    let lost = LostConjunction {
        format: "conjunction".to_owned(),
        pair,
        anchor,
    };
    assert_eq!((done.conjunctions, done.lost_conjunctions), (1, vec![lost]));
    assert_eq!(near(&node, 5_500_000), [(5_900_000, 0)]);
    assert_eq!(near(&node, 9_000_000), [(9_000_000, 0)]);
}

#[test]
fn conjunctions_that_stood_within_reach_of_each_other_come_back_together() {
    let samples = SampleNodes::of(1);
    // The second anchor arrived with an id, and kept it. Such an anchor may be close to another
    // one, if the two are in different seconds.
    let RecordPlan::Anchor(kept) = anchor(5_900_000, 1) else {
        unreachable!("a plan of an anchor")
    };
    let kept = RecordPlan::Anchor(AnchorPlan {
        free: vec![Tca(5_000_000)..=Tca(5_999_999)],
        ..kept
    });
    let older = anchor(4_950_000, 0);
    for (backed_up, came_back) in [(0, 2), (1, 1)] {
        samples.store.restore(&MemoryCoordinator::default());
        let plans = [older.clone(), kept.clone()];
        let node = samples.node(0, FIRST);
        plans[..backed_up]
            .iter()
            .for_each(|plan| node.write(std::slice::from_ref(plan)).unwrap());
        let backup = samples.store.copy();
        plans[backed_up..]
            .iter()
            .for_each(|plan| node.write(std::slice::from_ref(plan)).unwrap());
        samples.store.restore(&backup);
        let done = samples.import(&samples.copies([0]));
        assert_eq!(
            (done.conjunctions, done.lost_conjunctions),
            (came_back, vec![])
        );
        assert_eq!(
            near(&samples.forgetful(), 5_000_000),
            [(4_950_000, 0), (5_900_000, 1)]
        );
    }
}

#[test]
fn what_was_appended_after_a_fence_that_lowered_a_floor_is_preferred_to_what_it_had_lost() {
    for (later, is_kept) in [
        (LOWERED, true),
        (
            FleetEra {
                fences: 0,
                ..LOWERED
            },
            false,
        ),
    ] {
        let samples = SampleNodes::of(2);
        let first = write(&samples.node(0, FIRST), genesis(1));
        let backup = samples.store.copy();
        let before = write(&samples.node(0, FIRST), behind(&first, &["before"], 2));
        samples.store.restore(&backup);
        let after = write(&samples.node(1, later), behind(&first, &["after"], 3));
        samples.store.restore(&backup);
        let (copies, fleet) = samples.copies([0, 1]).of_fleet(&[]).unwrap();
        assert_eq!(fleet.fences, later.fences);
        let done = samples.import(&copies);
        let gone = if is_kept { &before } else { &after };
        assert_eq!(
            done.lost,
            [lost(gone, true)],
            "the control orders by the floor alone"
        );
    }
}

#[test]
fn rows_from_before_and_after_a_fence_that_renamed_a_wiped_fleet_come_back_in_any_order() {
    let renamed = FleetEra {
        fences: 1,
        floor: UnixNanos::from_seconds(3),
        origin: 8,
    };
    let samples = SampleNodes::of(2);
    let wipe = || samples.store.restore(&MemoryCoordinator::default());
    let first = [(0, 1), (1, 2)].map(|(node, key)| {
        let written = write(&samples.node(node, FIRST), genesis(key));
        wipe();
        written
    });
    let later = write(&samples.node(1, renamed), genesis(9));
    for names in [&[][..], &[7], &[8]] {
        for order in [[0, 1], [1, 0]] {
            wipe();
            let names: Vec<Nonce> = names.iter().copied().map(Nonce::new).collect();
            let (copies, _) = samples.copies(order).of_fleet(&names).unwrap();
            assert!(!samples.import(&copies).has_gap());
            for written in first.iter().chain([&later]) {
                let head = samples.forgetful().head(written.ledger()).unwrap();
                assert_eq!(head, Some(written.head()), "{names:?} {order:?}");
            }
        }
    }
}

#[test]
fn without_a_name_the_fleet_is_the_one_with_which_the_journals_end() {
    let samples = SampleNodes::of(1);
    let earlier = FleetEra {
        origin: FIRST.origin + 1,
        ..FENCED
    };
    for era in [earlier, FIRST] {
        write(&samples.node(0, era), genesis(1));
        samples.store.restore(&MemoryCoordinator::default());
    }
    let (_, fleet) = samples.copies([0]).of_fleet(&[]).unwrap();
    assert_eq!(fleet.names, [Nonce::new(FIRST.origin)]);
}

#[test]
fn journals_of_another_fleet_or_namespace_are_refused_and_what_a_node_had_before_is_left_out() {
    let samples = SampleNodes::of(3);
    let other = FleetEra {
        origin: 8,
        ..FENCED
    };
    write(&samples.node(0, other), genesis(3));
    write(&samples.node(1, other), genesis(2));
    samples.store.restore(&MemoryCoordinator::default());
    let ours = write(&samples.node(0, FIRST), genesis(1));
    samples.store.restore(&MemoryCoordinator::default());
    drop(samples.node(2, FIRST));

    let origin_of = |copies: JournalCopies, names: &[u128]| {
        let names: Vec<Nonce> = names.iter().copied().map(Nonce::new).collect();
        copies
            .of_fleet(&names)
            .map(|(_, fleet)| fleet.names.first().copied().map(Nonce::bits))
    };
    assert_eq!(
        origin_of(samples.copies([2]), &[]).unwrap(),
        None,
        "a node that never appended"
    );
    let journal = segments::folder_of(samples.folders[2].path(), &Namespace::default());
    let empty = JournalCopies::read(&[journal], &Namespace::default()).expect("it is a journal");
    assert_eq!(origin_of(empty, &[]).unwrap(), None);
    let copies = samples.copies([0, 2]);
    let (copies, fleet) = copies.of_fleet(&[Nonce::new(7)]).unwrap();
    assert_eq!(fleet.names, [Nonce::new(7)]);
    assert_eq!(fleet.newest, Some(UnixNanos::new(NOW * 1_000)));
    let done = samples.import(&copies);
    assert_eq!(
        (
            done.ledgers,
            samples.forgetful().head(ours.ledger()).unwrap()
        ),
        (1, Some(ours.head()))
    );
    for here in [7, 9] {
        let refused = origin_of(samples.copies([0, 1]), &[here]).unwrap_err();
        assert!(
            matches!(refused, JournalError::OtherFleet { .. }),
            "{refused}"
        );
    }
    for order in [[0, 1], [1, 0]] {
        let refused = origin_of(samples.copies(order), &[]);
        assert!(refused.is_err(), "neither of them was fenced");
    }
    assert_eq!(
        origin_of(samples.copies([1]), &[]).unwrap(),
        Some(8),
        "nothing says any more which fleet it is"
    );
    let path = segments::folder_of(samples.folders[0].path(), &Namespace::default());
    let refused = JournalCopies::read(
        std::slice::from_ref(&path),
        &Namespace::parse("other").unwrap(),
    )
    .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("another namespace (/idmint/v1/default/"),
        "{refused}"
    );
    let (both, _) = samples
        .copies([0, 1])
        .of_fleet(&[9, 8, 7].map(Nonce::new))
        .expect("the fleet had these names");
    assert_eq!(both.ledgers.len(), 3);
    for wrong in [
        PathBuf::from("/nowhere"),
        samples.folders[0].path().parent().unwrap().join("nothing"),
    ] {
        let refused = JournalCopies::read(&[wrong], &Namespace::default()).unwrap_err();
        assert!(
            matches!(refused, JournalError::Unreadable { .. }),
            "{refused}"
        );
    }
    assert!(
        JournalCopies::read(
            &[tempfile::tempdir().unwrap().path().to_owned()],
            &Namespace::default()
        )
        .is_err()
    );
}

#[test]
fn the_oldest_goes_where_there_is_too_much_and_a_torn_end_takes_nothing_else_along() {
    let samples = SampleNodes::of(1);
    let bounds = JournalBounds {
        segment: 16 << 10,
        all: 64 << 10,
    };
    let write_to = |journal: &super::AppendJournal, from: u32, count: u32| {
        for number in from..from + count {
            let key = format!("/idmint/v1/default/x/{number}");
            journal.keep(FIRST, &[(key.as_str(), &[7; 1000])]);
            journal.keep(FIRST, &[(key.as_str(), &[7; 1000])]);
        }
    };
    let journal = samples.journal(0).within(bounds);
    let folder = segments::folder_of(samples.folders[0].path(), &Namespace::default());
    let lens = || -> Vec<u64> {
        let found = segments::list(&folder).unwrap();
        found
            .iter()
            .map(|segment| fs::metadata(&segment.path).unwrap().len())
            .collect()
    };
    write_to(&journal, 0, 20);
    assert_eq!(lens().len(), 2, "no row is written twice: {:?}", lens());
    write_to(&journal, 20, 200);
    assert!(
        lens().iter().sum::<u64>() <= bounds.all && lens().len() == 4,
        "{:?}",
        lens()
    );
    assert!(
        lens()
            .iter()
            .all(|len| *len <= bounds.segment && *len > 1000),
        "{:?}",
        lens()
    );
    // A process is killed in the middle of a write, and another process continues the journal.
    let torn = segments::list(&folder).unwrap().pop().unwrap().path;
    let whole = fs::read(&torn).unwrap();
    fs::write(&torn, &whole[..whole.len() - 5]).unwrap();
    write_to(&samples.journal(0).within(bounds), 1_000, 1);
    assert_eq!(lens().len(), 4, "{:?}", lens());
    assert_eq!(
        fs::read(&torn).unwrap().len(),
        whole.len() - 5,
        "nobody writes behind it"
    );
}

#[test]
fn a_journal_of_a_later_version_is_refused_and_not_taken_for_a_torn_one() {
    let samples = SampleNodes::of(1);
    write(&samples.node(0, FIRST), genesis(1));
    let folder = segments::folder_of(samples.folders[0].path(), &Namespace::default());
    let last = segments::list(&folder).unwrap().pop().unwrap().path;
    let whole = fs::read(&last).unwrap();
    let framed = |content: &[u8]| {
        let len = u32::try_from(content.len()).unwrap().to_be_bytes();
        let crc = crc32c::crc32c_append(crc32c::crc32c(&len), content);
        [&len[..], &crc.to_be_bytes(), content].concat()
    };
    let row_of = |key: &str, version: u8| {
        let crc = crc32c::crc32c_append(crc32c::crc32c(key.as_bytes()), &[version]);
        let key_len = u16::try_from(key.len()).unwrap().to_be_bytes();
        let row = [&[1, 2][..], &key_len, key.as_bytes(), &[version]].concat();
        framed(&[&row[..], &crc.to_be_bytes()].concat())
    };
    let (sound, prefix) = (samples.copies([0]), Namespace::default());
    assert_eq!(sound.torn(), []);
    let unknown = format!("{}unknown-kind/1", prefix.key_prefix());
    for later in [framed(&[2, 2, 0]), framed(&[1, 3, 0]), row_of(&unknown, 1)] {
        fs::write(&last, [&whole[..], &later].concat()).unwrap();
        let paths = [samples.folders[0].path().to_owned()];
        let refused = JournalCopies::read(&paths, &Namespace::default()).unwrap_err();
        assert!(
            matches!(&refused, JournalError::LaterVersion { path } if *path == paths[0]),
            "{refused}"
        );
        // With a flipped bit, the same record counts as an unreadable end, not as a record of a
        // later version.
        let mut flipped = [&whole[..], &later].concat();
        *flipped.last_mut().unwrap() ^= 1;
        fs::write(&last, &flipped).unwrap();
        assert_eq!(samples.copies([0]).torn().len(), 1);
    }
}

#[test]
fn a_torn_end_is_left_out_and_said_and_all_before_it_comes_back() {
    let samples = SampleNodes::of(1);
    let old = write(&samples.node(0, FIRST), genesis(1));
    let a = write(&samples.node(0, FIRST), behind(&old, &["a"], 2));
    let folder = segments::folder_of(samples.folders[0].path(), &Namespace::default());
    let last = segments::list(&folder).unwrap().pop().unwrap().path;
    let whole = fs::read(&last).unwrap();
    for cut in [1, 20] {
        fs::write(&last, &whole[..whole.len() - cut]).unwrap();
        let copies = samples.copies([0]);
        assert_eq!(copies.torn().len(), 1);
        samples.store.restore(&MemoryCoordinator::default());
        assert_eq!(samples.import(&copies).events, 1);
    }
    // A flipped bit makes the last row an unreadable end, just like an incomplete record.
    let mut flipped = whole.clone();
    flipped[whole.len() - 9] ^= 1;
    fs::write(&last, &flipped).unwrap();
    assert_eq!(samples.copies([0]).torn().len(), 1);
    fs::write(&last, &whole).unwrap();
    samples.store.restore(&MemoryCoordinator::default());
    samples.import(&samples.copies([0]));
    assert_eq!(
        samples.forgetful().head(old.ledger()).unwrap(),
        Some(a.head())
    );
}

#[test]
fn after_a_damaged_record_in_the_middle_all_whole_rows_come_back_and_the_damage_is_said() {
    const LEDGERS: u64 = 5;
    let samples = SampleNodes::of(1);
    let node = samples.node(0, FIRST);
    for key in 1..=LEDGERS {
        write(&node, genesis(u128::from(key)));
    }
    let folder = segments::folder_of(samples.folders[0].path(), &Namespace::default());
    let file = segments::list(&folder).unwrap().pop().unwrap().path;
    let whole = fs::read(&file).unwrap();
    let mut starts = Vec::new();
    let mut at = 0;
    while let Some((_, len)) = JournalRecord::read_from(&whole[at..]) {
        starts.push((at, len));
        at += len;
    }
    assert_eq!(
        (u64::try_from(starts.len()).unwrap(), at),
        (1 + LEDGERS, whole.len())
    );
    for (record, (start, len)) in (0..).zip(starts) {
        // Damage the length, the checksum, the content, and the whole record.
        for flipped in [
            start..start + 1,
            start + 5..start + 6,
            start + 20..start + 21,
            start..start + len,
        ] {
            let mut bytes = whole.clone();
            bytes[flipped].iter_mut().for_each(|byte| *byte ^= 0x10);
            fs::write(&file, &bytes).unwrap();
            let copies = samples.copies([0]);
            samples.store.restore(&MemoryCoordinator::default());
            let done = samples.import(&copies);
            assert_eq!(done.damaged, copies.damaged);
            let parts: Vec<_> = done
                .damaged
                .iter()
                .map(|part| (part.rows_before, part.rows_after))
                .collect();
            let (expected, back) = match record {
                // The first record names the era of all rows. If it is damaged, no row can be used.
                0 => (vec![(0, 0)], 0),
                LEDGERS => (Vec::new(), LEDGERS - 1),
                row => (vec![(row - 1, LEDGERS - row)], LEDGERS - 1),
            };
            assert_eq!((parts, done.ledgers), (expected, back), "record {record}");
            assert_eq!(copies.torn().is_empty(), record != LEDGERS);
        }
    }
}

#[test]
fn a_key_of_an_earlier_era_is_journalled_again_since_it_may_have_another_value() {
    let samples = SampleNodes::of(1);
    let journal = samples.journal(0);
    let rows: [(&str, &[u8]); 2] = [("number/a/7", b"one"), ("number/a/8", b"two")];
    journal.keep(FIRST, &rows[..1]);
    assert!(!journal.lacks(FIRST, rows[0].0) && journal.lacks(FIRST, rows[1].0));
    assert!(journal.lacks(FENCED, rows[0].0), "a restore may replace it");
    let written = || {
        let folder = segments::folder_of(samples.folders[0].path(), &Namespace::default());
        let segments = segments::list(&folder).unwrap();
        let bytes = fs::read(&segments[0].path).unwrap();
        bytes.windows(3).filter(|bytes| *bytes == b"one").count()
    };
    for _ in 0..2 {
        journal.keep(FENCED, &rows);
        assert_eq!(written(), 2, "once in each era");
    }
    assert!(!journal.lacks(FENCED, rows[0].0));
}

#[test]
fn a_journal_that_cannot_be_written_stops_nobody_and_is_counted() {
    let samples = SampleNodes::of(1);
    let folder = segments::folder_of(samples.folders[0].path(), &Namespace::default());
    fs::write(&folder, "a file where the folder should be").unwrap();
    let node = samples.node(0, FIRST);
    let old = write(&node, genesis(1));
    let a = write(&node, behind(&old, &["a"], 2));
    assert_eq!(
        samples.failures(),
        4,
        "at the start, and what it appends behind is tried, too"
    );
    fs::remove_file(&folder).unwrap();
    let b = write(&node, behind(&a, &["b"], 3));
    assert_eq!(samples.failures(), 4);
    let copies = samples.copies([0]);
    let kept: Vec<_> = copies.ledgers[&old.ledger()].keys().copied().collect();
    assert_eq!(
        kept,
        [a.head().id, b.head().id],
        "with what it stands behind"
    );
}

#[test]
fn a_series_that_a_caller_knows_to_be_closed_is_closed_after_a_restore_unless_it_went_on() {
    let samples = SampleNodes::of(2);
    let [acme, unbegun] = ["acme", "unbegun"].map(series);
    let given = give(&samples.node(0, FIRST), &acme, 3, "a");
    let backup = samples.store.copy();
    // Node 0 closes both series, but is killed before it journals the closings. Node 1 then reports
    // to a caller that the series are closed.
    let plans = [
        close_plan(&acme, Some(given.head())),
        close_plan(&unbegun, None),
    ];
    samples.killed(0, FIRST).write(&plans).unwrap_err();
    let other = samples.node(1, FIRST);
    for name in [&acme, &unbegun] {
        assert!(other.series_state(name).unwrap().closed.is_some());
    }
    samples.store.restore(&backup);
    let copies = samples.copies([0, 1]);
    samples.import(&copies);
    let records = samples.forgetful();
    let last = |name| {
        let closed = records.series_state(name).unwrap().closed;
        closed.map(|closed| closed.last)
    };
    assert_eq!((last(&acme), last(&unbegun)), (Some(Some(3)), Some(None)));

    samples.store.restore(&backup);
    give(&samples.node(0, FENCED), &acme, 1, "b");
    samples.import(&copies);
    assert_eq!((last(&acme), last(&unbegun)), (None, Some(None)));
    give(&records, &acme, 1, "c");
}

#[test]
fn a_key_with_two_numbers_in_the_journals_keeps_the_number_of_the_later_era() {
    let key_of = |records: &FleetRecords, name: &SeriesName| {
        let key = (name.clone(), KeyHash::of_series(name, "k"));
        records.given_to(&[key]).unwrap().remove(0).unwrap().first
    };
    for between in [1, 60] {
        let samples = SampleNodes::of(2);
        let acme = series("acme");
        give(&samples.forgetful(), &acme, 4, "before");
        let backup = samples.store.copy();
        let first = samples.node(0, FIRST);
        give(&first, &acme, 1, "a");
        for n in 0..between {
            give(&first, &acme, 1, &format!("b{n}"));
        }
        let last = give(&first, &acme, 1, "k");
        samples.store.restore(&backup);
        let again = give(&samples.node(1, FENCED), &acme, 1, "k");
        samples.store.restore(&backup);
        let copies = samples.copies([0, 1]);
        let done = samples.import(&copies);
        assert_eq!((done.numbers, done.lost_numbers.len()), (between + 2, 1));
        let records = samples.forgetful();
        assert_eq!(records.series_head(&acme).unwrap(), Some(last.head()));
        let found = |number| records.number(&acme, number).unwrap().unwrap().given;
        assert_eq!(
            (found(again.first), found(last.first)),
            (again.clone(), last)
        );
        assert_eq!(key_of(&records, &acme), again.first);
        assert_eq!(samples.import(&copies).numbers, 0);
    }

    // In the later era, the request "k" gets the number 7. No journal has 5, the first number of
    // that era, so the import takes the 5 of the earlier era.
    let samples = SampleNodes::of(2);
    let acme = series("acme");
    give(&samples.forgetful(), &acme, 4, "before");
    let backup = samples.store.copy();
    give(&samples.node(0, FIRST), &acme, 1, "k");
    samples.store.restore(&backup);
    give(&samples.forgetful(), &acme, 1, "lost");
    give(&samples.forgetful(), &acme, 1, "b");
    let again = give(&samples.node(1, FENCED), &acme, 1, "k");
    samples.store.restore(&backup);
    assert_eq!(samples.import(&samples.copies([0, 1])).numbers, 3);
    assert_eq!(again.first, 7);
    assert_eq!(key_of(&samples.forgetful(), &acme), 7);
}

#[test]
fn a_number_of_an_earlier_era_than_the_closing_comes_back_and_the_series_stays_closed() {
    // Node 1 closed the series after a restore had lost the number 4 of node 0.
    for journals in [&[0][..], &[0, 1]] {
        for is_closed_there in [true, false] {
            let samples = SampleNodes::of(2);
            let [acme, unbegun] = ["acme", "unbegun"].map(series);
            give(&samples.node(0, FIRST), &acme, 3, "a");
            let backup = samples.store.copy();
            give(&samples.node(0, FIRST), &acme, 1, "b");
            begin(&samples.node(0, FIRST), &unbegun, 8, "c");
            samples.store.restore(&backup);
            let node = samples.node(1, FENCED);
            let head = node.series_head(&acme).unwrap();
            node.write(&[close_plan(&acme, head), close_plan(&unbegun, None)])
                .unwrap();
            if !is_closed_there {
                samples.store.restore(&backup);
            }
            let copies = samples.copies(journals.iter().copied());
            let done = samples.import(&copies);
            assert_eq!((done.numbers, done.lost_numbers), (2, vec![]));
            let is_known = is_closed_there || journals.contains(&1);
            let records = samples.forgetful();
            for (name, last) in [(&acme, 4), (&unbegun, 8)] {
                let state = records.series_state(name).unwrap();
                assert_eq!(state.head.map(|head| head.last), Some(last));
                let closed_last = state.closed.map(|closed| closed.last);
                assert_eq!(closed_last, is_known.then_some(Some(last)));
            }
            let found = records.given(&unbegun, 0, 9).unwrap();
            assert_eq!((found.len(), found[0].first), (1, 8));
            let revision = samples.store.revision();
            assert_eq!(samples.import(&copies), Reimported::default());
            assert_eq!(samples.store.revision(), revision, "nothing is written");
        }
    }
}

#[test]
fn a_node_that_closes_a_series_journals_the_last_number_that_it_returns() {
    let samples = SampleNodes::of(2);
    let acme = series("acme");
    let given = give(&samples.node(1, FIRST), &acme, 5, "a");
    let backup = samples.store.copy();
    // Node 0 is killed before it journals the number 6 and its form.
    let last = in_form(given_plan(&acme, 1, "b", Some(given.head())), form("LAST-"));
    samples.killed(0, FIRST).write(&[last]).unwrap_err();
    let node = samples.node(1, FIRST);
    let head = node.series_head(&acme).unwrap();
    node.write(&[close_plan(&acme, head)]).unwrap();
    samples.store.restore(&backup);
    samples.import(&samples.copies([0, 1]));
    let records = samples.forgetful();
    let state = records.series_state(&acme).unwrap();
    assert_eq!(state.head, head);
    assert_eq!(state.closed.map(|closed| closed.last), Some(Some(6)));
    assert_eq!(records.form_at(&acme, 6).unwrap(), Some(form("LAST-")));
    assert_eq!(records.form_at(&acme, 5).unwrap(), None);
}

#[test]
fn a_corrected_first_number_is_not_lost_and_its_correction_comes_back() {
    for (wrong, right) in [(47_110, 4_711), (12, 10), (10, 12)] {
        for later in [FIRST, FENCED] {
            let samples = SampleNodes::of(2);
            let acme = series("acme");
            let mut backups = vec![samples.store.copy()];
            let node = samples.node(0, FIRST);
            let request = number_request(&acme, 1, "wrong").beginning_with(wrong);
            let plan = NumberPlan::make(&request, None, at(NOW)).unwrap();
            let replaced = plan.given.clone();
            let plan = in_form(RecordPlan::Number(plan), form("A-"));
            node.write(&[plan]).unwrap();
            backups.push(samples.store.copy());
            let plan = correction_plan(&replaced, right, "right");
            samples
                .node(1, FIRST)
                .write(&[in_form(plan, form("A-"))])
                .unwrap();
            backups.push(samples.store.copy());
            // After the correction, the idempotency key of the wrong number can be used again.
            for key in ["a", "b", "wrong"] {
                give(&samples.node(1, later), &acme, 1, key);
            }
            backups.push(samples.store.copy());
            let content = |records: &FleetRecords| {
                let keys = ["right", "a", "b", "wrong"];
                let keys = keys.map(|key| (acme.clone(), KeyHash::of_series(&acme, key)));
                (
                    records.series(None, 9).unwrap(),
                    records.given(&acme, 0, 9).unwrap(),
                    records.forms(&acme, 0..=u64::MAX).unwrap(),
                    records.given_to(&keys).unwrap(),
                )
            };
            let expected = content(&samples.forgetful());
            assert_eq!((expected.0[0].first, expected.1.len()), (right, 4));
            let copies = samples.copies([0, 1]);
            for backup in &backups {
                for fates in [&[][..], &[(true, false)], &[(false, false)]] {
                    samples.store.restore(backup);
                    if let [(is_done, false)] = fates {
                        let mut fates = VecDeque::from([(*is_done, false)]);
                        fates.extend([(false, true); 5]);
                        let fates = Arc::new(Mutex::new(fates));
                        let _ = samples.try_import(unsteady(&samples.store, &fates), &copies);
                    }
                    let done = samples.import(&copies);
                    assert_eq!((done.has_gap(), done.lost_numbers), (false, vec![]));
                    assert_eq!(content(&samples.forgetful()), expected);
                    assert_eq!(samples.import(&copies), Reimported::default());
                }
            }
        }
    }
}

#[test]
fn a_first_number_that_was_never_corrected_in_the_later_era_stays() {
    let samples = SampleNodes::of(2);
    let acme = series("acme");
    let wrong = begin(&samples.node(0, FIRST), &acme, 12, "wrong");
    let backup = samples.store.copy();
    let plan = correction_plan(&wrong, 10, "right");
    samples.node(0, FIRST).write(&[plan]).unwrap();
    // The restore loses the correction, and the series continues after the wrong number.
    samples.store.restore(&backup);
    let next = give(&samples.node(1, FENCED), &acme, 1, "next");
    for backup in [backup, MemoryCoordinator::default()] {
        samples.store.restore(&backup);
        let done = samples.import(&samples.copies([0, 1]));
        let lost: Vec<_> = done
            .lost_numbers
            .iter()
            .map(|lost| lost.given.first)
            .collect();
        assert_eq!(lost, [10], "the correction is lost");
        let found = samples.forgetful().given(&acme, 0, 9).unwrap();
        assert_eq!(found, [wrong.clone(), next.clone()]);
    }
}
