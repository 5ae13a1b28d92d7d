//! Tests in which another writer changes the records first. The writer must then plan all requests
//! of the round again. No caller may receive a wrong outcome.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::sync::oneshot::Receiver as Answer;

use super::*;
use crate::embedded::RecordTables;
use crate::records::{
    AnchorKey, BackedUp, ConjunctionStore, CountedAnchor, DoneRequest, LedgerStore, LedgerSummary,
    ListRange, NumberStore, RecordStore, RequestStore, SeriesState, SeriesSummary, StoredAppend,
    StoredConjunction, WrittenDay,
};
use crate::samples::{
    NOW, append, at, create, given_plan, number_request, plan, reports, series, void_request,
};
use crate::writers::RecordWriterHandle;
use crate::writers::job::job;
use crate::writers::round::{Appended, Numbered};
use idmint_core::time::ManualClock;
use idmint_records::conjunction::{
    Anchor, AnchorPlan, ExternalId, GroupRequest, Grouped, Pair, ReportCount, Tca,
};
use idmint_records::ledger::{
    AppendPlan, AppendRefusal, EventId, FormChange, GivenNumbers, Head, KeyHash, LedgerId,
    LedgerRequest, Link, NumberBounds, NumberKinds, NumberRequest, RequestMark, ResumeRequest,
    SeriesName, TemplateHistory, VoidedNumber,
};

/// A record store in which another writer writes right before the writer under test.
#[derive(Debug)]
struct Contended {
    records: RecordTables,
    other: Mutex<OtherWriter>,
    /// `true` if the store stops responding after a commit, like a lost coordinator.
    is_lost: AtomicBool,
    /// If `true`, the next look-up of anchors is followed by the removal of all anchors, as by a
    /// sweep.
    sweeps_next: AtomicBool,
    /// If `true`, the store has no room for more conjunctions of the object 1, and each plan is
    /// written alone.
    is_pair_full: AtomicBool,
}

#[derive(Debug, Default)]
struct OtherWriter {
    /// The remaining number of times that the other writer writes first.
    left: u32,
    /// The number of times that the other writer has written first since the last call of
    /// `contend`.
    done: u32,
    /// The total number of times that the other writer has written first.
    writes: u128,
    /// `true` if the other writer does the same request, as if the caller had sent it to both
    /// writers.
    does_the_same: bool,
}

impl Contended {
    fn contend(&self, times: u32, does_the_same: bool) {
        let mut other = self.other.lock().expect("nobody panics with it");
        *other = OtherWriter {
            left: times,
            done: 0,
            does_the_same,
            ..*other
        };
    }

    fn check_reachable(&self) -> Result<(), StoreError> {
        match self.is_lost.load(Ordering::Relaxed) {
            true => Err(Obstacle::of_kind(FailureKind::Unreachable).into()),
            false => Ok(()),
        }
    }

    fn times(&self) -> u32 {
        self.other.lock().expect("nobody panics with it").done
    }
}

impl OtherWriter {
    /// Writes a record that makes `plan` stale.
    fn come_before(&mut self, records: &RecordTables, plan: &RecordPlan) {
        self.left -= 1;
        self.done += 1;
        self.writes += 1;
        let written = match plan {
            RecordPlan::Append(plan) => RecordPlan::Append(match self.does_the_same {
                true => plan.clone(),
                false => self.another_append(plan),
            }),
            RecordPlan::Anchor(AnchorPlan {
                format,
                pair,
                anchor,
                ..
            }) => {
                // Two reports half a second apart belong to one conjunction. The report that is
                // stored first becomes the anchor, and the other report joins it.
                let tca = Tca(anchor.tca.0 + 500_000);
                let near = records
                    .neighbours(format, &mut std::iter::once((*pair, tca)))
                    .expect("memory");
                let anchor = Anchor::create(tca, &near[0]);
                RecordPlan::Anchor(AnchorPlan::of_report(format, *pair, anchor))
            }
            RecordPlan::Number(plan) => match self.does_the_same {
                true => RecordPlan::Number(plan.clone()),
                false => given_plan(
                    &plan.given.series,
                    2,
                    &format!("other {}", self.writes),
                    plan.before,
                ),
            },
            RecordPlan::Void(plan) => RecordPlan::Void(plan.clone()),
            RecordPlan::Close(plan) => RecordPlan::Close(plan.clone()),
        };
        records
            .write(&[written])
            .expect("nobody comes before the other writer");
    }

