//! Tests of the replies that callers receive, and of when they receive them.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use tokio::runtime::Runtime;

use super::*;
use crate::embedded::simulation::{Fault, SimulatedDatabase};
use crate::samples::{NOW, anchor_of, append, create, number_request, reports, series};
use crate::writers::record_writer::REOPEN_EVERY;
use idmint_core::minting::Refusal;
use idmint_core::time::{ManualClock, UnixNanos};
use idmint_records::conjunction::Pair;
use idmint_records::ledger::{AppendRefusal, KeyHash, LedgerId};

const EIO: i32 = 5;

/// A record writer on a simulated disk, with a clock and a runtime.
struct Bench {
    runtime: Runtime,
    hand: ManualClock,
    backend: SimulatedDatabase,
    records: Records,
    writer: RecordWriterHandle,
}

type Replying<'a, T> = Pin<Box<dyn Future<Output = Result<T, RecordError>> + 'a>>;

impl Bench {
    fn new() -> Bench {
        let backend = SimulatedDatabase::new(1);
        let records = backend.open_records().expect("the disk works");
        let hand = ManualClock::at(UnixNanos::new(NOW * 1_000));
        let writer = RecordWriterHandle::start(records.clone(), Arc::new(hand.clock()), None);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        Bench {
            runtime,
            hand,
            backend,
            records,
            writer,
        }
    }

    fn append(&self, order: LedgerRequest) -> Result<Appended, RecordError> {
        self.runtime.block_on(self.writer.append(order))
    }

    fn group(&self, order: GroupRequest) -> Result<Vec<Grouped>, RecordError> {
        self.runtime.block_on(self.writer.group(order))
    }

    /// Sends a request, but does not wait for the reply.
    fn begin(&self, order: LedgerRequest) -> Replying<'_, Appended> {
        let mut replying: Replying<'_, Appended> = Box::pin(self.writer.append(order));
        assert!(
            self.poll(replying.as_mut()).is_pending(),
            "answered before anything was synced"
        );
        replying
    }

    fn poll<F: Future + ?Sized>(&self, future: Pin<&mut F>) -> Poll<F::Output> {
        let _entered = self.runtime.enter();
        future.poll(&mut Context::from_waker(Waker::noop()))
    }
}

fn ledger_of(appended: &Result<Appended, RecordError>) -> LedgerId {
    appended.as_ref().expect("was appended").links[0]
        .id
        .ledger()
}

/// Returns the reply that a repeated request should get.
fn replayed(appended: &Result<Appended, RecordError>) -> Result<Appended, RecordError> {
    appended.clone().map(|appended| Appended {
        is_replayed: true,
        ..appended
    })
}

#[test]
fn nothing_is_answered_before_it_is_durable() {
    let bench = Bench::new();
    let hold = bench.backend.disk().hold_syncs();
    let mut first = bench.begin(create("genesis", 1));
    hold.wait_for_one();
    assert!(bench.poll(first.as_mut()).is_pending());
    let mut group = pin!(bench.writer.group(reports(&[0], 1, 2)));
    assert!(bench.poll(group.as_mut()).is_pending());
    drop(hold);
    assert!(
        !bench
            .runtime
            .block_on(first)
            .expect("was appended")
            .is_replayed
    );
    assert_eq!(
        bench.runtime.block_on(group).expect("was grouped")[0].created,
        Some(true)
    );
}

#[test]
fn a_known_conjunction_is_answered_while_nothing_can_be_written() {
    let bench = Bench::new();
    let first = bench.group(reports(&[0], 1, 2)).expect("was grouped");
    let hold = bench.backend.disk().hold_syncs();
    let waiting = bench.begin(create("genesis", 1));
    hold.wait_for_one();
    let known = bench
        .group(reports(&[1_000_000, 0], 1, 2))
        .expect("is known");
    assert!(
        known
            .iter()
            .all(|known| (known.id, known.created) == (first[0].id, Some(false)))
    );
    drop(hold);
    bench.runtime.block_on(waiting).expect("was appended");
}

