//! Mints ids in the caller's own process, without a service or a disk. See [`InProcess`] for the
//! guarantees, which are weaker than the guarantees of a service.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use crate::id::{FieldKind, Format, Rule};
use crate::minting::{
    BatchRequest, Denied, Durable, LaneCount, LaneRule, Lanes, Mint, MintSettings, Minter, Refusal,
    Session, SessionStart, StampLine, lead_ticks,
};
use crate::time::{Clock, READ_APART_MAX, Tick, UnixNanos, UnixTime, format_seconds};

/// The maximum time for which creating an [`InProcess`] waits for the first tick, and for which
/// [`InProcess::next`] waits for the next tick.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// The maximum lead, which is the time by which ids may be ahead of the clock. Zero selects the
/// smallest possible lead: one tick if ticks are shorter than 100 ms, and otherwise none.
const LEAD_MAX: Duration = Duration::ZERO;

/// The worker numbers that [`InProcess`] objects of this process use or have used. Each of them is
/// either in use or free.
static WORKERS: Mutex<BTreeMap<Worker, WorkerState>> = Mutex::new(BTreeMap::new());

/// The name of a format, and one of its worker numbers.
type Worker = (String, u32);

#[derive(Debug, Clone, Copy)]
enum WorkerState {
    /// An [`InProcess`] object is using the worker number.
    Held,
    /// No object is using the worker number. The times of all ids that were minted with this worker
    /// number are before `minted_below`.
    Free { minted_below: UnixNanos },
}

/// Mints one sequenced format in this process, with one worker number.
///
/// No id is minted twice within one process. This holds for any number of threads, for objects that
/// are created one after another, and if the clock is changed. While an object exists, creating a
/// second one with the same format name and worker number fails. Share the first object instead.
///
/// No state is stored on disk. To avoid duplicates between processes, the caller must ensure two
/// conditions:
///
/// * **No other process uses the worker number at the same time.** Two such processes would mint
///   the same ids. A forked process, or a copy of a running machine, counts as another process. An
///   idmint service with that worker number also counts, even if it runs inside this process.
/// * **The clock does not go back between one process and the next.** An object starts with a tick
///   that begins after the object was created. This tick is later than all ids of earlier
///   processes, unless their clock was ahead. If ticks are shorter than 100 ms, ids can be one tick
///   ahead of the clock, so the object starts one tick later. If the clock was set back, the object
///   reuses the ticks of an earlier process and can mint duplicates. The service prevents this with
///   a horizon on disk, which is the time up to which it may mint.
///
/// The time in ids is the wall clock when the object was created, plus the time that has passed
/// since then. Later changes of the wall clock have no effect. Fields of kind shard are 0. Formats
/// with different names are treated as different formats, even if their definitions are equal.
///
/// ```
/// use idmint_core::InProcess;
/// use idmint_core::id::Format;
///
/// let snowflake = InProcess::new(Format::built_in("snowflake").expect("is built in"), 7)?;
/// let (first, second) = (snowflake.next()?, snowflake.next()?);
/// assert!(first < second);
/// assert_eq!(snowflake.format().split(first)?.values[1], 7);
///
/// let again = InProcess::new(Format::built_in("snowflake").expect("is built in"), 7);
/// assert!(again.expect_err("refused").to_string().contains("is already in use in this process"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct InProcess {
    format: Arc<Format>,
    clock: Arc<Clock>,
    session: Arc<Session>,
    minter: Arc<Minter>,
    one: BatchRequest,
    claim: Claim,
}

