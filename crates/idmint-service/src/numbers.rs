//! Series of numbers. This module issues numbers without gaps or in blocks, voids numbers, closes
//! series, and lists series and their numbers.
//!
//! In a series without gaps, a number is durable before the response is sent. In a series with
//! blocks, a block of numbers is first reserved in the store, and its numbers are then issued from
//! memory. Each reservation is a normal request to the store with a new random idempotency key. The
//! store therefore always issues new numbers, so two processes never reserve the same ones. If the
//! process or its minting session ends, the unused numbers become a gap.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use rand::TryRng;
use rand::rngs::SysRng;

use crate::error::ServiceError;
use crate::ledgers::{ListPage, PAGE_LEN, page, unavailable};
use crate::service::Service;
use idmint_core::minting::Session;
use idmint_records::ledger::{
    CloseRequest, ClosedSeries, FormChange, GivenNumbers, NumberBounds, NumberForm, NumberKind,
    NumberRefusal, NumberRequest, NumberRules, ResumeRequest, SeriesName, SeriesPattern,
    VoidRequest, VoidedNumber,
};
use idmint_storage::{
    NumberRecord, Numbered, RecordError, RecordWriterHandle, SeriesState, SeriesSummary,
};

impl Service {
    /// Returns the rules for series: how their numbers are written, and the lowest and highest
    /// numbers.
    pub fn number_rules(&self) -> &NumberRules {
        self.decoding().number_rules()
    }

    /// Returns the form in which a number of a series is written as text. `stored` is the form that
    /// was stored with the number. It is `None` if the number was issued by an earlier version of
    /// the service, which stored no forms.
    pub fn number_form(&self, series: &SeriesName, stored: Option<&NumberForm>) -> NumberForm {
        let rules = self.number_rules();
        let first = match rules.kind(series) {
            NumberKind::Gapless => self.first_templates.get(),
            NumberKind::Blocks { .. } => None,
        };
        let by_rules = || match first {
            Some(first) => first.form(series),
            None => rules.form(series),
        };
        stored.cloned().unwrap_or_else(by_rules)
    }

    /// Issues the next numbers of a series without gaps. The numbers are durable when this method
    /// returns.
    ///
    /// # Errors
    /// Returns [`ServiceError`] if no numbers were issued, or if the outcome is unknown.
    pub async fn give_numbers(
        &self,
        request: NumberRequest,
    ) -> Result<Numbered<GivenNumbers>, ServiceError> {
        let writer = self.writer()?;
        let outcome = writer.give(request).await;
        self.counters().count_numbers(&outcome);
        Ok(outcome?)
    }

    /// Issues `count` consecutive numbers of a series that reserves its numbers in blocks. Returns
    /// the first number.
    ///
    /// If the process ends, at most `reserve` numbers are lost, or `count` numbers if `count` is
    /// larger. This bound includes the numbers of this request if the process ends before the
    /// response arrives. Numbers contain no time, so the request waits neither for the clock nor
    /// for a slot. Without a minting session, exactly `count` numbers are reserved.
    ///
    /// # Errors
    /// Returns [`ServiceError`] if no numbers were issued.
    pub async fn give_block(
        &self,
        series: &SeriesName,
        count: NonZeroU32,
        reserve: NonZeroU32,
    ) -> Result<u64, ServiceError> {
        let writer = self.writer()?;
        writer.can_issue_numbers()?;
        let session = self.session().ok();
        let bounds = self.number_rules().bounds(series);
        let outcome = self
            .blocks
            .take(
                Reservation {
                    writer,
                    series,
                    bounds,
                    count,
                    reserve,
                },
                session,
            )
            .await;
        self.counters().count_block(count, &outcome);
        Ok(outcome?)
    }

    /// Resumes a series that is held after a restore from a backup. A held series issues no
    /// numbers. Returns the numbers that were skipped, or `None` if no number was skipped. The
    /// change is durable when this method returns.
    ///
    /// # Errors
    /// Returns [`ServiceError`] if the series may not have been resumed. The call may be repeated.
    pub async fn resume_series(
        &self,
        request: ResumeRequest,
    ) -> Result<Option<GivenNumbers>, ServiceError> {
        let writer = self.writer()?;
        Ok(writer.resume(request).await?)
    }