#[test]
fn more_than_can_wait_are_refused_and_the_others_are_done() {
    let bench = Bench::new();
    let hold = bench.backend.disk().hold_syncs();
    let first = bench.begin(create("first", 0));
    hold.wait_for_one();
    let key = |at: usize| u128::try_from(at).expect("fits");
    let names = (1..=WAITING_MAX).map(|at| create(&format!("ledger {at}"), key(at)));
    let waiting: Vec<_> = names.map(|order| bench.begin(order)).collect();
    assert_eq!(
        bench.append(create("too many", 5_000)),
        Err(RecordError::Busy)
    );
    assert_eq!(bench.group(reports(&[0], 1, 2)), Err(RecordError::Busy));
    drop(hold);
    for asked in [first].into_iter().chain(waiting) {
        bench.runtime.block_on(asked).expect("was appended");
    }
    assert_eq!(
        bench.records.ledgers(None, 5_000).expect("reads").len(),
        1 + WAITING_MAX
    );
}

#[test]
fn what_waits_is_done_before_the_writer_is_gone_though_nobody_listens() {
    let bench = Bench::new();
    let hold = bench.backend.disk().hold_syncs();
    let first = bench.begin(create("first", 0));
    hold.wait_for_one();
    let waiting = (1..4).map(|key| bench.begin(create(&format!("ledger {key}"), key)));
    waiting.for_each(drop);
    drop((first, hold));
    drop(bench.writer);
    assert_eq!(bench.records.ledgers(None, 9).expect("reads").len(), 4);
}

#[test]
fn the_same_request_is_done_once_within_a_round_after_it_and_after_a_restart() {
    let bench = Bench::new();
    let ledger = ledger_of(&bench.append(create("genesis", 1)));
    let hold = bench.backend.disk().hold_syncs();
    let other = bench.begin(append(ledger, &["other"], 2));
    hold.wait_for_one();
    let asked =
        [&["a", "b"], &["a", "b"], &["a", "c"]].map(|names| bench.begin(append(ledger, names, 3)));
    let behind = bench.begin(append(ledger, &["d"], 4));
    drop(hold);
    bench.runtime.block_on(other).expect("was appended");
    let [first, again, conflicting] = asked.map(|asked| bench.runtime.block_on(asked));
    assert_eq!(again, replayed(&first));
    assert_eq!(conflicting, Err(RecordError::KeyConflict));
    let (first_links, behind) = (
        first.clone().expect("was appended").links,
        bench.runtime.block_on(behind),
    );
    assert_eq!(
        first_links
            .iter()
            .map(|link| link.place)
            .collect::<Vec<_>>(),
        [3, 4]
    );
    assert_eq!(
        behind.expect("was appended").links[0].previous,
        first_links[1].id
    );

    assert_eq!(
        bench.append(append(ledger, &["a", "b"], 3)),
        replayed(&first)
    );
    assert_eq!(
        bench.append(append(ledger, &["a"], 3)),
        Err(RecordError::KeyConflict)
    );

    let Bench {
        runtime,
        hand,
        records,
        writer,
        ..
    } = bench;
    drop(writer);
    let writer = RecordWriterHandle::start(records, Arc::new(hand.clock()), None);
    assert_eq!(
        runtime.block_on(writer.append(append(ledger, &["a", "b"], 3))),
        replayed(&first)
    );
    assert_eq!(
        runtime.block_on(writer.append(append(ledger, &["a"], 3))),
        Err(RecordError::KeyConflict)
    );
}

/// Returns a writer for the same records, with a runtime. The writer has been running for an hour,
/// and its clock shows a time `passed` after the start of the test.
fn kept_after(backend: &SimulatedDatabase, passed: Duration) -> (Runtime, RecordWriterHandle) {
    const HOUR: Duration = Duration::from_hours(1);
    let hand = ManualClock::at(UnixNanos::new(NOW * 1_000).after(passed).before(HOUR));
    let clock = Arc::new(hand.clock());
    hand.advance(HOUR);
    let writer =
        RecordWriterHandle::start(backend.open_records().expect("the disk works"), clock, None);
    (
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime"),
        writer,
    )
}