    /// Returns an append to the same ledger by the other writer.
    fn another_append(&self, plan: &AppendPlan) -> AppendPlan {
        let key = OTHERS + self.writes;
        match plan.before {
            Some(head) => self::plan(&append(plan.ledger(), &["other"], key), Some(head), NOW),
            None => AppendPlan {
                mark: plan.mark.map(|mark| RequestMark {
                    key: KeyHash(key),
                    ..mark
                }),
                ..plan.clone()
            },
        }
    }
}

const FULL: Obstacle = Obstacle::new(FailureKind::Full, "the row is full");

/// The first key that the other writer uses.
const OTHERS: u128 = 1 << 100;

impl RecordStore for Contended {
    fn fitting(&self, plans: &[RecordPlan]) -> usize {
        match self.is_pair_full.load(Ordering::Relaxed) {
            true => plans.len().min(1),
            false => plans.len(),
        }
    }

    fn write(&self, plans: &[RecordPlan]) -> Result<(), WriteError> {
        let is_full = self.is_pair_full.load(Ordering::Relaxed);
        if let [RecordPlan::Anchor(plan)] = plans
            && is_full
            && plan.pair.primary == 1
        {
            return Err(WriteError::TooLong(FULL.into()));
        }
        let mut other = self.other.lock().expect("nobody panics with it");
        let comes_before = other.left > 0 && !plans.is_empty();
        if comes_before {
            other.come_before(&self.records, &plans[0]);
        }
        let written = self.records.write(plans);
        assert_eq!(
            comes_before,
            matches!(written, Err(WriteError::Stale)),
            "stale means that somebody was faster"
        );
        written
    }

    fn back_up(&self, folder: &Path) -> Result<BackedUp, StoreError> {
        self.records.back_up(folder)
    }

    fn obstacle(&self) -> Option<Obstacle> {
        None
    }