    /// Resumes all series that are held after a restore from a backup. A held series issues no
    /// numbers. Each series continues after its last stored number. The change is durable when this
    /// method returns.
    ///
    /// # Errors
    /// Returns [`ServiceError`] if some series may not have been resumed. The call may be repeated.
    pub async fn resume_all_series(&self) -> Result<(), ServiceError> {
        let writer = self.writer()?;
        Ok(writer.end_hold(None).await?)
    }

    /// Voids a number, which marks it as used but invalid. The change is durable when this method
    /// returns.
    ///
    /// # Errors
    /// Returns [`ServiceError`] if the number was not voided, or if the outcome is unknown.
    pub async fn make_void(
        &self,
        request: VoidRequest,
    ) -> Result<Numbered<VoidedNumber>, ServiceError> {
        let writer = self.writer()?;
        let outcome = writer.make_void(request).await;
        self.counters().count_void(&outcome);
        Ok(outcome?)
    }

    /// Closes a series, which then issues no more numbers. This process drops the series' numbers
    /// that it reserved and did not issue. In a fleet, another node may still issue the rest of a
    /// block that it reserved before. The change is durable when this method returns.
    ///
    /// # Errors
    /// Returns [`ServiceError`] if the series was not closed, or if the outcome is unknown.
    pub async fn close_series(
        &self,
        request: CloseRequest,
    ) -> Result<Numbered<ClosedSeries>, ServiceError> {
        let writer = self.writer()?;
        let series = request.series.clone();
        let outcome = writer.close(request).await;
        self.counters().count_close(&outcome);
        self.blocks.forget_closed(&series, &outcome).await;
        Ok(outcome?)
    }

    /// Returns a page of at most `limit` series whose names come after the name `after`. If `among`
    /// is given, only series that match one of these patterns are listed.
    ///
    /// # Errors
    /// Returns [`ServiceError`] if the records cannot be read.
    pub fn series(
        &self,
        among: Option<&[SeriesPattern]>,
        after: Option<SeriesName>,
        limit: usize,
    ) -> Result<ListPage<SeriesSummary>, ServiceError> {
        let records = self.records()?;
        let is_among = |summary: &SeriesSummary| {
            among.is_none_or(|among| {
                among
                    .iter()
                    .any(|pattern| pattern.matches(summary.series.as_str()))
            })
        };
        // If the patterns `among` are given, read whole pages even if `limit` is small. Most series
        // may not match a pattern, so a small read would find few matches or none.
        let count_max = among.map_or(limit, |_| PAGE_LEN) + 1;
        let (mut found, mut behind) = (Vec::new(), after);
        loop {
            match next_start(among, behind) {
                Some(start) => behind = start,
                None => return Ok(page(found, limit)),
            }
            let more = records
                .series(behind.as_ref(), count_max)
                .map_err(unavailable)?;
            let is_last = more.len() < count_max;
            behind = more.last().map(|summary| summary.series.clone());
            found.extend(more.into_iter().filter(is_among));
            if is_last || found.len() > limit {
                return Ok(page(found, limit));
            }
        }
    }

    /// Returns a page of at most `limit` numbers of a series, all above `after`. In a series that
    /// issues numbers in blocks, each reserved block is one entry. The entry begins with the first
    /// number of the block that is above `after`.
    ///
    /// # Errors
    /// Returns [`ServiceError::UnknownSeries`] if no series has this name, and other errors if the
    /// records cannot be read.
    pub fn numbers(
        &self,
        series: &SeriesName,
        after: Option<u64>,
        limit: usize,
    ) -> Result<NumberPage, ServiceError> {
        let records = self.records()?;
        let SeriesState { head, closed } = records.series_state(series).map_err(unavailable)?;
        if head.is_none() && closed.is_none() {
            return Err(ServiceError::UnknownSeries(series.clone()));
        }
        let last = head.map_or(0, |head| head.last);
        let from = after.map_or(0, |after| after.saturating_add(1));
        let given = records
            .given(series, from, limit + 1)
            .map_err(unavailable)?;
        let is_block = matches!(self.number_rules().kind(series), NumberKind::Blocks { .. });
        let of_given = |given: &GivenNumbers| {
            let (given, first) = (given.clone(), from.max(given.first));
            let last = if is_block { first } else { given.last };
            (first..=last).map(move |number| (number, given.clone()))
        };
        let found: Vec<_> = given.iter().flat_map(of_given).take(limit + 1).collect();
        let to = found.last().map_or(last, |(number, _)| *number);
        let forms = records
            .forms(series, from..=to.max(from))
            .map_err(unavailable)?;
        let mut voids = records
            .voids(series, from..=to.max(from))
            .map_err(unavailable)?
            .into_iter()
            .peekable();
        let listed = found.into_iter().map(|(number, given)| {
            let void = voids.next_if(|void| void.number == number);
            let void = void.or_else(|| given.skipped(number));
            NumberRecord {
                number,
                given,
                void,
            }
        });
        Ok(NumberPage {
            closed,
            forms,
            numbers: page(listed.collect(), limit),
        })
    }
}