#[test]
fn a_key_is_answered_again_by_a_clock_25_h_ahead_and_free_once_three_later_days_have_keys() {
    const DAY: Duration = Duration::from_hours(24);
    let Bench {
        runtime,
        backend,
        writer,
        records,
        ..
    } = Bench::new();
    let ledger = ledger_of(&runtime.block_on(writer.append(create("genesis", 1))));
    let first = runtime.block_on(writer.append(append(ledger, &["a"], 2)));
    drop((writer, records));

    for ahead in [Duration::from_hours(25), DAY * 400] {
        let (runtime, writer) = kept_after(&backend, ahead);
        assert_eq!(
            runtime.block_on(writer.append(append(ledger, &["a"], 2))),
            replayed(&first),
            "{ahead:?}"
        );
        let created = create("genesis", 1);
        assert!(
            runtime
                .block_on(writer.append(created))
                .expect("as before")
                .is_replayed,
            "{ahead:?}"
        );
    }

    let hand = ManualClock::at(UnixNanos::new(NOW * 1_000));
    let writer = RecordWriterHandle::start(
        backend.open_records().expect("the disk works"),
        Arc::new(hand.clock()),
        None,
    );
    for day in 1..=3 {
        hand.advance(DAY);
        runtime
            .block_on(writer.append(append(ledger, &["b"], day + 10)))
            .expect("appended");
    }
    // The sweep after the first or after the second of these appends removes the request keys of
    // the first day.
    for key in [20, 21] {
        hand.advance(Duration::from_hours(2));
        runtime
            .block_on(writer.append(append(ledger, &["c"], key)))
            .expect("appended");
    }
    let later = runtime
        .block_on(writer.append(append(ledger, &["a"], 2)))
        .expect("the key is free");
    assert_eq!((later.is_replayed, later.links[0].place), (false, 8));
}

#[test]
fn a_clock_days_ahead_at_one_start_does_not_have_keys_forgotten() {
    let Bench {
        runtime,
        backend,
        writer,
        records,
        ..
    } = Bench::new();
    let ledger = ledger_of(&runtime.block_on(writer.append(create("genesis", 1))));
    let first = runtime.block_on(writer.append(append(ledger, &["a"], 2)));
    drop((writer, records));

    let (runtime, writer) = kept_after(&backend, Duration::from_hours(5 * 24));
    runtime
        .block_on(writer.append(create("another", 3)))
        .expect("appended under the wrong clock");
    // The drop waits until all jobs are done, including the sweep after the append.
    drop(writer);
    let (runtime, writer) = kept_after(&backend, Duration::from_hours(1));
    assert_eq!(
        runtime.block_on(writer.append(append(ledger, &["a"], 2))),
        replayed(&first)
    );
}

#[test]
fn keys_that_nobody_can_ask_for_are_forgotten_although_somebody_always_appends() {
    let bench = Bench::new();
    let ledger = ledger_of(&bench.append(create("genesis", 1)));
    for day in 1..=5 {
        bench.hand.advance(Duration::from_hours(24));
        bench
            .append(append(ledger, &["a"], day + 1))
            .expect("appended");
    }
    // The sweep after an append may be delayed until the clock has advanced for the next append.
    // One sweep then does the work of both. So at least three of the six sweeps run, one for each
    // day to remove.
    for key in 7..=12 {
        bench.hand.advance(Duration::from_hours(2));
        bench.append(append(ledger, &["a"], key)).expect("appended");
    }
    // This append is queued after the last sweep, so that sweep is over when the reply arrives.
    bench.append(append(ledger, &["a"], 13)).expect("appended");
    let is_known = |key: u128| {
        bench
            .records
            .request(KeyHash(key))
            .expect("readable")
            .is_some()
    };
    assert_eq!(
        (1..=13).filter(|key| !is_known(*key)).collect::<Vec<_>>(),
        [1, 2, 3]
    );
}

#[test]
fn a_refusal_names_its_reason_and_the_thread_goes_on() {
    let bench = Bench::new();
    let ledger = ledger_of(&bench.append(create("genesis", 1)));
    let unknown = LedgerId::from_bits(ledger.bits() ^ 4).expect("version 00");
    let refusal = RecordError::Append(AppendRefusal::UnknownLedger(unknown));
    assert_eq!(bench.append(append(unknown, &["a"], 2)), Err(refusal));
    assert!(bench.append(append(ledger, &["a"], 3)).is_ok());
}

#[test]
fn a_ledger_whose_id_is_taken_begins_a_microsecond_later() {
    let bench = Bench::new();
    let hold = bench.backend.disk().hold_syncs();
    let asked = [1, 2, 3].map(|key| bench.begin(create("genesis", key)));
    hold.wait_for_one();
    drop(hold);
    let times = asked.map(|asked| {
        bench.runtime.block_on(asked).expect("was created").links[0]
            .id
            .timestamp()
            .micros()
    });
    assert_eq!(times, [NOW, NOW + 1, NOW + 2]);
}

