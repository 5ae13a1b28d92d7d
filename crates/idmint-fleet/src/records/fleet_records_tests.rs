//! Tests of a node whose coordinator loses responses, does not respond, or has no space left.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::VecDeque;
use std::iter;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::coordinator::{
    Compare, CoordinatorError, Lease, Member, MemberState, MemoryCoordinator, Outcome, Range,
    Revision, Snapshot, Transaction, Write,
};
use crate::records::RecordAdopter;
use crate::records::known_fleet::{AgreedMeta, OwnKey};
use crate::records::rows::{conjunction_to_bytes, pair_to_bytes};
use idmint_records::conjunction::{Anchor, Pair, ReportCount, Seen, Tca};
use idmint_records::ledger::{AppendPlan, KeyHash};
use idmint_storage::rows::report_count_row;
use idmint_storage::samples::{
    NOW, anchor, anchor_of, append, begin, correction_plan, create, give, links, near, plan,
    series, void_plan,
};
use idmint_storage::{
    AnchorKey, ConjunctionStore, CountedAnchor, LedgerStore, NumberStore, RequestStore,
    StoredAnchor, StoredPair,
};

/// What happens to a transaction between the node and the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The transaction is committed, but the response is lost.
    AnswerLost,
    /// The transaction is lost, and the node is not notified.
    Lost,
    /// The transaction is not sent.
    NotSent,
    /// The transaction is refused, because no space is left.
    Full,
    /// Another node appends to the same ledger first.
    Overtaken,
}

/// A coordinator that applies these fates to its transactions, one after the other. After the last
/// fate it works normally.
#[derive(Debug, Default)]
struct Faulty {
    memory: Arc<MemoryCoordinator>,
    fates: Mutex<VecDeque<Fate>>,
    seen: Mutex<Vec<Transaction>>,
    overtaking: Mutex<Option<AppendPlan>>,
}

impl Coordinator for Faulty {
    fn commit(&self, transaction: &Transaction) -> Result<Outcome, CoordinatorError> {
        self.seen.lock().unwrap().push(transaction.clone());
        let no_answer = || CoordinatorError::NoAnswer("lost".to_owned());
        let fate = self.fates.lock().unwrap().pop_front();
        match fate {
            None => self.memory.commit(transaction),
            Some(Fate::AnswerLost) => {
                self.memory.commit(transaction)?;
                Err(no_answer())
            }
            Some(Fate::Lost) => Err(no_answer()),
            Some(Fate::NotSent) => Err(CoordinatorError::NotSent("no connection".to_owned())),
            Some(Fate::Full) => Err(CoordinatorError::Full("no space".to_owned())),
            Some(Fate::Overtaken) => {
                let other = self
                    .overtaking
                    .lock()
                    .unwrap()
                    .take()
                    .expect("another append");
                node(Arc::clone(&self.memory) as Arc<dyn Coordinator>)
                    .write(&[RecordPlan::Append(other)])
                    .unwrap();
                Err(no_answer())
            }
        }
    }

    fn read(&self, ranges: &[Range]) -> Result<Snapshot, CoordinatorError> {
        match self.fates.lock().unwrap().front() {
            Some(Fate::NotSent) => Err(CoordinatorError::NotSent("no connection".to_owned())),
            _ => self.memory.read(ranges),
        }
    }

    fn grant(&self, lasts: Duration) -> Result<Lease, CoordinatorError> {
        self.memory.grant(lasts)
    }

    fn keep_alive(&self, lease: Lease) -> Result<bool, CoordinatorError> {
        self.memory.keep_alive(lease)
    }
}

fn node(coordinator: Arc<dyn Coordinator>) -> FleetRecords {
    FleetRecords::new(
        coordinator,
        &Namespace::default(),
        Arc::default(),
        Arc::default(),
        rand::random(),
    )
}

