//! Tests that the sweeps remove old records, and that they remove no other records if the clock is
//! wrong.

use std::sync::mpsc::{self, SyncSender};

use tokio::sync::oneshot;

use super::*;
use crate::embedded::simulation::SimulatedDatabase;
use crate::records::AnchorKey;
use crate::samples::{NOW, anchor_of, append, create, plan};
use crate::writers::clock_check::NOTHING_FORGOTTEN_FOR;
use crate::writers::job::job;
use crate::writers::round::Appended;
use idmint_core::time::ManualClock;
use idmint_records::conjunction::{ExternalId, Pair, ReportCount, Seen, Tca};
use idmint_records::ledger::{Head, KeyHash, LedgerRequest};

const DAY: Duration = Duration::from_hours(24);
const RETENTION: Duration = DAY.saturating_mul(365);
const BEGINS: UnixNanos = UnixNanos::new(NOW * 1_000);

/// Records on a simulated disk. Callers write a few records on each day.
struct Bench {
    backend: SimulatedDatabase,
    records: Records,
    /// The head of the only ledger.
    head: Option<Head>,
    keys: u128,
}

impl Bench {
    /// Returns a bench with five days of records. Each day has an anchor with a report, and a
    /// request with a key.
    fn of_five_days() -> Bench {
        let backend = SimulatedDatabase::new(1);
        let records = backend.open_records().expect("the disk works");
        let mut bench = Bench {
            backend,
            records,
            head: None,
            keys: 0,
        };
        for day in 0..5 {
            bench.append_on(day);
            bench
                .records
                .write(&[anchor_of("conjunction", (1, 2), time_of(day).0, 0)])
                .expect("they are days apart");
            bench.report_on(day, time_of(day));
        }
        bench
    }

    /// Appends an event with a new request key, recorded on `day`.
    fn append_on(&mut self, day: u64) {
        self.keys += 1;
        let request = match self.head {
            Some(head) => append(head.id.ledger(), &["next"], self.keys),
            None => create("genesis", self.keys),
        };
        let plan = plan(&request, self.head, on(day).get() / 1_000);
        self.head = Some(plan.head());
        self.records
            .write(&[RecordPlan::Append(plan)])
            .expect("nothing was written meanwhile");
    }

    /// Counts a report on `day` for the anchor at `tca`.
    fn report_on(&self, day: u64, tca: Tca) {
        let pair = Pair {
            primary: 1,
            secondary: 2,
        };
        let key = AnchorKey {
            format: "conjunction".to_owned(),
            pair,
            tca,
        };
        let report_count = ReportCount::of(Seen { at: on(day), tca });
        self.records
            .add_reports(&[(key, report_count)])
            .expect("the disk works");
    }

    /// Starts a process whose clock shows `day`.
    fn start_on(&mut self, day: u64) -> Process {
        self.records = self.backend.open_records().expect("the disk works");
        let hand = ManualClock::at(on(day));
        let clock = Arc::new(hand.clock());
        let (jobs, waiting) = mpsc::sync_channel(1);
        let records = Arc::clone(&self.records);
        let writer = RecordWriter::new(
            records,
            Arc::clone(&clock),
            waiting,
            Some(RETENTION),
            Arc::default(),
        );
        Process {
            hand,
            clock,
            jobs,
            writer,
        }
    }

    /// Returns the days of the remaining anchors, and the remaining keys.
    fn left(&self) -> (Vec<i64>, Vec<u128>) {
        let anchors = self.records.anchors(None, 100).expect("readable");
        let days = anchors
            .iter()
            .rev()
            .map(|anchor| (anchor.key.tca.0 - time_of(0).0) / 86_400_000_000)
            .collect();
        let is_known = |key: &u128| {
            self.records
                .request(KeyHash(*key))
                .expect("readable")
                .is_some()
        };
        (days, (1..=self.keys).filter(is_known).collect())
    }
}

/// A process that receives no requests and only runs the sweeps, which remove old records.
struct Process {
    hand: ManualClock,
    clock: Arc<Clock>,
    jobs: SyncSender<AnyJob>,
    writer: RecordWriter,
}

impl Process {
    /// Appends the events of a request.
    fn append(&mut self, request: LedgerRequest) -> Appended {
        let (caller, mut reply) = oneshot::channel();
        let served = self.writer.serve(job(request, caller));
        served.expect("the disk works");
        let outcome = reply.try_recv().expect("the request was served");
        outcome.expect("nothing speaks against it")
    }

    /// Runs for the duration `lasts` without a request.
    fn run(&mut self, lasts: Duration) {
        self.hand.advance(lasts);
        // Take more steps than there are days with keys, so that all old days are removed.
        for _ in 0..10 {
            self.hand.advance(Duration::from_secs(1));
            self.writer.forget_requests().expect("the disk works");
            let forgotten = self.writer.forget_anchors(AnchorSweep::is_due);
            forgotten.expect("the disk works");
        }
    }

    /// Runs for the duration `lasts`, then serves one request and ends. The writer thread is never
    /// idle.
    fn serve_after(self, lasts: Duration) {
        let (caller, _reply) = oneshot::channel();
        let no_externals: Vec<(AnchorKey, ExternalId)> = Vec::new();
        let job = job(no_externals, caller);
        self.jobs.send(job).expect("the queue has room");
        drop(self.jobs);
        self.hand.advance(lasts);
        self.writer.run().expect("the disk works");
    }
}

