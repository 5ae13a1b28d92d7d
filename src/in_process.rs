//! Ids without a service and without a disk: what a program can have in its own process, and how far the promise then goes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use crate::id::{FieldKind, Format, Rule};
use crate::minting::{
    BatchRequest, Denied, Durable, LaneCount, LaneRule, Lanes, Mint, MintSettings, Minter, Refusal,
    Session, SessionStart, StampLine,
};
use crate::time::{Clock, READ_APART_MAX, Tick, UnixNanos, UnixTime};

/// How long a start waits for its first tick at most, and [`InProcess::next`] for the next one.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Every worker number that an [`InProcess`] of this process has, or had.
static WORKERS: Mutex<BTreeMap<Worker, State>> = Mutex::new(BTreeMap::new());

/// A worker number of the format of that name.
type Worker = (String, u32);

#[derive(Debug, Clone, Copy)]
enum State {
    /// An object mints with it.
    Held,
    /// None does. All that was minted is below this instant.
    Free { minted_below: UnixNanos },
}

/// Mints one sequenced format in this process, with one worker number.
///
/// Within one process no id comes twice, from however many threads, whatever the clock does, and also when one object follows
/// another. A second object with the same worker number of a format of the same name is refused while there is a first one:
/// share that one.
///
/// Nothing is on disk, so beyond the process the rest is the caller's:
///
/// - **No other process has the worker number at the same time.** Two of them mint the same ids. A process that forks, or a
///   machine that is copied while it runs, is two; a service with that number is another, too, even in the same process.
/// - **From one process to the next the clock does not go back.** An object begins with a tick that begins after it was asked for,
///   above whatever an earlier process has minted by that clock. A clock that was set back shows the same ticks again. The service
///   keeps a horizon on disk for that.
///
/// The time in ids is that of the wall clock when the object was made, and what has passed since: a wall clock that is set later is
/// not followed. A field of kind shard is 0. Formats of different names are different ones, however much they resemble each other.
///
/// ```
/// use idmint::InProcess;
/// use idmint::id::Format;
///
/// let snowflake = InProcess::new(Format::built_in("snowflake").expect("is built in"), 7)?;
/// let (first, second) = (snowflake.next()?, snowflake.next()?);
/// assert!(first < second);
/// assert_eq!(snowflake.format().split(first)?.values[1], 7);
///
/// let again = InProcess::new(Format::built_in("snowflake").expect("is built in"), 7);
/// assert_eq!(again.expect_err("refused").to_string(), "worker 7 of format `snowflake` is in use in this process");
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

/// Nothing can be minted so. Nothing was.
#[derive(Debug, thiserror::Error)]
pub enum InProcessError {
    /// Its ids do not come from time, worker and sequence.
    #[error("format `{format}` is not sequenced: its ids need no worker number")]
    NotSequenced {
        /// Its name.
        format: String,
    },
    /// One of what only the service can do is in its definition.
    #[error("format `{format}` has {what}, which only the service mints by")]
    OnlyByService {
        /// Its name.
        format: String,
        /// What that is.
        what: &'static str,
    },
    /// It does not mint with such a worker number.
    #[error("format `{format}` mints with workers {first} to {last}, not with {worker}")]
    NoSuchWorker {
        /// Its name.
        format: String,
        /// What was asked for.
        worker: u32,
        /// The least there is.
        first: u32,
        /// The greatest there is.
        last: u128,
    },
    /// Another object mints with it. When that is gone, one can be made.
    #[error("worker {worker} of format `{format}` is in use in this process")]
    InUse {
        /// The name of the format.
        format: String,
        /// The worker number.
        worker: u32,
    },
    /// The clock cannot be right.
    #[error("the clock shows {shown}, a time before this program was built")]
    ClockNotSet {
        /// What it shows.
        shown: UnixTime,
    },
    /// The first tick is too far away to wait for: the clock was set back behind what this process has minted, the ticks of the
    /// format are long, or its epoch is to come.
    #[error("worker {worker} of format `{format}` can begin at {start}, in {} s", .wait.as_secs_f64())]
    NotYet {
        /// The name of the format.
        format: String,
        /// The worker number.
        worker: u32,
        /// When its first tick begins.
        start: UnixNanos,
        /// How long that is from now.
        wait: Duration,
    },
}

impl InProcess {
    /// Begins to mint a format with a worker number, by the clock of this machine.
    ///
    /// Waits until a tick of the format begins: two milliseconds at most for a Snowflake, a second for `payment`.
    ///
    /// # Errors
    /// [`InProcessError`].
    pub fn new(format: Format, worker: u32) -> Result<InProcess, InProcessError> {
        InProcess::by(Clock::system(), format, worker)
    }