/// A page of the numbers of a series.
#[derive(Debug)]
pub struct NumberPage {
    /// The time at which the series was closed, and the caller who closed it. `None` if the series
    /// is open.
    pub closed: Option<ClosedSeries>,
    /// The changes of the text form of numbers, such as a new prefix, that apply to the numbers on
    /// this page.
    pub forms: Vec<FormChange>,
    /// The numbers.
    pub numbers: ListPage<NumberRecord>,
}

/// The maximum number of series whose reserved numbers are kept in memory. A request for numbers of
/// any further series reserves exactly the numbers that it needs, so no reserved numbers are lost.
const SERIES_MAX: usize = 10_000;

/// The numbers of each series that this process has reserved but not issued yet.
#[derive(Debug, Default)]
pub(super) struct Blocks(Mutex<Reserves>);

/// The reserved numbers of one minting session.
#[derive(Debug, Default)]
struct Reserves {
    /// The minting session that reserved the numbers. A later session does not issue them, because
    /// this process may have left the fleet in between.
    session: Option<Arc<Session>>,
    of_series: HashMap<SeriesName, SharedReserve>,
}

/// The reserved but unused numbers of one series, shared by all callers of the series. The lock is
/// held while numbers are reserved, so one reservation serves all callers that wait for the lock.
type SharedReserve = Arc<tokio::sync::Mutex<Reserve>>;

/// The numbers of one series that are reserved but not issued yet.
#[derive(Debug, Default)]
struct Reserve {
    rest: Range<u64>,
}

impl Blocks {
    /// Takes consecutive numbers, and returns the first of them. If too few reserved numbers are
    /// left, reserves more numbers. If another process has reserved numbers of the series in the
    /// meantime, the new numbers do not follow the unused ones. The unused numbers are then lost.
    /// Without a session, or if [`SERIES_MAX`] other series have reserved numbers, reserves only as
    /// many numbers as the caller requests.
    ///
    /// # Errors
    /// Returns [`RecordError`] if no numbers were taken.
    async fn take(
        &self,
        reservation: Reservation<'_>,
        session: Option<Arc<Session>>,
    ) -> Result<u64, RecordError> {
        let shared = session.and_then(|session| self.of(reservation.series, session));
        let Some(shared) = shared else {
            let given = reservation
                .reserve(reservation.count.get().into(), 0)
                .await?;
            return Ok(given.start);
        };
        let mut reserve = shared.lock().await;
        if let Some(first) = reserve.take(reservation.count) {
            return Ok(first);
        }
        reserve.rest = reservation.more_than(reserve.rest.clone()).await?;
        Ok(reserve
            .take(reservation.count)
            .expect("so many were reserved"))
    }

    /// Drops the reserved but unused numbers of a series that was closed. Also drops them if the
    /// outcome is unknown, because the close may still be in the queue of the writer thread. The
    /// next request must then reserve new numbers, and the writer thread processes that reservation
    /// after the close. Waits for callers that are reserving numbers, because such a caller holds
    /// the lock until it has taken its own numbers.
    async fn forget_closed(
        &self,
        series: &SeriesName,
        outcome: &Result<Numbered<ClosedSeries>, RecordError>,
    ) {
        if !matches!(outcome, Ok(_) | Err(RecordError::Unknown)) {
            return;
        }
        let reserve = {
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.of_series.get(series).cloned()
        };
        if let Some(reserve) = reserve {
            reserve.lock().await.rest = 0..0;
        }
    }