fn on(day: u64) -> UnixNanos {
    BEGINS.after(DAY * u32::try_from(day).expect("few days"))
}

fn time_of(day: u64) -> Tca {
    Tca(i64::try_from(on(day).get() / 1_000).expect("in range"))
}

#[test]
fn one_start_with_the_clock_400_days_ahead_forgets_no_anchor_and_no_key() {
    let mut bench = Bench::of_five_days();
    // At the end of day 4, only the keys of days 0 and 1 are old: they are more than a day old, and
    // not from the last three days. In its first minutes, a process must not remove even these
    // keys.
    let before = (vec![0, 1, 2, 3, 4], vec![1, 2, 3, 4, 5]);
    for runs_for in [Duration::from_secs(1), Duration::from_mins(4)] {
        bench.start_on(404).run(runs_for);
        assert_eq!(bench.left(), before, "it ran for {runs_for:?}");
    }
    // Now run longer than the grace period after a start, and write with the wrong clock.
    let mut wrong = bench.start_on(404);
    // Use a new ledger, because an existing ledger would continue from its own time.
    let head = bench.head.take();
    bench.append_on(404);
    bench.head = head;
    bench.report_on(404, time_of(4));
    wrong.run(Duration::from_hours(3));
    let (anchors, keys) = bench.left();
    assert_eq!(
        anchors, before.0,
        "the third-last day is day 3, which is no 365 days after any of them"
    );
    assert_eq!(keys, [4, 5, 6], "and its keys are of the last three days");
    // With correct clocks, old anchors and keys are removed once the days have passed.
    drop(wrong);
    for day in [371, 372, 373] {
        bench.append_on(day);
    }
    bench.start_on(373).run(Duration::from_hours(1));
    assert_eq!(
        bench.left().0,
        [4],
        "day 404 is one of the last three days, so these begin with day 372; day 4 was reported on day 404"
    );
}

#[test]
fn a_key_that_was_used_while_the_clock_was_days_behind_is_kept() {
    let mut bench = Bench::of_five_days();
    let request = || create("another genesis", 99);
    let first = bench.start_on(1).append(request());
    assert!(!first.is_replayed);
    // The clock is right again. Day 1 is more than a day old, and three days with keys follow it.
    let mut right = bench.start_on(5);
    let again = right.append(request());
    assert_eq!((again.is_replayed, &again.links), (true, &first.links));
    right.run(NOTHING_FORGOTTEN_FOR + Duration::from_hours(1));
    assert_eq!(bench.left().1, [3, 4, 5], "days 0 and 1 are removed");
    let again = right.append(request());
    assert_eq!((again.is_replayed, &again.links), (true, &first.links));
}

#[test]
fn with_right_clocks_what_is_old_is_forgotten_after_the_first_minutes() {
    let mut bench = Bench::of_five_days();
    for day in [366, 367, 368] {
        bench.append_on(day);
    }
    let mut process = bench.start_on(368);
    process.run(NOTHING_FORGOTTEN_FOR - Duration::from_mins(1));
    assert_eq!(
        bench.left(),
        (vec![0, 1, 2, 3, 4], (1..=8).collect()),
        "it has just started"
    );
    process.run(Duration::from_mins(1));
    assert_eq!(
        bench.left(),
        (vec![1, 2, 3, 4], vec![6, 7, 8]),
        "by the beginning of day 366, less 365 days"
    );
    bench.report_on(369, time_of(2));
    bench.append_on(370);
    bench.append_on(371);
    process.run(DAY * 3);
    assert_eq!(
        bench.left(),
        (vec![2, 4], vec![6, 7, 8, 9, 10][2..].to_vec()),
        "what was reported lately is kept"
    );
}

#[test]
fn under_constant_load_old_anchors_are_forgotten_once_the_sweep_is_a_day_late() {
    let mut bench = Bench::of_five_days();
    for day in [366, 367, 368] {
        bench.append_on(day);
    }
    bench
        .start_on(368)
        .serve_after(DAY - Duration::from_secs(1));
    assert_eq!(bench.left().0, [0, 1, 2, 3, 4], "it waits for an idle time");
    bench.start_on(368).serve_after(DAY);
    assert_eq!(bench.left().0, [1, 2, 3, 4]);
}

#[test]
fn nothing_is_forgotten_while_the_clock_is_refused() {
    let mut bench = Bench::of_five_days();
    for day in [400, 401, 402] {
        bench.append_on(day);
    }
    let mut process = bench.start_on(402);
    process.clock.refute(Duration::from_secs(30));
    process.run(Duration::from_hours(48));
    assert_eq!(
        bench.left(),
        (vec![0, 1, 2, 3, 4], (1..=8).collect()),
        "the fleet says that it is wrong"
    );
    process.clock.refute(Duration::ZERO);
    process.run(Duration::from_secs(1));
    assert_eq!(bench.left(), (vec![], vec![6, 7, 8]), "it is right again");
}

#[test]
fn where_something_was_written_on_fewer_than_three_days_no_anchor_is_forgotten() {
    let mut bench = Bench::of_five_days();
    bench
        .records
        .forget_anchors(&bench.records.anchors(None, 4).expect("readable"))
        .expect("the disk works");
    for day in [500, 501] {
        bench.append_on(day);
    }
    while bench
        .records
        .forget_requests(crate::samples::at(0), 100)
        .expect("the disk works")
    {}
    bench.start_on(900).run(Duration::from_hours(1));
    assert_eq!(bench.left().0, [0]);
}