    fn by(clock: Clock, mut format: Format, worker: u32) -> Result<InProcess, InProcessError> {
        // One claim is one worker number.
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
        // An earlier process may have used the tick that its clock showed up to its end, and no later one: see below.
        let seen = now.after(READ_APART_MAX);
        let start = StampLine::new(tick, format.epoch, 1, seen)
            .tick_start(1)
            .max(claim.minted_below);
        let wait = start.since(now);
        if wait > WAIT_MAX {
            return Err(InProcessError::NotYet {
                format: format.name,
                worker,
                start,
                wait,
            });
        }
        // A session that begins ahead of its clock mints there at once, and so above the tick of the clock; one that begins
        // when its start has passed mints up to the end of the tick of the clock, since it has no lead.
        wait_until(&clock, start);
        let (format, clock) = (Arc::new(format), Arc::new(clock));
        let settings = MintSettings {
            wait_max: WAIT_MAX,
            lead_max: Duration::ZERO,
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

    /// The next id. Waits for a tick whose sequence is not used up, up to two seconds.
    ///
    /// # Errors
    /// [`Refusal`]: no id was minted. More was asked for than the format has for two seconds, or it has ended or not begun.
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
            // Where the clock ends.
            Err(Denied::Horizon { needed }) => Err(Refusal::HorizonReached {
                retry_after: needed.since(self.clock.now()),
            }),
            Err(Denied::Refused(refusal)) => Err(refusal),
        }
    }

    /// What it mints: how its ids are written and read.
    pub fn format(&self) -> &Format {
        &self.format
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        // Nobody is in `next` any more.
        self.claim.minted_below = self.session.reached();
    }
}

/// A worker number that this process has given to nobody else.
#[derive(Debug)]
struct Claim {
    worker: Worker,
    /// Nothing was minted with it from this instant on, before the object that has it.
    minted_below: UnixNanos,
}

impl Claim {
    fn take(format: &str, number: u32) -> Result<Claim, InProcessError> {
        let worker = (format.to_owned(), number);
        let minted_below = match workers().insert(worker.clone(), State::Held) {
            None => UnixNanos::new(0),
            Some(State::Free { minted_below }) => minted_below,
            Some(State::Held) => {
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
            State::Free {
                minted_below: self.minted_below,
            },
        );
        debug_assert!(
            matches!(state, Some(State::Held)),
            "who has a claim gives it back once"
        );
    }
}

fn workers() -> MutexGuard<'static, BTreeMap<Worker, State>> {
    WORKERS.lock().expect("no holder of this lock panics")
}

/// The tick of a format that can be minted without a service.
fn check(format: &Format) -> Result<Tick, InProcessError> {
    let Some(tick) = format.tick.filter(|_| format.rule == Rule::Sequenced) else {
        return Err(InProcessError::NotSequenced {
            format: format.name.clone(),
        });
    };
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

/// The one worker number, if the format mints with it. One without workers has the number 0.
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

/// Lets everything up to the end of the clock be minted: there is no disk that would have to know before.
fn reserve_for_good(session: &Session, now: UnixNanos) {
    let plan = session.plan_extension(now, UnixNanos::new(u64::MAX));
    let Ok(kept) = Durable::write(plan, |_| Ok::<(), Infallible>(()));
    session.raise(&kept, now);
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

    /// As many as there are, for so long.
    fn mint_for(ids: &InProcess, time: Duration) -> Vec<u128> {
        let begun = Instant::now();
        let mut minted = vec![next(ids)];
        while begun.elapsed() < time {
            minted.push(next(ids));
        }
        minted
    }

    /// What another process knows of a worker number of this one.
    fn forget(format: &str, worker: u32) {
        let state = workers().remove(&(format.to_owned(), worker));
        assert!(matches!(state, Some(State::Free { .. })), "nobody has it");
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

    /// Only the clock keeps them apart.
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
    fn a_worker_number_is_for_one_object_at_a_time() {
        let first = snowflakes(4);
        let second = InProcess::new(preset("snowflake"), 4).expect_err("refused");
        assert_eq!(
            second.to_string(),
            "worker 4 of format `snowflake` is in use in this process"
        );
        let (other_worker, other_format) = (
            snowflakes(5),
            InProcess::new(preset("twitter"), 4).expect("is free"),
        );
        assert_ne!(next(&first), next(&other_worker));
        next(&other_format);
        let last = next(&first);
        drop(first);
        assert!(last < next(&snowflakes(4)));
    }

    /// 128 ids in 10 ms: more than one lane has at once.
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
        let begin = || {
            let done = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        hand.advance(Duration::from_micros(100));
                        thread::yield_now();
                    }
                });
                let begun = InProcess::by(hand.clock(), preset("snowflake"), 8);
                done.store(true, Ordering::Relaxed);
                begun
            })
        };
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
            "format `uuid7` is not sequenced: its ids need no worker number"
        );
        assert_eq!(
            refused(preset("siq"), 0),
            "format `siq` has types, which only the service mints by"
        );
        let excluding = changed(|format| format.exclude = Some("ids.txt".into()));
        assert_eq!(
            refused(excluding, 0),
            "format `snowflake` has `exclude`, which only the service mints by"
        );
        let beyond =
            |worker| format!("format `snowflake` mints with workers 0 to 31, not with {worker}");
        assert_eq!(refused(preset("snowflake"), 32), beyond(32));
        assert_eq!(refused(preset("snowflake"), u32::MAX), beyond(u32::MAX));
        let ranged = changed(|format| (format.first_worker, format.last_worker) = (20, Some(29)));
        assert_eq!(
            refused(ranged, 19),
            "format `snowflake` mints with workers 20 to 29, not with 19"
        );
        let hourly = changed(|format| format.tick = Some("3600s".parse().expect("a tick")));
        let refused =
            InProcess::by(ManualClock::at(START).clock(), hourly, 9).expect_err("an hour");
        let told =
            "worker 9 of format `snowflake` can begin at 2027-01-15T09:00:00.000Z, in 3600 s";
        assert_eq!(refused.to_string(), told);
    }
}