/// Returns a coordinator, a node that uses it, and two appends. The first append has created a
/// ledger. The second one follows it, but is not written yet.
fn bench() -> (Arc<Faulty>, FleetRecords, AppendPlan, AppendPlan) {
    let faulty = Arc::new(Faulty::default());
    let records = node(Arc::clone(&faulty) as Arc<dyn Coordinator>);
    let genesis = plan(&create("genesis", 1), None, NOW);
    records
        .write(&[RecordPlan::Append(genesis.clone())])
        .unwrap();
    faulty.seen.lock().unwrap().clear();
    let next = plan(
        &append(genesis.ledger(), &["a"], 2),
        Some(genesis.head()),
        NOW + 1,
    );
    (faulty, records, genesis, next)
}

fn tell(faulty: &Faulty, fates: &[Fate]) {
    faulty.fates.lock().unwrap().extend(fates);
}

#[test]
fn without_an_answer_the_same_bytes_go_again_and_land_once() {
    for fates in [
        [Fate::AnswerLost, Fate::Lost],
        [Fate::Lost, Fate::AnswerLost],
        [Fate::AnswerLost, Fate::AnswerLost],
    ] {
        let (faulty, records, genesis, next) = bench();
        tell(&faulty, &fates);
        records
            .write(&[RecordPlan::Append(next.clone()), anchor(0, 0)])
            .unwrap();
        let seen = faulty.seen.lock().unwrap();
        assert_eq!(seen.len(), 3, "{fates:?}");
        assert!(
            seen.iter().all(|transaction| *transaction == seen[0]),
            "byte for byte"
        );
        assert_eq!(
            records.chain(genesis.ledger(), None, 9).unwrap(),
            links(&[genesis, next])
        );
        assert_eq!(near(&records, 0), [(0, 0)]);
    }
}

#[test]
fn a_refusal_after_no_answer_is_believed_only_where_nothing_has_landed() {
    let (faulty, records, genesis, next) = bench();
    let other = plan(
        &append(genesis.ledger(), &["other"], 3),
        Some(genesis.head()),
        NOW + 1,
    );
    *faulty.overtaking.lock().unwrap() = Some(other.clone());
    tell(&faulty, &[Fate::Overtaken]);
    assert!(matches!(
        records.write(&[RecordPlan::Append(next)]),
        Err(WriteError::Stale)
    ));
    assert_eq!(
        records.chain(genesis.ledger(), None, 9).unwrap(),
        links(&[genesis, other])
    );

    tell(&faulty, &[Fate::AnswerLost]);
    records.write(&[anchor(0, 0)]).unwrap();
    tell(&faulty, &[Fate::Lost]);
    assert!(
        matches!(records.write(&[anchor(0, 0)]), Err(WriteError::Stale)),
        "another process's anchor is no proof"
    );
}

#[test]
fn an_outcome_that_stays_unknown_is_said_to_be_and_others_are_not_made_to_wait() {
    let (faulty, records, genesis, next) = bench();
    tell(
        &faulty,
        &[
            Fate::Lost,
            Fate::NotSent,
            Fate::Lost,
            Fate::NotSent,
            Fate::NotSent,
            Fate::NotSent,
        ],
    );
    let Err(WriteError::Store(error)) = records.write(&[RecordPlan::Append(next.clone())]) else {
        panic!("unknown")
    };
    assert_eq!(error.failure_kind(), FailureKind::Unreachable);
    let unreachable = Obstacle::of_kind(FailureKind::Unreachable);
    assert_eq!(records.obstacle(), Some(unreachable));
    let refused = records.head(genesis.ledger()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        unreachable.to_string(),
        "nobody waits for it"
    );

    records.reopen().unwrap();
    assert_eq!(records.obstacle(), None);
    records.write(&[RecordPlan::Append(next)]).unwrap();
}

#[test]
fn what_was_not_sent_or_found_no_space_is_not_written() {
    let (faulty, records, genesis, next) = bench();
    tell(&faulty, &[Fate::Full]);
    let Err(WriteError::NotWritten(error)) = records.write(&[RecordPlan::Append(next.clone())])
    else {
        panic!("full")
    };
    assert_eq!(
        (error.failure_kind(), records.obstacle()),
        (FailureKind::Full, None)
    );
    assert_eq!(
        records.head(genesis.ledger()).unwrap(),
        Some(genesis.head()),
        "it is read all the same"
    );
    tell(&faulty, &[Fate::NotSent]);
    let Err(WriteError::NotWritten(error)) = records.write(&[RecordPlan::Append(next)]) else {
        panic!("not sent")
    };
    assert_eq!(error.failure_kind(), FailureKind::Unreachable);
}