/// The reason why an [`InProcess`] object cannot be created. No id was minted.
#[derive(Debug, thiserror::Error)]
pub enum InProcessError {
    /// The format is not sequenced: its ids are not made from time, worker number and sequence.
    #[error(
        "format `{format}` is not sequenced, so its ids need no worker number; mint it with `idmint serve`"
    )]
    NotSequenced {
        /// The name of the format.
        format: String,
    },
    /// The definition of the format has `mint = false`, so its ids are only decoded.
    #[error("format `{format}` has mint = false: its ids are decoded but not minted")]
    NotMinted {
        /// The name of the format.
        format: String,
    },
    /// The format uses a feature that only the service supports, such as `exclude`.
    #[error(
        "format `{format}` has {what}, which minting inside a program does not support; mint it with `idmint serve`"
    )]
    OnlyByService {
        /// The name of the format.
        format: String,
        /// The name of the feature that is not supported here.
        what: &'static str,
    },
    /// The format does not have the requested worker number.
    #[error(
        "format `{format}` has the worker numbers {first} to {last}, but worker {worker} was requested"
    )]
    NoSuchWorker {
        /// The name of the format.
        format: String,
        /// The requested worker number.
        worker: u32,
        /// The smallest worker number of the format.
        first: u32,
        /// The greatest worker number of the format.
        last: u128,
    },
    /// Another object is using the worker number. Drop that object before you create a new one.
    #[error(
        "worker {worker} of format `{format}` is already in use in this process; drop that object first, or use \
         another worker"
    )]
    InUse {
        /// The name of the format.
        format: String,
        /// The worker number that is in use.
        worker: u32,
    },
    /// The clock shows a time before the program was built, so it was never set.
    #[error("the clock shows {shown}, which is before this program was built; correct the clock")]
    ClockNotSet {
        /// The time that the clock shows.
        shown: UnixTime,
    },
    /// The first tick in which the object may mint is too far in the future. This error has three
    /// possible causes: the clock was set back to a time before ids of this process, the format has
    /// long ticks, or the epoch of the format is in the future.
    #[error("worker {worker} of format `{format}` can mint only from {start} on, in {}", format_seconds(*.wait))]
    NotYet {
        /// The name of the format.
        format: String,
        /// The worker number.
        worker: u32,
        /// The beginning of the first tick in which the [`InProcess`] object could mint.
        start: UnixNanos,
        /// The time from now until `start`.
        wait: Duration,
    },
}

impl InProcess {
    /// Creates an object that mints a format with one worker number. The object uses the clock of
    /// this machine.
    ///
    /// Waits until the next tick of the format begins, or the tick after that if ticks are shorter
    /// than 100 ms. The wait is at most three milliseconds for `snowflake`, and at most about a
    /// second for `payment`.
    ///
    /// # Errors
    /// Returns an [`InProcessError`] if the object cannot be created.
    pub fn new(format: Format, worker: u32) -> Result<InProcess, InProcessError> {
        InProcess::by(Clock::system(), format, worker)
    }

    fn by(clock: Clock, mut format: Format, worker: u32) -> Result<InProcess, InProcessError> {
        // Mint with one worker number even if the format asks for several, because only the
        // requested worker number is reserved for this object within the process.
        format.lanes = None;
        let tick = check(&format)?;
        let lanes = lanes(&format, worker)?;
        let claim = Claim::take(&format.name, worker)?;
        if clock.is_before_build() {
            return Err(InProcessError::ClockNotSet {
                shown: clock.now().into(),
            });
        }
        let now = clock.now();
        let start = start_after_others(tick, format.epoch, now).max(claim.minted_below);
        let wait = start.since(now);
        if wait > WAIT_MAX {
            return Err(InProcessError::NotYet {
                format: format.name,
                worker,
                start,
                wait,
            });
        }
        // Wait until the clock reaches `start` before the session begins. Otherwise the session
        // would mint ids with the time `start` immediately, although the clock has not reached it.
        // After the wait, ids are at most one tick ahead of the clock.
        wait_until(&clock, start);
        let (format, clock) = (Arc::new(format), Arc::new(clock));
        let settings = MintSettings {
            wait_max: WAIT_MAX,
            lead_max: LEAD_MAX,
            window: Duration::ZERO,
            shard: 0,
        };
        let mut mint = Mint::new(Arc::clone(&clock), settings);
        let minter = mint.add_sequenced(Arc::clone(&format), lanes);
        let session = mint.prepare(SessionStart::at(start));
        reserve_for_good(&session, clock.now());
        mint.begin(Arc::clone(&session));
        let one = minter
            .request(NonZeroU32::MIN, None)
            .expect("one id without a type, of a format that has none");
        Ok(InProcess {
            format,
            clock,
            session,
            minter,
            one,
            claim,
        })
    }