    /// Returns the numbers of a series that are reserved in this minting session. Returns `None` if
    /// the series has no reserved numbers and [`SERIES_MAX`] other series already have some. The
    /// first call with a new session drops all numbers that were reserved in the previous session.
    fn of(&self, series: &SeriesName, session: Arc<Session>) -> Option<SharedReserve> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all
            .session
            .as_ref()
            .is_some_and(|of| Arc::ptr_eq(of, &session))
        {
            *all = Reserves {
                session: Some(session),
                of_series: HashMap::new(),
            };
        }
        if let Some(reserve) = all.of_series.get(series) {
            return Some(Arc::clone(reserve));
        }
        (all.of_series.len() < SERIES_MAX)
            .then(|| Arc::clone(all.of_series.entry(series.clone()).or_default()))
    }
}

/// Returns a random idempotency key for a request that reserves numbers. The random bytes come from
/// the kernel, so that a copy of the running process does not generate the same key.
fn random_key() -> String {
    let mut bytes = [0; 16];
    SysRng
        .try_fill_bytes(&mut bytes)
        .expect("the kernel has random numbers");
    format!("{:032x}", u128::from_be_bytes(bytes))
}

impl Reserve {
    /// Takes `count` consecutive numbers, and returns the first of them. Returns `None` if fewer
    /// than `count` numbers are left.
    fn take(&mut self, count: NonZeroU32) -> Option<u64> {
        let count = u64::from(count.get());
        let first = self.rest.start;
        (len(&self.rest) >= count).then(|| {
            self.rest.start += count;
            first
        })
    }
}

/// A caller's request for numbers of a series, with the data that is needed to reserve a further
/// block of numbers.
struct Reservation<'a> {
    /// The writer thread that makes reservations durable.
    writer: &'a RecordWriterHandle,
    /// The name of the series.
    series: &'a SeriesName,
    /// The lowest and the highest number that the series may issue.
    bounds: NumberBounds,
    /// The count of numbers that the caller requests.
    count: NonZeroU32,
    /// The count of numbers to reserve at once. If `count` is larger, `count` numbers are reserved.
    reserve: NonZeroU32,
}

impl Reservation<'_> {
    /// Reserves more numbers, and returns a range of at least `count` numbers. The range begins
    /// with the unused numbers in `rest`, unless another process reserved numbers of the series in
    /// between.
    async fn more_than(&self, rest: Range<u64>) -> Result<Range<u64>, RecordError> {
        let count = u64::from(self.count.get());
        let size = u64::from(self.reserve.max(self.count).get());
        let more = self.reserve(size - len(&rest), len(&rest)).await?;
        match more {
            more if more.start == rest.end => Ok(rest.start..more.end),
            more if len(&more) >= count => Ok(more),
            _ => self.reserve(size, 0).await,
        }
    }

    /// Reserves `size` numbers. If the series has fewer numbers left before its maximum, reserves
    /// all of them. `rest` is the count of numbers that are already reserved but unused. Returns an
    /// error if the left and the unused numbers together are too few for the request.
    async fn reserve(&self, size: u64, rest: u64) -> Result<Range<u64>, RecordError> {
        let left = match self.ask(size).await {
            Err(RecordError::Number(NumberRefusal::SeriesEnded { left, .. })) => left,
            asked => return asked,
        };
        let (series, max, count) = (self.series.clone(), self.bounds.max, self.count.get());
        match left {
            1.. if rest + left >= u64::from(count) => self.ask(left).await,
            _ => Err(RecordError::Number(NumberRefusal::SeriesEnded {
                series,
                max,
                left: rest + left,
                count,
            })),
        }
    }

    async fn ask(&self, count: u64) -> Result<Range<u64>, RecordError> {
        let count = u32::try_from(count)
            .ok()
            .and_then(NonZeroU32::new)
            .expect("some, and no more than are reserved");
        let key = random_key();
        let request = NumberRequest::new(self.series.clone(), count, self.bounds, &key, None);
        let given = self.writer.give(request).await?;
        assert!(
            !given.is_replayed,
            "a key of this reservation alone was given numbers before"
        );
        Ok(given.stored.first..given.stored.last + 1)
    }
}