#[test]
fn a_node_that_has_not_seen_what_the_fleet_agreed_on_writes_nothing() {
    let memory = Arc::new(MemoryCoordinator::default());
    let known = Arc::new(KnownFleet::default());
    let coordinator = Arc::clone(&memory) as Arc<dyn Coordinator>;
    let records = FleetRecords::new(
        coordinator,
        &Namespace::default(),
        Arc::clone(&known),
        Arc::default(),
        7,
    );
    let key = "/idmint/v1/default/meta".to_owned();
    let agree = Transaction {
        compare: vec![Compare::Modified(key.clone(), Revision::ABSENT)],
        write: vec![Write::Put {
            key,
            value: b"{}".to_vec(),
            lease: None,
        }],
        ..Transaction::default()
    };
    let Outcome::Committed(written) = memory.commit(&agree).unwrap() else {
        panic!("there was none")
    };
    let Err(WriteError::NotWritten(error)) = records.write(&[anchor(0, 0)]) else {
        panic!("it was written")
    };
    assert_eq!(error.failure_kind(), FailureKind::Unreachable);
    assert_eq!(near(&records, 0), []);
    let agreed = AgreedMeta {
        revision: written.revision,
        ..AgreedMeta::default()
    };
    known.agree(agreed, written.revision, 0);
    records.write(&[anchor(0, 0)]).unwrap();
    known.withdraw();
    assert!(
        matches!(
            records.write(&[anchor_of("conjunction", (3, 4), 0, 0)]),
            Err(WriteError::NotWritten(_))
        ),
        "the coordinator has lost something"
    );
    known.agree(agreed, written.revision, 0);
    records
        .write(&[anchor_of("conjunction", (3, 4), 0, 0)])
        .unwrap();
}

#[test]
fn a_write_without_an_answer_that_is_refused_for_another_fleet_may_have_been_done_in_the_former_one()
 {
    for (fates, may_be_done) in [(&[Fate::Lost][..], true), (&[], false)] {
        let (faulty, records, _, next) = bench();
        let meta = Write::Put {
            key: "/idmint/v1/default/meta".to_owned(),
            value: b"{}".to_vec(),
            lease: None,
        };
        faulty
            .memory
            .commit(&Transaction {
                write: vec![meta],
                ..Transaction::default()
            })
            .unwrap();
        tell(&faulty, fates);
        let written = records.write(&[RecordPlan::Append(next)]);
        assert_eq!(
            matches!(written, Err(WriteError::Store(_))),
            may_be_done,
            "{written:?}"
        );
        assert_eq!(
            matches!(written, Err(WriteError::NotWritten(_))),
            !may_be_done,
            "{written:?}"
        );
    }
}

#[test]
fn without_room_nothing_is_appended_and_all_else_goes_on() {
    let coordinator = Arc::new(MemoryCoordinator::default()) as Arc<dyn Coordinator>;
    let room = Arc::new(Room::default());
    let records = FleetRecords::new(
        coordinator,
        &Namespace::default(),
        Arc::default(),
        Arc::clone(&room),
        7,
    );
    records.write(&[anchor(0, 0)]).unwrap();
    let member = |size| Member {
        endpoint: String::new(),
        state: Ok(MemberState {
            size,
            ..MemberState::default()
        }),
    };
    room.see(&[member(75)], 100);
    let another = || anchor_of("conjunction", (3, 4), 0, 0);
    let Err(WriteError::NotWritten(error)) = records.write(&[another()]) else {
        panic!("it was written")
    };
    assert_eq!(
        (error.obstacle(), records.write_obstacle()),
        (NO_ROOM, Some(NO_ROOM))
    );
    assert_eq!(
        (records.obstacle(), near(&records, 0)),
        (None, vec![(0, 0)]),
        "what is there is read"
    );
    records
        .forget_anchors(&records.anchors(None, 10).unwrap())
        .unwrap();
    room.see(&[member(74)], 100);
    records.write(&[another()]).unwrap();
}