    /// Returns the next id. If the sequence of the current tick is used up, waits for the next
    /// tick, at most two seconds.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if no id was minted. Either the format has no free id within two
    /// seconds, or the format has ended or not begun.
    pub fn next(&self) -> Result<u128, Refusal> {
        match self.minter.reserve(&self.one) {
            Ok(mut granted) => {
                if let Some(due) = granted.due {
                    wait_until(&self.clock, due);
                }
                let mut id = [0];
                assert_eq!(granted.batch.fill(&mut id), 1, "one was asked for");
                Ok(id[0])
            }
            // This error occurs only in the year 2554. When this object was created, its horizon
            // was raised to the last time that the clock can represent.
            Err(Denied::Horizon { needed }) => Err(Refusal::HorizonReached {
                retry_after: needed.since(self.clock.now()),
            }),
            Err(Denied::Refused(refusal)) => Err(refusal),
        }
    }

    /// Returns the format, which encodes and decodes the ids.
    pub fn format(&self) -> &Format {
        &self.format
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        // No thread can mint another id, because `drop` has exclusive access. The next object with
        // this worker number starts at `minted_below` or later.
        self.claim.minted_below = self.session.reached();
    }
}

/// The exclusive use of a worker number by one object in this process.
#[derive(Debug)]
struct Claim {
    worker: Worker,
    /// An instant after the times of all ids that earlier [`InProcess`] objects minted with this
    /// worker number.
    minted_below: UnixNanos,
}