fn len(numbers: &Range<u64>) -> u64 {
    numbers.end - numbers.start
}

/// Returns the cursor for the next read of a list of series. `behind` is the last name that was
/// listed. The cursor is `behind`, or a later name if no series in between can match a pattern in
/// `among`. Returns `None` if no series after `behind` can match.
fn next_start(
    among: Option<&[SeriesPattern]>,
    behind: Option<SeriesName>,
) -> Option<Option<SeriesName>> {
    let Some(among) = among else {
        return Some(behind);
    };
    let is_ahead =
        |pattern: &&SeriesPattern| !behind.as_ref().is_some_and(|name| pattern.ends_by(name));
    let start = among
        .iter()
        .filter(is_ahead)
        .map(SeriesPattern::name_before);
    start.min().map(|start| start.max(behind))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use idmint_core::minting::{Mint, MintSettings, SessionStart};
    use idmint_core::time::{ManualClock, UnixNanos};
    use idmint_storage::OwnEngine;
    use idmint_storage::samples::{ready, series};

    const NOON: UnixNanos = UnixNanos::from_seconds(1_900_000_000);

    /// Two processes that share one store, from which each of them reserves blocks of numbers.
    struct Bench {
        writer: RecordWriterHandle,
        mint: Mint,
        blocks: [Blocks; 2],
    }

    impl Bench {
        fn new() -> Bench {
            let store = ready(
                OwnEngine::Memory.open(0, None).expect("memory suffices"),
                NOON,
                &[],
            );
            let clock = Arc::new(ManualClock::at(NOON).clock());
            let writer = RecordWriterHandle::start(
                store.records().expect("it reads"),
                Arc::clone(&clock),
                None,
            );
            let wait_max = Duration::from_secs(3);
            let settings = MintSettings {
                wait_max,
                lead_max: Duration::ZERO,
                window: wait_max,
                shard: 0,
            };
            Bench {
                writer,
                mint: Mint::new(clock, settings),
                blocks: Default::default(),
            }
        }

        fn session(&self) -> Arc<Session> {
            self.mint.prepare(SessionStart::at(NOON))
        }

        async fn take(&self, process: usize, session: &Arc<Session>, count: u32) -> Range<u64> {
            self.take_of("rows", process, Some(session), count).await
        }

        async fn take_of(
            &self,
            name: &str,
            process: usize,
            session: Option<&Arc<Session>>,
            count: u32,
        ) -> Range<u64> {
            let taken = self.try_take_of(name, process, session, count).await;
            taken.expect("there is room")
        }

        async fn try_take_of(
            &self,
            name: &str,
            process: usize,
            session: Option<&Arc<Session>>,
            count: u32,
        ) -> Result<Range<u64>, RecordError> {
            let series = series(name);
            let number = |number| NonZeroU32::new(number).expect("some");
            let reservation = Reservation {
                writer: &self.writer,
                series: &series,
                bounds: NumberBounds::default(),
                count: number(count),
                reserve: number(10),
            };
            let first = self.blocks[process]
                .take(reservation, session.cloned())
                .await?;
            Ok(first..first + u64::from(count))
        }
    }

    #[tokio::test]
    async fn two_processes_have_blocks_of_their_own_and_lose_little_where_they_meet() {
        let (bench, mut taken, mut last) = (Bench::new(), std::collections::BTreeSet::new(), 0);
        let session = bench.session();
        for at in 0..600_u32 {
            let process = usize::from(at * 7919 % 13 < 6);
            for number in bench.take(process, &session, 1 + at * 31 % 9).await {
                assert!(taken.insert(number), "{number} was given before");
                last = last.max(number);
            }
        }
        let given = u64::try_from(taken.len()).expect("fits");
        println!("{given} numbers up to {last}");
        assert!(
            given > 2_000 && last > given,
            "both came between each other"
        );
        assert!(last < 3 * given, "{given} of {last}");
    }

    #[tokio::test]
    async fn what_was_reserved_in_another_session_is_a_gap() {
        let bench = Bench::new();
        let (one, other) = (bench.session(), bench.session());
        assert_eq!(bench.take(0, &one, 4).await, 1..5);
        assert_eq!(bench.take(0, &other, 1).await, 11..12);
        assert_eq!(bench.take(0, &other, 9).await, 12..21);
        assert_eq!(bench.take(1, &other, 1).await, 21..22);
        assert_eq!(bench.take(0, &other, 1).await, 31..32);
    }

    #[tokio::test]
    async fn a_series_that_was_possibly_closed_gives_no_reserved_number() {
        let bench = Bench::new();
        let (session, rows) = (bench.session(), series("rows"));
        assert_eq!(bench.take(0, &session, 4).await, 1..5);
        let busy = Err(RecordError::Busy);
        bench.blocks[0].forget_closed(&rows, &busy).await;
        assert_eq!(bench.take(0, &session, 1).await, 5..6, "it is open");
        // The writer closes the series, but its reply comes too late.
        let request = CloseRequest {
            series: rows.clone(),
            by: None,
        };
        let closed = bench.writer.close(request).await;
        assert!(closed.is_ok(), "{closed:?}");
        let unknown = Err(RecordError::Unknown);
        bench.blocks[0].forget_closed(&rows, &unknown).await;
        let refused = bench.try_take_of("rows", 0, Some(&session), 1).await;
        let is_closed = matches!(refused, Err(RecordError::Number(NumberRefusal::Closed(_))));
        assert!(is_closed, "{refused:?}");
    }

    #[tokio::test]
    async fn beyond_the_maximum_of_series_no_number_is_lost() {
        let bench = Bench::new();
        let session = bench.session();
        assert_eq!(bench.take(0, &session, 1).await, 1..2);
        for at in 1..SERIES_MAX {
            let name = series(&format!("rows-{at}"));
            bench.blocks[0]
                .of(&name, Arc::clone(&session))
                .expect("there is room");
        }
        for at in 0..3 {
            let name = format!("more-{at}");
            for first in [1, 5] {
                let given = bench.take_of(&name, 0, Some(&session), 4).await;
                assert_eq!(given, first..first + 4, "nothing is reserved in between");
            }
        }
        assert_eq!(bench.take(0, &session, 1).await, 2..3, "its reserve stays");
        // A new minting session drops the numbers that were reserved in the previous one. The limit
        // on series with reserved numbers then leaves room for another series.
        let other = bench.session();
        assert_eq!(bench.take_of("more-0", 0, Some(&other), 1).await, 9..10);
        assert_eq!(bench.take_of("more-0", 1, Some(&other), 1).await, 19..20);
    }

    #[tokio::test]
    async fn without_a_session_nothing_is_reserved_in_advance() {
        let bench = Bench::new();
        assert_eq!(bench.take_of("rows", 0, None, 3).await, 1..4);
        assert_eq!(bench.take_of("rows", 1, None, 1).await, 4..5);
        let session = bench.session();
        assert_eq!(bench.take(0, &session, 1).await, 5..6);
        assert_eq!(bench.take_of("rows", 0, None, 1).await, 15..16);
        assert_eq!(bench.take(0, &session, 1).await, 6..7, "its reserve stays");
    }

    #[test]
    fn a_confined_list_begins_at_its_pattern_and_ends_after_it() {
        let pattern = |text| SeriesPattern::from_text(text).expect("a pattern");
        let among = ["m", "k-*"].map(pattern);
        let start = |behind: Option<&str>| next_start(Some(&among), behind.map(series));
        let begin = start(None)
            .expect("two patterns")
            .expect("a name before k-");
        assert_eq!(begin, series("k"), "no name is between this one and k-");
        assert_eq!(start(Some("a")), Some(Some(begin)));
        assert_eq!(start(Some("k-7")), Some(Some(series("k-7"))));
        let next = start(Some("l"))
            .expect("m is ahead")
            .expect("a name before m");
        assert!(next > series("lzz") && next < series("m"));
        assert_eq!(start(Some("m")), None);
        assert_eq!(next_start(None, None), Some(None));
    }
}