#[test]
fn after_an_error_of_the_disk_nothing_is_known_and_nothing_more_is_written() {
    for operation in 0..8 {
        let bench = Bench::new();
        let ledger = ledger_of(&bench.append(create("genesis", 1)));
        let disk = bench.backend.disk();
        disk.fail_after(operation, Fault::Error(EIO));
        let answer = bench.append(append(ledger, &["a"], 2));
        if answer.is_ok() {
            continue;
        }
        assert_eq!(answer, Err(RecordError::Unknown), "operation {operation}");
        bench.runtime.block_on(bench.writer.failed());
        let before = disk.operations();
        assert!(matches!(
            bench.append(append(ledger, &["b"], 3)),
            Err(RecordError::Unavailable(_) | RecordError::Unknown)
        ));
        assert!(bench.group(reports(&[0], 1, 2)).is_err());
        let backend = bench.backend.clone();
        drop(bench);
        assert_eq!(backend.disk().operations(), before, "operation {operation}");
    }
}

#[test]
fn after_an_error_of_the_disk_the_end_of_a_hold_and_counts_of_reports_end_the_thread_too() {
    for is_hold in [true, false] {
        let mut ended = 0;
        for operation in 0..8 {
            let bench = Bench::new();
            bench.group(reports(&[0], 1, 2)).expect("was grouped");
            let disk = bench.backend.disk();
            disk.fail_after(operation, Fault::Error(EIO));
            let answer = bench.runtime.block_on(async {
                if is_hold {
                    bench.writer.end_hold(None).await
                } else {
                    let counts = Arc::clone(&bench.writer.report_counts);
                    bench.writer.send(counts).await
                }
            });
            if answer.is_ok() {
                continue;
            }
            let ending = async {
                tokio::time::timeout(Duration::from_secs(60), bench.writer.failed()).await
            };
            let kind = bench.runtime.block_on(ending).expect("the thread ends");
            assert_eq!(kind, FailureKind::NotUsable, "operation {operation}");
            ended += 1;
        }
        assert!(ended > 0, "no operation failed, hold: {is_hold}");
    }
}

#[test]
fn a_full_disk_is_waited_for() {
    let bench = Bench::new();
    let ledger = ledger_of(&bench.append(create("genesis", 1)));
    let disk = bench.backend.disk();
    disk.fail_after(0, Fault::Full);
    let mut keys = 2..;
    let mut appended = Vec::new();
    let first_failed = loop {
        let key = keys.next().expect("there are more");
        match bench.append(append(ledger, &["a"], key)) {
            Ok(answer) => appended.push(answer.links[0]),
            Err(error) => break (key, error),
        }
    };
    assert_eq!(first_failed.1, RecordError::Unknown);
    let refused = bench.append(append(ledger, &["a"], first_failed.0));
    assert!(
        matches!(
            refused,
            Err(RecordError::Unavailable(_) | RecordError::Unknown)
        ),
        "{refused:?}"
    );
    disk.make_room();
    bench.hand.advance(REOPEN_EVERY);
    let again = bench
        .append(append(ledger, &["a"], first_failed.0))
        .expect("there is room");
    let chain = bench.records.chain(ledger, None, 10_000).expect("reads");
    assert_eq!(chain[1..], [appended, again.links].concat());
    let mut failed = pin!(bench.writer.failed());
    assert!(
        bench.poll(failed.as_mut()).is_pending(),
        "the process goes on"
    );
}

#[test]
fn while_the_disk_is_full_only_new_records_are_refused_and_that_is_said_until_one_can_be_written() {
    let full = Obstacle::of_kind(FailureKind::Full);
    // An append of one event fails when the log has to grow. An append of 2,000 events fails when
    // the tables are synced.
    for count in [1, 2_000] {
        let bench = Bench::new();
        let first = bench.append(create("genesis", 1));
        let ledger = ledger_of(&first);
        let grouped = bench.group(reports(&[0], 1, 2)).expect("was grouped");
        let disk = bench.backend.disk();
        disk.fail_after(0, Fault::Full);
        let events = vec!["a"; count];
        let mut keys = 2..;
        let mut new = || bench.append(append(ledger, &events, keys.next().expect("unbounded")));
        let stored = (0..).take_while(|_| new().is_ok()).count();
        for round in 0..200 {
            bench.hand.advance(REOPEN_EVERY / 3);
            assert_eq!(new(), Err(RecordError::Unavailable(full)), "round {round}");
            assert_eq!(bench.writer.can_append(), Err(full.into()), "round {round}");
            assert_eq!(bench.append(create("genesis", 1)), replayed(&first));
            let joined = bench.group(reports(&[1_000_000], 1, 2)).expect("it joins");
            assert_eq!(joined[0].id, grouped[0].id);
            assert!(bench.group(reports(&[9_000_000], 1, 2)).is_err());
            let chain = bench.records.chain(ledger, None, 1_000_000).expect("reads");
            assert_eq!(chain.len(), 1 + count * stored, "round {round}");
        }
        disk.make_room();
        // Send no request meanwhile, because a load balancer may send none to a node that is not
        // ready. The writer thread must notice the free space by itself.
        while bench.writer.can_append().is_err() {
            bench.hand.advance(REOPEN_EVERY);
            std::thread::sleep(Duration::from_millis(10));
        }
        new().expect("there is room");
    }
}