impl Claim {
    fn take(format: &str, number: u32) -> Result<Claim, InProcessError> {
        let worker = (format.to_owned(), number);
        let minted_below = match workers().insert(worker.clone(), WorkerState::Held) {
            None => UnixNanos::new(0),
            Some(WorkerState::Free { minted_below }) => minted_below,
            Some(WorkerState::Held) => {
                return Err(InProcessError::InUse {
                    format: worker.0,
                    worker: number,
                });
            }
        };
        Ok(Claim {
            worker,
            minted_below,
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let state = workers().insert(
            self.worker.clone(),
            WorkerState::Free {
                minted_below: self.minted_below,
            },
        );
        debug_assert!(
            matches!(state, Some(WorkerState::Held)),
            "who has a claim gives it back once"
        );
    }
}

fn workers() -> MutexGuard<'static, BTreeMap<Worker, WorkerState>> {
    WORKERS.lock().expect("no holder of this lock panics")
}

/// Returns a format's tick, or an error if a process cannot mint its ids by itself.
fn check(format: &Format) -> Result<Tick, InProcessError> {
    let Some(tick) = format.tick.filter(|_| format.rule == Rule::Sequenced) else {
        return Err(InProcessError::NotSequenced {
            format: format.name.clone(),
        });
    };
    if !format.is_minted() {
        return Err(InProcessError::NotMinted {
            format: format.name.clone(),
        });
    }
    let only_by_service = |what| {
        Err(InProcessError::OnlyByService {
            format: format.name.clone(),
            what,
        })
    };
    if format.has_types() {
        return only_by_service("types");
    }
    if format.exclude.is_some() {
        return only_by_service("`exclude`");
    }
    Ok(tick)
}

/// Returns the requested worker number as the only one to mint with, or an error if the format does
/// not have this number. A format without a worker field has only the number 0.
fn lanes(format: &Format, worker: u32) -> Result<Lanes, InProcessError> {
    let first = format.first_worker;
    let field = format.variants[0].layout.field_of(FieldKind::Worker);
    let last = field.map_or(0, |field| {
        field
            .max
            .min(format.last_worker.map_or(u128::MAX, u128::from))
    });
    let slot = worker
        .checked_sub(first)
        .filter(|_| u128::from(worker) <= last);
    let Some(slot) = slot else {
        return Err(InProcessError::NoSuchWorker {
            format: format.name.clone(),
            worker,
            first,
            last,
        });
    };
    let rule = LaneRule {
        slot,
        slots: slot.saturating_add(1),
        lanes: LaneCount::UpTo(1),
        shard: 0,
    };
    Ok(Lanes::of(format, &rule).expect("the format has this worker number, checked above"))
}

/// Raises the session's horizon, which is the time up to which it may mint, to the end of the
/// clock's range. The horizon is not written, because minting in process does not use a disk.
fn reserve_for_good(session: &Session, now: UnixNanos) {
    let plan = session.plan_extension(now, UnixNanos::new(u64::MAX));
    let Ok(kept) = Durable::write(plan, |_| Ok::<(), Infallible>(()));
    session.raise(&kept, now);
}

/// Returns the beginning of the first tick in which no earlier process can have minted, if the
/// clock of this process shows `now`.
///
/// An earlier process may have minted ids in the clock's current tick and in the next ticks of the
/// lead, which is the time by which ids may be ahead of the clock. It has minted no later ids,
/// because every object calls [`wait_until`] before it returns an id. `READ_APART_MAX` is added,
/// because the clock of the earlier process may have been ahead of this one by that much.
fn start_after_others(tick: Tick, epoch: UnixTime, now: UnixNanos) -> UnixNanos {
    StampLine::new(tick, epoch, 1, now.after(READ_APART_MAX))
        .tick_start(1 + lead_ticks(LEAD_MAX, tick.duration()))
}

fn wait_until(clock: &Clock, instant: UnixNanos) {
    loop {
        let left = instant.since(clock.now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use super::*;
    use crate::id::preset;
    use crate::time::ManualClock;

    const START: UnixNanos = UnixNanos::from_seconds(1_800_000_000);

    fn snowflakes(worker: u32) -> InProcess {
        InProcess::new(preset("snowflake"), worker).expect("a free worker of the format")
    }

    fn changed(change: impl FnOnce(&mut Format)) -> Format {
        let mut format = preset("snowflake");
        change(&mut format);
        format
    }

    fn next(ids: &InProcess) -> u128 {
        ids.next().expect("the clock goes on")
    }

    /// Mints as many ids as possible until the duration `time` has passed.
    fn mint_for(ids: &InProcess, time: Duration) -> Vec<u128> {
        let begun = Instant::now();
        let mut minted = vec![next(ids)];
        while begun.elapsed() < time {
            minted.push(next(ids));
        }
        minted
    }

    /// Creates an `InProcess` while the clock of `hand` advances.
    fn begin(hand: &ManualClock, format: Format, worker: u32) -> Result<InProcess, InProcessError> {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    hand.advance(Duration::from_micros(100));
                    thread::yield_now();
                }
            });
            let begun = InProcess::by(hand.clock(), format, worker);
            done.store(true, Ordering::Relaxed);
            begun
        })
    }

    /// Removes the record of a worker number, so that the next `InProcess` behaves as in a new
    /// process.
    fn forget(format: &str, worker: u32) {
        let state = workers().remove(&(format.to_owned(), worker));
        assert!(
            matches!(state, Some(WorkerState::Free { .. })),
            "nobody has it"
        );
    }

    fn assert_ascend(ids: &[u128]) {
        assert!(
            ids.windows(2).all(|pair| pair[0] < pair[1]),
            "{} ids, not all above the one before",
            ids.len()
        );
    }

    #[test]
    fn objects_of_one_id_each_mint_ids_that_ascend() {
        let ids: Vec<u128> = (0..500).map(|_| next(&snowflakes(0))).collect();
        assert_ascend(&ids);
    }

    #[test]
    fn ids_of_many_threads_and_of_the_objects_after_them_are_all_different() {
        let mut seen = HashSet::new();
        for _ in 0..20 {
            let ids = snowflakes(1);
            let mint = || (0..1_000).map(|_| next(&ids)).collect::<Vec<_>>();
            seen.extend(thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(mint)).collect();
                threads
                    .into_iter()
                    .flat_map(|thread| thread.join().expect("no panic"))
                    .collect::<Vec<_>>()
            }));
        }
        assert_eq!(seen.len(), 80_000);
    }

    #[test]
    fn an_object_goes_on_above_one_that_has_minted_all_there_was() {
        let mut minted = Vec::new();
        for _ in 0..20 {
            minted.extend(mint_for(&snowflakes(2), Duration::from_millis(5)));
        }
        assert_ascend(&minted);
    }

    /// Each round simulates a new process, which does not know the worker numbers that earlier
    /// processes used. Only the clock then separates the ids of a process from the ids of the
    /// previous one.
    #[test]
    fn processes_that_follow_each_other_at_once_mint_ids_that_ascend() {
        let mut minted = Vec::new();
        for round in 0..100 {
            let busy = mint_for(&snowflakes(3), Duration::from_millis(round % 3));
            forget("snowflake", 3);
            minted.extend(busy);
            minted.push(next(&snowflakes(3)));
            forget("snowflake", 3);
        }
        assert_ascend(&minted);
    }

    #[test]
    fn built_in_formats_go_on_in_the_next_process() {
        for name in [
            "js53",
            "twitter",
            "instagram",
            "payment",
            "payment-wide",
            "conjunction-v1",
        ] {
            let worker = preset(name).first_worker;
            let mut minted = Vec::new();
            for _ in 0..2 {
                let ids =
                    InProcess::new(preset(name), worker).expect("a free worker of the format");
                minted.extend((0..10).map(|_| next(&ids)));
                drop(ids);
                forget(name, worker);
            }
            assert_ascend(&minted);
        }
    }

    #[test]
    fn a_process_that_minted_ahead_of_its_clock_is_followed_after_its_lead() {
        let hand = ManualClock::at(START);
        let ids = begin(&hand, preset("js53"), 9).expect("waits for a tick");
        // From its start, a tick has at most 128 ids per worker number, so 200 ids reach the next.
        let tick = Duration::from_millis(10);
        let into_tick = hand.wall().since(START).as_nanos() % tick.as_nanos();
        hand.advance(tick - Duration::from_nanos_u128(into_tick));
        let mut minted: Vec<_> = (0..200).map(|_| next(&ids)).collect();
        assert_ascend(&minted);
        let format = ids.format();
        let last = minted.pop().expect("200 ids");
        let begun = format.split(last).expect("an id of it").values[0];
        // The process after this one starts 3 ms later, while the clock is still in the same tick.
        hand.advance(Duration::from_millis(3));
        let now = hand.clock().now();
        let start = start_after_others(format.tick.expect("a tick"), format.epoch, now);
        assert_eq!(
            format.ticks_at(now.into()),
            Ok(begun - 1),
            "the lead was used"
        );
        assert_eq!(format.ticks_at(start.into()), Ok(begun + 1));
    }

    #[test]
    fn a_format_that_is_no_longer_minted_is_refused() {
        let mut format = preset("payment");
        assert!(format.is_minted());
        format.mint = false;
        let refused = InProcess::new(format, 3).expect_err("refused").to_string();
        assert!(refused.contains("`payment` has mint = false"), "{refused}");
    }

    #[test]
    fn a_worker_number_is_for_one_object_at_a_time() {
        let first = snowflakes(4);
        let second = InProcess::new(preset("snowflake"), 4).expect_err("refused");
        assert_eq!(
            second.to_string(),
            "worker 4 of format `snowflake` is already in use in this process; drop that object first, or use another \
             worker"
        );
        let other_worker = snowflakes(5);
        let other_format = InProcess::new(preset("twitter"), 4).expect("is free");
        assert_ne!(next(&first), next(&other_worker));
        next(&other_format);
        let last = next(&first);
        drop(first);
        assert!(last < next(&snowflakes(4)));
    }

    /// A tick of `js53` (10 ms) has at most 128 ids per worker number, so 300 ids must wait. The
    /// second of two worker numbers (`lanes`) may belong to another object, so it must not be used.
    #[test]
    fn a_format_with_several_lanes_takes_no_worker_number_of_others() {
        let mut format = preset("js53");
        format.lanes = Some(2);
        let ids = InProcess::new(format, 6).expect("is free");
        let worker = |id: u128| ids.format().split(id).expect("an id of it").values[1];
        assert!((0..300).all(|_| worker(next(&ids)) == 6));
    }

    #[test]
    fn a_clock_set_back_between_two_objects_is_refused_or_waited_for() {
        let hand = ManualClock::at(START);
        let begin = || begin(&hand, preset("snowflake"), 8);
        let last = next(&begin().expect("waits for a tick"));
        hand.set_wall(hand.wall().before(Duration::from_secs(1)));
        let after = next(&begin().expect("waits for a second"));
        assert!(last < after);
        hand.set_wall(hand.wall().before(Duration::from_secs(3_600)));
        assert!(
            matches!(begin().expect_err("an hour"), InProcessError::NotYet { wait, .. } if wait.as_secs() > 3_500)
        );
        hand.set_wall(UnixNanos::from_seconds(1_000_000_000));
        assert!(matches!(
            begin().expect_err("the year 2001"),
            InProcessError::ClockNotSet { .. }
        ));
        hand.set_wall(START.after(Duration::from_hours(24)));
        assert!(after < next(&begin().expect("what was refused has not taken the worker")));
    }

    #[test]
    fn what_has_no_such_worker_or_needs_the_service_is_refused() {
        let refused = |format, worker| {
            InProcess::new(format, worker)
                .expect_err("refused")
                .to_string()
        };
        assert_eq!(
            refused(preset("uuid7"), 0),
            "format `uuid7` is not sequenced, so its ids need no worker number; mint it with `idmint serve`"
        );
        assert_eq!(
            refused(preset("siq"), 0),
            "format `siq` has types, which minting inside a program does not support; mint it with `idmint serve`"
        );
        let excluding = changed(|format| format.exclude = Some("ids.txt".into()));
        assert_eq!(
            refused(excluding, 0),
            "format `snowflake` has `exclude`, which minting inside a program does not support; mint it with `idmint \
             serve`"
        );
        let beyond = |worker| {
            format!(
                "format `snowflake` has the worker numbers 0 to 31, but worker {worker} \
            was requested"
            )
        };
        assert_eq!(refused(preset("snowflake"), 32), beyond(32));
        assert_eq!(refused(preset("snowflake"), u32::MAX), beyond(u32::MAX));
        let ranged = changed(|format| (format.first_worker, format.last_worker) = (20, Some(29)));
        assert_eq!(
            refused(ranged, 19),
            "format `snowflake` has the worker numbers 20 to 29, but worker 19 was requested"
        );
        let hourly = changed(|format| format.tick = Some("3600s".parse().expect("a tick")));
        let refused =
            InProcess::by(ManualClock::at(START).clock(), hourly, 9).expect_err("an hour");
        let told = "worker 9 of format `snowflake` can mint only from 2027-01-15T09:00:00.000Z on, in 3600 s";
        assert_eq!(refused.to_string(), told);
    }
}