#[test]
fn as_many_plans_are_written_at_once_as_fit_into_a_transaction() {
    let records = node(Arc::new(MemoryCoordinator::default()));
    let mut plans = vec![plan(&create("genesis", 1), None, NOW)];
    for key in 2..250 {
        plans.push(plan(
            &append(plans[0].ledger(), &["a"], key),
            plans.last().map(AppendPlan::head),
            NOW,
        ));
    }
    let long: Vec<&str> = vec!["long"; 10_000];
    plans.push(plan(
        &append(plans[0].ledger(), &long, 250),
        plans.last().map(AppendPlan::head),
        NOW,
    ));
    let mut all: Vec<RecordPlan> = plans.iter().cloned().map(RecordPlan::Append).collect();
    all.extend((1..500).map(|object| anchor_of("conjunction", (object, 9), 0, 0)));
    let (mut rest, mut rounds) = (all.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (now, later) = rest.split_at(records.fitting(rest));
        records.write(now).unwrap();
        rounds.push(now.len());
        rest = later;
    }
    assert!(rounds.len() < 16 && rounds[0] == 100, "{rounds:?}");
    assert_eq!(
        records.chain(plans[0].ledger(), None, 20_000).unwrap(),
        links(&plans)
    );
    assert_eq!(records.fitting(&[]), 0);
}

/// Returns the pair of object 9 and this object.
fn pair_of(primary: u64) -> Pair {
    Pair {
        primary,
        secondary: 9,
    }
}

/// Stores conjunctions of a [pair](pair_of) directly. The first one is at 0 s, and each later one
/// is 10 s after the one before. Returns the first 60, as a cleanup would find them.
fn put_pair(memory: &MemoryCoordinator, primary: u64, count: usize) -> Vec<CountedAnchor> {
    let keys = Keys::of(&Namespace::default());
    let tcas = (0..).map(|at| Tca(10_000_000 * at));
    let anchors: Vec<Anchor> = tcas
        .take(count)
        .map(|tca| Anchor { tca, rank: 0 })
        .collect();
    let key = keys.pair("conjunction", pair_of(primary));
    let value = pair_to_bytes(&key, Attempt(0), &anchors);
    let mut write = vec![Write::put(key, value)];
    let found = anchors.iter().take(60).map(|anchor| {
        let key = keys.conjunction("conjunction", (anchor.tca, pair_of(primary)));
        let value = conjunction_to_bytes(&key, 0, None);
        write.push(Write::put(key, value));
        CountedAnchor {
            key: AnchorKey {
                format: "conjunction".to_owned(),
                pair: pair_of(primary),
                tca: anchor.tca,
            },
            report_count: None,
        }
    });
    let found = found.collect();
    let transaction = Transaction {
        write,
        ..Transaction::default()
    };
    memory.commit(&transaction).unwrap();
    found
}

/// Returns the number of conjunctions in the row of a [pair](pair_of).
fn count_of(records: &FleetRecords, primary: u64) -> usize {
    let all = (pair_of(primary), Tca(i64::MIN)..=Tca(i64::MAX));
    let within = records.anchors_within("conjunction", &mut iter::once(all));
    within.unwrap()[0].len()
}

#[test]
fn conjunctions_of_pairs_with_long_rows_are_written_in_several_transactions() {
    const COUNT: usize = 4_000;
    for is_read in [true, false] {
        let memory = Arc::new(MemoryCoordinator::default());
        for primary in 100..200 {
            put_pair(&memory, primary, COUNT);
        }
        let records = node(memory);
        let before = |primary| anchor_of("conjunction", (primary, 9), -10_000_000, 0);
        let all: Vec<RecordPlan> = (100..200).map(before).collect();
        if is_read {
            for primary in 100..200 {
                count_of(&records, primary);
            }
        }
        let (mut rest, mut rounds, mut stale) = (all.as_slice(), Vec::new(), 0);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(records.fitting(rest));
            match records.write(now) {
                Ok(()) => {
                    rounds.push(now.len());
                    rest = later;
                }
                Err(WriteError::Stale) => stale += 1,
                Err(error) => panic!("{error}"),
            }
        }
        // A row has 48 kB, so 28 rows fit into a transaction. If the sizes are unknown, 63 rows are
        // planned.
        match is_read {
            true => assert_eq!((rounds, stale), (vec![28, 28, 28, 16], 0)),
            false => assert_eq!((rounds, stale), (vec![28, 28, 28, 16], 2)),
        }
        for primary in 100..200 {
            assert_eq!(count_of(&records, primary), COUNT + 1);
        }
    }
}