#[test]
fn reports_that_join_at_the_end_of_a_retention_are_counted_in_the_store_before_the_answer() {
    let Bench {
        runtime,
        hand,
        records,
        ..
    } = Bench::new();
    let clock = Arc::new(hand.clock());
    let retention = Some(Duration::from_hours(365 * 24));
    let writer = RecordWriterHandle::start(records.clone(), Arc::clone(&clock), retention);
    // These conjunctions are three years old.
    let [first, second] = [0, 10_000_000].map(|delta| {
        let anchor = anchor_of("conjunction", (1, 2), 1_706_745_600_000_000 + delta, 0);
        records.write(&[anchor]).expect("the disk works");
        reports(&[delta], 1, 2)
    });
    let counted = || {
        let anchors = records.anchors(None, 9).expect("readable");
        let counts = anchors.iter().filter_map(|anchor| anchor.report_count);
        counts.filter(|count| count.last.at == clock.now()).count()
    };
    // The thread writes counts after its first request, and then not for ten seconds.
    for key in [1, 2] {
        let appended = writer.append(create(&format!("ledger {key}"), key));
        runtime.block_on(appended).expect("was appended");
    }
    runtime.block_on(writer.group(first)).expect("it joins");
    assert_eq!(counted(), 1);

    // No more counts fit into memory.
    let seen = Seen {
        at: clock.now(),
        tca: Tca(0),
    };
    let is_counted = |primary| {
        let pair = Pair {
            primary,
            secondary: 2,
        };
        let counts = writer.report_counts();
        counts.count("conjunction", pair, Tca(0), seen)
    };
    assert!((10..).take_while(|primary| is_counted(*primary)).count() > 1_000);
    runtime.block_on(writer.group(second)).expect("it joins");
    assert_eq!(counted(), 2);
}

#[test]
fn by_a_clock_that_a_fleet_says_is_hours_behind_nothing_is_appended_and_numbers_are_issued() {
    let bench = Bench::new();
    let first = bench.append(create("genesis", 1));
    let ledger = ledger_of(&first);
    let limit = Duration::from_hours(1);
    bench.writer.clock.refute_as_behind(limit);
    bench
        .append(append(ledger, &["a"], 2))
        .expect("an hour is not too much");
    let behind = limit + Duration::from_nanos(1);
    bench.writer.clock.refute_as_behind(behind);
    let refused = Err(RecordError::Clock(Refusal::ClockBehindFleet { behind }));
    assert_eq!(bench.append(append(ledger, &["a"], 3)), refused);
    assert_eq!(bench.writer.can_append(), refused.map(drop));
    assert_eq!(bench.append(create("genesis", 1)), replayed(&first));
    assert_eq!(bench.writer.can_issue_numbers(), Ok(()));
    let number = number_request(&series("acme"), 1, "order-1");
    bench
        .runtime
        .block_on(bench.writer.give(number))
        .expect("numbers contain no time");
    bench.writer.clock.refute(Duration::ZERO);
    bench
        .append(append(ledger, &["a"], 3))
        .expect("the clock is right");
}

#[test]
fn by_a_clock_that_a_fleet_says_is_ahead_nothing_is_appended_and_what_was_is_replayed() {
    let bench = Bench::new();
    let first = bench.append(create("genesis", 1));
    let ledger = ledger_of(&first);
    bench.writer.clock.refute(Duration::from_secs(60));
    let refused = Err(RecordError::Clock(Refusal::ClockAheadOfFleet {
        ahead: Duration::from_secs(60),
    }));
    assert_eq!(bench.append(append(ledger, &["a"], 2)), refused);
    assert_eq!(bench.writer.can_append(), refused.map(drop));
    assert_eq!(bench.append(create("genesis", 1)), replayed(&first));
    bench.writer.clock.refute(Duration::ZERO);
    bench
        .append(append(ledger, &["a"], 2))
        .expect("the clock is right");
}