    fn reopen(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl LedgerStore for Contended {
    fn head(&self, ledger: LedgerId) -> Result<Option<Head>, StoreError> {
        self.records.head(ledger)
    }

    fn ledger(&self, ledger: LedgerId) -> Result<Option<LedgerSummary>, StoreError> {
        self.check_reachable()?;
        self.records.ledger(ledger)
    }

    fn ledgers(
        &self,
        after: Option<LedgerId>,
        count_max: usize,
    ) -> Result<Vec<LedgerSummary>, StoreError> {
        self.records.ledgers(after, count_max)
    }

    fn chain(
        &self,
        ledger: LedgerId,
        after: Option<EventId>,
        count_max: usize,
    ) -> Result<Vec<Link>, StoreError> {
        self.records.chain(ledger, after, count_max)
    }

    fn link(&self, id: EventId) -> Result<Option<Link>, StoreError> {
        self.records.link(id)
    }

    fn append(&self, last: EventId) -> Result<Option<(StoredAppend, Vec<Link>)>, StoreError> {
        self.records.append(last)
    }
}

impl RequestStore for Contended {
    fn requests(&self, keys: &[KeyHash]) -> Result<Vec<Option<DoneRequest>>, StoreError> {
        self.records.requests(keys)
    }

    fn forget_requests(&self, since: EventTime, count_max: usize) -> Result<bool, StoreError> {
        self.records.forget_requests(since, count_max)
    }

    fn request_days(&self) -> Result<Vec<WrittenDay>, StoreError> {
        self.records.request_days()
    }
}

impl ConjunctionStore for Contended {
    fn anchors(
        &self,
        after: Option<&AnchorKey>,
        count_max: usize,
    ) -> Result<Vec<CountedAnchor>, StoreError> {
        self.records.anchors(after, count_max)
    }

    fn forget_anchors(&self, old: &[CountedAnchor]) -> Result<(), StoreError> {
        self.records.forget_anchors(old)
    }

    fn anchors_within(
        &self,
        format: &str,
        spans: &mut dyn Iterator<Item = (Pair, RangeInclusive<Tca>)>,
    ) -> Result<Vec<Vec<Anchor>>, StoreError> {
        let within = self.records.anchors_within(format, spans);
        if self.sweeps_next.swap(false, Ordering::Relaxed) {
            // Repeat, because the writer may count a report at the same time.
            loop {
                let all = self.records.anchors(None, usize::MAX)?;
                if all.is_empty() {
                    break;
                }
                self.records.forget_anchors(&all)?;
            }
        }
        within
    }

    fn conjunctions(
        &self,
        range: &ListRange,
        count_max: usize,
    ) -> Result<Vec<StoredConjunction>, StoreError> {
        self.records.conjunctions(range, count_max)
    }

    fn add_reports(&self, report_counts: &[(AnchorKey, ReportCount)]) -> Result<(), StoreError> {
        self.records.add_reports(report_counts)
    }

    fn add_externals(&self, externals: &[(AnchorKey, ExternalId)]) -> Result<(), StoreError> {
        self.records.add_externals(externals)
    }

    fn externals(&self, anchors: &[AnchorKey]) -> Result<Vec<Vec<ExternalId>>, StoreError> {
        self.records.externals(anchors)
    }

    fn anchors_of_external(
        &self,
        format: &str,
        external: &ExternalId,
        count_max: usize,
    ) -> Result<Vec<AnchorKey>, StoreError> {
        self.records
            .anchors_of_external(format, external, count_max)
    }
}

impl NumberStore for Contended {
    fn is_held(&self, series: &SeriesName) -> Result<bool, StoreError> {
        self.records.is_held(series)
    }

    fn end_hold(&self, series: Option<&SeriesName>) -> Result<(), StoreError> {
        self.check_reachable()?;
        self.records.end_hold(series)
    }

    fn kinds(&self) -> Result<Option<NumberKinds>, StoreError> {
        self.records.kinds()
    }

    fn keep_kinds(&self, kinds: &NumberKinds) -> Result<(), StoreError> {
        self.records.keep_kinds(kinds)
    }

    fn templates(&self) -> Result<TemplateHistory, StoreError> {
        self.records.templates()
    }

    fn keep_templates(
        &self,
        before: &TemplateHistory,
        history: &TemplateHistory,
    ) -> Result<bool, StoreError> {
        self.records.keep_templates(before, history)
    }

    fn series_state(&self, series: &SeriesName) -> Result<SeriesState, StoreError> {
        self.records.series_state(series)
    }

    fn forms(
        &self,
        series: &SeriesName,
        numbers: RangeInclusive<u64>,
    ) -> Result<Vec<FormChange>, StoreError> {
        self.records.forms(series, numbers)
    }

    fn series(
        &self,
        after: Option<&SeriesName>,
        count_max: usize,
    ) -> Result<Vec<SeriesSummary>, StoreError> {
        self.records.series(after, count_max)
    }

    fn given(
        &self,
        series: &SeriesName,
        from: u64,
        count_max: usize,
    ) -> Result<Vec<GivenNumbers>, StoreError> {
        self.records.given(series, from, count_max)
    }

    fn given_to(
        &self,
        keys: &[(SeriesName, KeyHash)],
    ) -> Result<Vec<Option<GivenNumbers>>, StoreError> {
        self.records.given_to(keys)
    }

    fn voids(
        &self,
        series: &SeriesName,
        numbers: RangeInclusive<u64>,
    ) -> Result<Vec<VoidedNumber>, StoreError> {
        self.records.voids(series, numbers)
    }
}

/// A writer on contended records that processes a round when the test says so.
struct Bench {
    records: Arc<Contended>,
    hand: ManualClock,
    writer: RecordWriter,
    jobs: Sender<AnyJob>,
}

impl Bench {
    fn new() -> Bench {
        let records = Arc::new(Contended {
            records: crate::samples::memory_tables().expect("memory suffices"),
            other: Mutex::default(),
            is_lost: AtomicBool::default(),
            sweeps_next: AtomicBool::default(),
            is_pair_full: AtomicBool::default(),
        });
        let hand = ManualClock::at(UnixNanos::new(NOW * 1_000));
        let (jobs, waiting) = mpsc::channel();
        let shared = Arc::clone(&records) as Records;
        let writer = RecordWriter::new(
            shared,
            Arc::new(hand.clock()),
            waiting,
            None,
            Arc::default(),
        );
        Bench {
            records,
            hand,
            writer,
            jobs,
        }
    }

    /// Returns a bench with a ledger that has one event.
    fn with_ledger() -> (Bench, LedgerId) {
        let mut bench = Bench::new();
        let genesis = bench
            .do_alone(create("genesis", 1))
            .expect("nobody comes before");
        (bench, genesis.links[0].id.ledger())
    }

    fn send(&self, request: LedgerRequest) -> Answer<Result<Appended, RecordError>> {
        let (caller, answer) = oneshot::channel();
        self.jobs
            .send(job(request, caller))
            .expect("the writer lives");
        answer
    }

    fn give(&mut self, request: NumberRequest) -> Result<Numbered<GivenNumbers>, RecordError> {
        let (caller, mut answer) = oneshot::channel();
        self.jobs
            .send(job(request, caller))
            .expect("the writer lives");
        self.serve();
        answer.try_recv().expect("it was replied to")
    }

    fn send_reports(&self, request: GroupRequest) -> Answer<Result<Vec<Grouped>, RecordError>> {
        let (caller, answer) = oneshot::channel();
        self.jobs
            .send(job(Arc::new(request), caller))
            .expect("the writer lives");
        answer
    }

    /// Processes the queued requests in one round.
    fn serve(&mut self) {
        let first = self.writer.waiting.recv().expect("something was sent");
        self.writer.serve(first).expect("memory does not fail");
    }

    fn do_alone(&mut self, request: LedgerRequest) -> Result<Appended, RecordError> {
        let mut answer = self.send(request);
        self.serve();
        answer.try_recv().expect("it was replied to")
    }

    fn chain(&self, ledger: LedgerId) -> Vec<Link> {
        self.records.chain(ledger, None, 1_000).expect("memory")
    }

    /// Returns the number of times that each request is stored, by key.
    fn stored(&self) -> BTreeMap<u128, u32> {
        let mut stored = BTreeMap::new();
        for ledger in self.records.ledgers(None, usize::MAX).expect("memory") {
            for link in self.chain(ledger.head.id.ledger()) {
                let append = self.records.append(link.id).expect("memory");
                let mark = append.and_then(|(append, _)| append.mark);
                mark.into_iter()
                    .for_each(|mark| *stored.entry(mark.key.0).or_insert(0) += 1);
            }
        }
        stored
    }
}

#[test]
fn a_store_that_is_lost_after_a_commit_leaves_the_outcome_unknown() {
    let (Bench { records, hand, .. }, runtime) = (Bench::new(), runtime());
    let shared = Arc::clone(&records) as Records;
    let writer = RecordWriterHandle::start(shared, Arc::new(hand.clock()), None);
    let created = runtime
        .block_on(writer.append(create("genesis", 1)))
        .expect("nobody comes before");
    let ledger = created.links[0].id.ledger();
    let summary = runtime.block_on(writer.read_appended(ledger));
    assert_eq!(
        summary.map(|summary| summary.map(|summary| summary.genesis)),
        Ok(Some(created.links[0].id))
    );

    records.is_lost.store(true, Ordering::Relaxed);
    let summary = runtime.block_on(writer.read_appended(ledger));
    assert_eq!(summary, Err(RecordError::Unknown));
    let resumed = runtime.block_on(writer.resume(ResumeRequest {
        series: series("acme"),
        from: 1,
        bounds: NumberBounds::default(),
        by: None,
        form: None,
    }));
    assert_eq!(resumed, Err(RecordError::Unknown));
}

#[test]
fn a_report_whose_conjunction_is_removed_before_it_is_counted_begins_a_new_one() {
    for (is_swept, micros) in [(false, 1_000), (true, 1_000), (true, 0)] {
        let (Bench { records, hand, .. }, runtime) = (Bench::new(), runtime());
        let shared = Arc::clone(&records) as Records;
        let retention = Some(Duration::from_secs(1));
        let writer = RecordWriterHandle::start(shared, Arc::new(hand.clock()), retention);
        let group = |micros| {
            let grouped = runtime.block_on(writer.group(reports(&[micros], 1, 2)));
            grouped.expect("memory")[0]
        };
        let first = group(0);
        records.sweeps_next.store(is_swept, Ordering::Relaxed);
        let late = group(micros);
        assert_eq!(late.created, Some(is_swept));
        let is_first = !is_swept || micros == 0;
        assert_eq!(late.anchor == first.anchor, is_first);
        assert_eq!(group(2_000).anchor, late.anchor);
        let written = writer
            .report_counts()
            .write(|counts| records.add_reports(counts));
        written.expect("memory");
        let anchors = records.anchors(None, 10).expect("memory");
        let [anchor] = &anchors[..] else {
            panic!("one conjunction: {anchors:?}")
        };
        let count = anchor.report_count.map(|counted| counted.count);
        assert_eq!(count, Some(if is_swept { 2 } else { 3 }));
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

#[test]
fn numbers_are_decided_on_again_until_nobody_is_faster() {
    let (name, mut bench) = (series("acme"), Bench::new());
    for (at, times) in [1, 2, DECISIONS_MAX - 1].into_iter().enumerate() {
        let last = bench.records.series_head(&name).expect("memory");
        bench.records.contend(times, false);
        let given = bench
            .give(number_request(&name, 1, &at.to_string()))
            .expect("nobody is faster in the end");
        assert_eq!(bench.records.times(), times);
        // The other writer takes two numbers each time.
        let before = last.map_or(0, |head| head.last) + 2 * u64::from(times);
        assert_eq!((given.is_replayed, given.stored.first), (false, before + 1));
        let again = bench
            .give(number_request(&name, 1, &at.to_string()))
            .expect("is known");
        assert_eq!((again.is_replayed, again.stored), (true, given.stored));
    }
    // The caller sends these requests to both writers.
    bench.records.contend(1, true);
    let same = bench
        .give(number_request(&name, 1, "same"))
        .expect("it is known by now");
    assert!(same.is_replayed);
    bench.records.contend(1, true);
    let (caller, mut answer) = oneshot::channel();
    bench
        .jobs
        .send(job(void_request(&name, 1, "cancelled"), caller))
        .expect("the writer lives");
    bench.serve();
    let void = answer
        .try_recv()
        .expect("it was replied to")
        .expect("it was given");
    assert!(
        void.is_replayed,
        "another writer made it void for the same reason"
    );
}

#[test]
fn an_append_is_decided_on_again_until_nobody_is_faster() {
    for times in [1, 2, DECISIONS_MAX - 1] {
        let (mut bench, ledger) = Bench::with_ledger();
        bench.records.contend(times, false);
        let appended = bench
            .do_alone(append(ledger, &["a", "b"], 2))
            .expect("nobody is faster in the end");
        assert_eq!(bench.records.times(), times);
        let chain = bench.chain(ledger);
        let before = usize::try_from(times).expect("small") + 1;
        assert_eq!(
            chain[before..],
            appended.links,
            "behind the genesis and the events of the other writer"
        );
        assert_eq!(chain.len(), before + 2);
        assert_eq!(bench.stored().get(&2), Some(&1));
        let again = bench
            .do_alone(append(ledger, &["a", "b"], 2))
            .expect("is known");
        assert_eq!((again.is_replayed, again.links), (true, appended.links));
    }
}

#[test]
fn after_too_many_decisions_nothing_is_stored_and_the_caller_may_ask_again() {
    let (mut bench, ledger) = Bench::with_ledger();
    bench.records.contend(DECISIONS_MAX + 3, false);
    let mut refused = bench.send(append(ledger, &["a"], 2));
    let mut grouped = bench.send_reports(reports(&[0], 1, 2));
    let mut replayed = bench.send(create("genesis", 1));
    bench.serve();
    assert_eq!(refused.try_recv().expect("a reply"), Err(OVERTAKEN.into()));
    assert_eq!(grouped.try_recv().expect("a reply"), Err(OVERTAKEN.into()));
    let replayed = replayed.try_recv().expect("a reply");
    assert!(replayed.expect("it needs no write").is_replayed);
    assert_eq!(
        bench.records.times(),
        DECISIONS_MAX,
        "not one decision more"
    );
    assert_eq!(bench.stored().get(&2), None);
    assert_eq!(
        bench.chain(ledger).len(),
        1 + usize::try_from(DECISIONS_MAX).expect("small")
    );

    bench.records.contend(0, false);
    let again = bench
        .do_alone(append(ledger, &["a"], 2))
        .expect("nobody is faster");
    assert!(!again.is_replayed);
    assert_eq!(bench.chain(ledger).last(), again.links.first());
    assert_eq!(bench.stored().get(&2), Some(&1));
}

#[test]
fn what_rests_on_no_plan_is_told_whoever_is_faster() {
    let (mut bench, ledger) = Bench::with_ledger();
    let first = bench
        .do_alone(append(ledger, &["a"], 2))
        .expect("nobody is faster");
    bench.records.contend(DECISIONS_MAX, false);
    let mut replayed = bench.send(append(ledger, &["a"], 2));
    let unknown = LedgerId::from_bits(ledger.bits() ^ 4).expect("version 00");
    let mut unknown_ledger = bench.send(append(unknown, &["a"], 3));
    let mut refused = bench.send(append(ledger, &["b"], 4));
    bench.serve();
    assert_eq!(
        replayed
            .try_recv()
            .expect("a reply")
            .expect("is stored")
            .links,
        first.links
    );
    let refusal = RecordError::Append(AppendRefusal::UnknownLedger(unknown));
    assert_eq!(unknown_ledger.try_recv().expect("a reply"), Err(refusal));
    assert_eq!(refused.try_recv().expect("a reply"), Err(OVERTAKEN.into()));
}

#[test]
fn a_request_that_the_other_writer_has_done_is_replayed_and_not_done_twice() {
    let (mut bench, ledger) = Bench::with_ledger();
    bench.records.contend(1, true);
    let appended = bench
        .do_alone(append(ledger, &["a", "b"], 2))
        .expect("it is done");
    assert!(appended.is_replayed, "by the other writer");
    assert_eq!(bench.chain(ledger)[1..], appended.links);
    assert_eq!(bench.stored().get(&2), Some(&1));

    bench.records.contend(1, true);
    bench.hand.advance(Duration::from_secs(1));
    let created = bench.do_alone(create("another", 3)).expect("it is done");
    assert!(created.is_replayed);
    assert_eq!(bench.chain(created.links[0].id.ledger()), created.links);
}

#[test]
fn what_a_caller_expects_is_asked_of_the_newer_state() {
    let (mut bench, ledger) = Bench::with_ledger();
    let genesis = bench.chain(ledger)[0].id;
    let LedgerRequest::Append {
        ledger,
        events,
        mark,
        ..
    } = append(ledger, &["a"], 2)
    else {
        panic!("an append")
    };
    bench.records.contend(1, false);
    let order = LedgerRequest::Append {
        ledger,
        events,
        mark,
        expected_previous: Some(genesis),
        import: None,
    };
    let refused = bench.do_alone(order).expect_err("the head has moved");
    let head = bench
        .records
        .head(ledger)
        .expect("memory")
        .expect("is there");
    assert_eq!(
        refused,
        RecordError::Append(AppendRefusal::HeadMoved {
            expected: genesis,
            head
        })
    );
    assert_eq!(bench.stored().get(&2), None);
}

#[test]
fn a_ledger_whose_id_another_writer_takes_begins_a_microsecond_later() {
    let mut bench = Bench::new();
    bench.records.contend(3, false);
    let created = bench
        .do_alone(create("genesis", 1))
        .expect("nobody is faster in the end");
    assert_eq!(created.links[0].id.timestamp(), at(NOW + 3));
    assert_eq!(bench.records.ledgers(None, 9).expect("memory").len(), 4);
    assert_eq!(bench.stored().get(&1), Some(&1));
}

#[test]
fn reports_join_the_anchor_of_whoever_was_faster() {
    let mut bench = Bench::new();
    bench.records.contend(1, false);
    let mut answer = bench.send_reports(reports(&[0, 100_000], 1, 2));
    bench.serve();
    let grouped = answer.try_recv().expect("a reply").expect("is grouped");
    let told: Vec<_> = grouped
        .iter()
        .map(|one| (one.created, one.delta_us))
        .collect();
    assert_eq!(told, [(Some(false), -500_000), (Some(false), -400_000)]);
    let order = reports(&[0], 1, 2);
    let stored = bench
        .records
        .neighbours(order.format(), &mut order.keys())
        .expect("memory");
    assert_eq!(stored[0].len(), 1, "one anchor for one conjunction");
    assert_eq!(grouped[0].anchor, stored[0][0].tca);
}

#[test]
fn a_report_for_a_full_pair_is_refused_and_other_requests_of_the_round_are_done() {
    let (mut bench, ledger) = Bench::with_ledger();
    bench.records.is_pair_full.store(true, Ordering::Relaxed);
    let objects = [(2, 3), (1, 2), (3, 4), (1, 3), (4, 5)];
    let mut answers =
        objects.map(|(primary, other)| bench.send_reports(reports(&[0], primary, other)));
    let mut appended = bench.send(append(ledger, &["a"], 2));
    bench.serve();
    for ((primary, _), answer) in objects.into_iter().zip(&mut answers) {
        let grouped = answer.try_recv().expect("a reply");
        match primary {
            1 => assert_eq!(grouped, Err(FULL.into())),
            _ => assert_eq!(grouped.expect("it fits")[0].created, Some(true)),
        }
    }
    assert!(appended.try_recv().expect("a reply").is_ok());
    assert_eq!(bench.records.anchors(None, 9).expect("memory").len(), 3);
}

#[test]
fn whatever_is_sent_and_whoever_is_faster_every_reply_is_what_is_stored() {
    let (mut appended, mut refused, mut replayed) = (0, 0, 0);
    for seed in 0..60 {
        let random = &mut StdRng::seed_from_u64(seed);
        let (mut bench, ledger) = Bench::with_ledger();
        let mut told: BTreeMap<u128, Vec<Link>> = BTreeMap::new();
        for round in 0..6 {
            bench
                .hand
                .advance(Duration::from_micros(random.random_range(0..5_000)));
            let times = [0, 0, 1, 1, 2, 3, 3, DECISIONS_MAX][random.random_range(0..8)];
            bench.records.contend(times, random.random());
            let keys: Vec<u128> = (0..random.random_range(1..5))
                .map(|_| 2 + random.random_range(0..12))
                .collect();
            let sent: Vec<_> = keys
                .iter()
                .map(|key| bench.send(append(ledger, &["a", "b"], *key)))
                .collect();
            bench.serve();
            for (key, mut answer) in keys.into_iter().zip(sent) {
                match answer.try_recv().expect("a reply") {
                    Ok(done) => {
                        if done.is_replayed {
                            replayed += 1
                        } else {
                            appended += 1
                        }
                        let first = told.entry(key).or_insert_with(|| done.links.clone());
                        assert_eq!(*first, done.links, "seed {seed}, round {round}, key {key}");
                    }
                    Err(RecordError::Unavailable(_)) => refused += 1,
                    Err(other) => panic!("seed {seed}, round {round}, key {key}: {other}"),
                }
            }
        }
        let (chain, stored) = (bench.chain(ledger), bench.stored());
        assert!(
            stored.values().all(|times| *times == 1),
            "seed {seed}: {stored:?}"
        );
        for (key, links) in &told {
            assert!(
                stored.contains_key(key) && links.iter().all(|link| chain.contains(link)),
                "seed {seed}: {key}"
            );
        }
        for (place, (before, link)) in (2..).zip(chain.iter().zip(&chain[1..])) {
            assert_eq!(
                (link.place, link.previous),
                (place, before.id),
                "seed {seed}: one chain"
            );
        }
    }
    assert!(
        appended > 100 && refused > 20 && replayed > 100,
        "{appended} {refused} {replayed}"
    );
}

#[test]
fn pauses_grow_and_end_long_before_a_caller_gives_up() {
    for decisions in 1..=DECISIONS_MAX {
        let longest = Duration::from_millis(1 << decisions).min(PAUSE_MAX);
        assert!(
            (0..100).all(|_| pause_after(decisions) <= longest),
            "after {decisions}"
        );
        assert!(
            (0..100).any(|_| !pause_after(decisions).is_zero()),
            "after {decisions}"
        );
    }
    assert!(PAUSE_MAX * DECISIONS_MAX < Duration::from_secs(1));
}