#[test]
fn a_pair_with_a_full_row_gets_no_conjunction_until_old_ones_are_deleted() {
    let memory = Arc::new(MemoryCoordinator::default());
    let records = node(Arc::clone(&memory) as Arc<dyn Coordinator>);
    let plan = [anchor_of("conjunction", (1, 9), -10_000_000, 0)];
    put_pair(&memory, 1, 116_619);
    records.write(&plan).unwrap();
    let old = put_pair(&memory, 1, 116_620);
    let Err(WriteError::TooLong(error)) = records.write(&plan) else {
        panic!("the row is full")
    };
    let text = error.to_string();
    for part in [
        "objects 1 and 9 (conjunction)",
        "1400000",
        "conjunction.retention",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(error.failure_kind(), FailureKind::Full);
    records.forget_anchors(&old).unwrap();
    records.write(&plan).unwrap();
    assert_eq!(count_of(&records, 1), 116_620 - 60 + 1);
}

#[test]
fn a_trial_refuses_to_adopt_a_pair_whose_row_is_too_long() {
    let anchor = |at: i64| StoredAnchor {
        anchor: Anchor {
            tca: Tca(10_000_000 * at),
            rank: 0,
        },
        report_count: None,
        externals: Vec::new(),
    };
    let adopt = |count, is_trial| {
        let coordinator = Arc::new(MemoryCoordinator::default());
        let adopter = RecordAdopter::new(coordinator, &Namespace::default(), Arc::default());
        let adopter = match is_trial {
            true => adopter.on_trial(),
            false => adopter,
        };
        adopter.adopt_pairs(&[StoredPair {
            format: "conjunction".to_owned(),
            pair: pair_of(1),
            anchors: (0..count).map(anchor).collect(),
        }])
    };
    assert_eq!(adopt(116_000, false).unwrap().parts, 116_000);
    for is_trial in [true, false] {
        let error = adopt(117_000, is_trial).unwrap_err().to_string();
        assert!(error.contains("objects 1 and 9 (conjunction)"), "{error}");
    }
}

#[test]
fn old_conjunctions_of_pairs_with_long_rows_are_deleted_in_several_transactions() {
    let memory = Arc::new(MemoryCoordinator::default());
    let old: Vec<CountedAnchor> = (100..160)
        .map(|primary| put_pair(&memory, primary, 5_000).remove(0))
        .collect();
    let records = node(memory);
    records.forget_anchors(&old).unwrap();
    for primary in 100..160 {
        assert_eq!(count_of(&records, primary), 4_999);
    }
}

#[test]
fn what_is_damaged_is_not_read() {
    let (faulty, records, genesis, _) = bench();
    records.write(&[anchor(0, 0)]).unwrap();
    let everything = faulty
        .memory
        .read(&[Range::prefix("/")])
        .unwrap()
        .ranges
        .remove(0);
    for entry in everything {
        let mut value = entry.value;
        *value.first_mut().unwrap() ^= 2;
        let damage = Write::put(entry.key, value);
        faulty
            .memory
            .commit(&Transaction {
                write: vec![damage],
                ..Transaction::default()
            })
            .unwrap();
    }
    let pair = (
        Pair {
            primary: 1,
            secondary: 2,
        },
        Tca(0),
    );
    let errors = [
        records.head(genesis.ledger()).unwrap_err(),
        records.chain(genesis.ledger(), None, 9).unwrap_err(),
        records.requests(&[KeyHash(1)]).unwrap_err(),
        records
            .neighbours("conjunction", &mut std::iter::once(pair))
            .unwrap_err(),
    ];
    assert!(
        errors
            .iter()
            .all(|error| error.failure_kind() == FailureKind::Damaged),
        "{errors:?}"
    );
}

#[test]
fn what_a_later_version_has_written_is_told_from_damage() {
    let (faulty, records, genesis, _) = bench();
    let anchor = anchor_of("conjunction", (3, 4), 0, 0);
    records.write(&[anchor]).unwrap();
    let seen = Seen {
        at: UnixNanos::from_seconds(7),
        tca: Tca(0),
    };
    let count = report_count_row::to_bytes(&ReportCount::of(seen));
    let everything = faulty.memory.read(&[Range::prefix("/")]).unwrap();
    for entry in everything.ranges.into_iter().flatten() {
        let (mut content, crc) = {
            let (content, crc) = entry.value.split_last_chunk::<4>().unwrap();
            (content.to_vec(), u32::from_be_bytes(*crc))
        };
        let crc_of = |name: &str, content: &[u8]| {
            crc32c::crc32c_append(crc32c::crc32c(name.as_bytes()), content)
        };
        let names = [entry.key.as_str(), entry.key.rsplit('/').next().unwrap()];
        let Some(name) = names.into_iter().find(|name| crc_of(name, &content) == crc) else {
            continue;
        };
        content[0] += 1;
        let crc = crc_of(name, &content).to_be_bytes();
        content.extend(crc);
        if entry.key.contains("/conj-t/") {
            content.extend(&count);
        }
        let write = vec![Write::put(entry.key.clone(), content)];
        let transaction = Transaction {
            write,
            ..Transaction::default()
        };
        faulty.memory.commit(&transaction).unwrap();
    }
    for error in [
        records.head(genesis.ledger()).unwrap_err(),
        records.chain(genesis.ledger(), None, 9).unwrap_err(),
        records.requests(&[KeyHash(1)]).unwrap_err(),
        records.anchors(None, 9).unwrap_err(),
    ] {
        assert_eq!(error.failure_kind(), FailureKind::Disagrees, "{error}");
        assert!(error.to_string().contains("a later version"), "{error}");
    }
}

#[test]
fn what_is_old_is_judged_by_the_median_of_the_clocks_that_hold_a_slot() {
    let coordinator = Arc::new(MemoryCoordinator::default());
    let known = Arc::<KnownFleet>::default();
    let shared = Arc::clone(&coordinator) as Arc<dyn Coordinator>;
    let records = FleetRecords::new(
        shared,
        &Namespace::default(),
        Arc::clone(&known),
        Arc::default(),
        7,
    );
    let put = |key: &str, value: &str| {
        let put = Write::put(format!("/idmint/v1/default/{key}"), value.into());
        coordinator
            .commit(&Transaction {
                write: vec![put],
                ..Transaction::default()
            })
            .unwrap();
    };
    let judging_time = || records.judging_time(UnixNanos::from_seconds(500)).unwrap();
    let seconds = |seconds| Some(UnixNanos::from_seconds(seconds));
    put("hz/00000", r#"{"v":1,"wall_ms":500000}"#);
    put("slot/00000", "{}");
    assert_eq!(judging_time(), None, "this node has no slot");
    let key = "/idmint/v1/default/hz/00000".to_owned();
    known.hold(Some(OwnKey {
        key,
        revision: Revision(1),
        sent: None,
        is_slot: true,
    }));
    assert_eq!(judging_time(), seconds(500), "it is alone");
    put("hz/00001", r#"{"v":1,"wall_ms":100000}"#);
    assert_eq!(
        judging_time(),
        seconds(500),
        "nobody holds that slot any more"
    );
    put("slot/00001", "{}");
    assert_eq!(judging_time(), seconds(100), "of two, the earlier");
    put("hz/00002", r#"{"v":1,"wall_ms":101000}"#);
    put("slot/00002", "{}");
    assert_eq!(judging_time(), seconds(101), "of three, that in the middle");
    put("hz/00001", r#"{"v":1,"wall_ms":900000}"#);
    assert_eq!(
        judging_time(),
        seconds(500),
        "never a later one than its own"
    );
    put("hz/00001", r#"{"v":2}"#);
    assert_eq!(
        judging_time(),
        seconds(101),
        "what a later version writes is left out"
    );
}

#[test]
fn a_first_number_that_another_node_made_void_is_not_replaced() {
    // Without a void number, the same correction must succeed.
    for is_void in [false, true] {
        let memory = Arc::new(MemoryCoordinator::default());
        let [one, other] = [(), ()].map(|()| node(Arc::clone(&memory) as Arc<dyn Coordinator>));
        let acme = series("acme");
        let wrong = begin(&one, &acme, 47_110, "wrong");
        let correction = correction_plan(&wrong, 4_711, "right");
        if is_void {
            other
                .write(&[void_plan(&other, &acme, 47_110, "cancelled")])
                .unwrap();
        }
        let written = one.write(&[correction]);
        assert_eq!(
            matches!(written, Err(WriteError::Stale)),
            is_void,
            "{written:?}"
        );
        let last = other.series_head(&acme).unwrap().map(|head| head.last);
        let kept = other.given_to(&[(acme, wrong.mark.key)]).unwrap();
        let expected = if is_void { (47_110, 1) } else { (4_711, 0) };
        assert_eq!(
            (last, kept.iter().flatten().count()),
            (Some(expected.0), expected.1)
        );
    }
}

#[test]
fn a_number_that_another_node_has_replaced_does_not_become_void() {
    /// The moment at which the other node replaces the number 12 by 10.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Replaced {
        Never,
        BeforeTheRead,
        BeforeTheReadAndGivenAgain,
        BeforeTheCommit,
    }
    for replaced in [
        Replaced::Never,
        Replaced::BeforeTheRead,
        Replaced::BeforeTheReadAndGivenAgain,
        Replaced::BeforeTheCommit,
    ] {
        let memory = Arc::new(MemoryCoordinator::default());
        let acme = series("acme");
        let other = Arc::new(node(Arc::clone(&memory) as Arc<dyn Coordinator>));
        let wrong = begin(&*other, &acme, 12, "wrong");
        let void = void_plan(&*other, &acme, 12, "cancelled");
        let replace = move |other: &FleetRecords| {
            other
                .write(&[correction_plan(&wrong, 10, "right")])
                .unwrap();
        };
        let one = match replaced {
            Replaced::BeforeTheCommit => {
                let (other, replace) = (Arc::clone(&other), Mutex::new(Some(replace)));
                memory.committed_by(move |store, transaction| {
                    if let Some(replace) = replace.lock().unwrap().take() {
                        replace(&other);
                    }
                    store.commit(transaction)
                })
            }
            _ => {
                if replaced != Replaced::Never {
                    replace(&other);
                }
                Arc::clone(&memory) as Arc<dyn Coordinator>
            }
        };
        if replaced == Replaced::BeforeTheReadAndGivenAgain {
            assert_eq!(give(&*other, &acme, 2, "next").last, 12);
        }
        let written = node(one).write(&[void]);
        let is_stale = matches!(written, Err(WriteError::Stale));
        assert_eq!(
            is_stale,
            replaced != Replaced::Never,
            "{replaced:?}: {written:?}"
        );
        let voids = other.voids(&acme, 0..=99).unwrap();
        assert_eq!(voids.is_empty(), is_stale, "{replaced:?}: {voids:?}");
    }
}

#[test]
fn reports_are_counted_although_another_node_keeps_counting_the_same_conjunction() {
    const OVERTAKEN: u64 = 5;
    let memory = Arc::new(MemoryCoordinator::default());
    let other = node(Arc::clone(&memory) as Arc<dyn Coordinator>);
    other.write(&[anchor(0, 0)]).unwrap();
    let key = other.anchors(None, 1).unwrap().remove(0).key;
    let seen = Seen {
        at: UnixNanos::from_seconds(7),
        tca: Tca(0),
    };
    let reports = [(key, ReportCount::of(seen))];
    let (of_other, left) = (reports.clone(), Mutex::new(OVERTAKEN));
    let one = memory.committed_by(move |store, transaction| {
        let mut left = left.lock().unwrap();
        if *left > 0 {
            *left -= 1;
            other.add_reports(&of_other).unwrap();
        }
        store.commit(transaction)
    });
    let one = node(one);
    one.add_reports(&reports).unwrap();
    let counted = one.anchors(None, 1).unwrap().remove(0).report_count;
    assert_eq!(counted.unwrap().count, OVERTAKEN + 1);
}
