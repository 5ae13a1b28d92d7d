//! Ids without a service and without a disk: what a program can have in its own process, and how far the promise then goes.

use std::convert::Infallible;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::id::{Format, Rule};
use crate::minting::{
    BatchRequest, Denied, Durable, LaneCount, LaneError, LaneRule, Lanes, Mint, MintSettings, Minter, Refusal, Session,
    SessionStart,
};
use crate::time::{Clock, UnixNanos};

/// How long [`InProcess::next`] waits for the next tick at most.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// How much is reserved at once. Nothing is written for it, so it is as long as a session plans ahead at most.
const WINDOW: Duration = Duration::from_secs(3);

/// Mints one sequenced format in this process, with one worker number.
///
/// No two calls on one object return the same id, from however many threads and whatever the clock does. Beyond that nothing is
/// on disk, so the rest is the caller's:
///
/// - **A worker number belongs to one object at a time.** Two objects, processes or machines with one number mint the same ids.
///   A process that is forked, or restored from an image, is two.
/// - **Across a restart the clock must not go back.** An object begins two ticks after the time that it sees, above whatever one
///   before it has minted by that clock. The service keeps a horizon on disk for the clock that does go back.
///
/// ```
/// use idmint::InProcess;
/// use idmint::id::Format;
///
/// let snowflake = InProcess::new(Format::built_in("snowflake").expect("is built in"), 7)?;
/// let (first, second) = (snowflake.next()?, snowflake.next()?);
/// assert!(first < second);
/// assert_eq!(snowflake.format().canonical().to_text(first).len(), 19);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct InProcess {
    format: Arc<Format>,
    clock: Arc<Clock>,
    session: Arc<Session>,
    minter: Arc<Minter>,
    one: BatchRequest,
}

/// A format that cannot be minted so.
#[derive(Debug, thiserror::Error)]
pub enum InProcessError {
    /// Its ids do not come from time, worker and sequence.
    #[error("format `{format}` is not sequenced: its ids need no worker number")]
    NotSequenced {
        /// Its name.
        format: String,
    },
    /// Its variants are told by a type, and one call has none.
    #[error("format `{format}` has types, which only the service mints")]
    HasTypes {
        /// Its name.
        format: String,
    },
    /// It has no such worker number.
    #[error(transparent)]
    Worker(#[from] LaneError),
}

impl InProcess {
    /// Begins to mint a format with a worker number, from 0 to the last one of the format, by the clock of this machine.
    ///
    /// # Errors
    /// [`InProcessError`].
    pub fn new(format: Format, worker: u32) -> Result<InProcess, InProcessError> {
        InProcess::by(Arc::new(Clock::system()), format, worker)
    }

    fn by(clock: Arc<Clock>, format: Format, worker: u32) -> Result<InProcess, InProcessError> {
        let Some(tick) = format.tick.filter(|_| format.rule == Rule::Sequenced) else {
            return Err(InProcessError::NotSequenced { format: format.name });
        };
        if format.has_types() {
            return Err(InProcessError::HasTypes { format: format.name });
        }
        let format = Arc::new(format);
        let rule = LaneRule { slot: worker, slots: worker.saturating_add(1), lanes: LaneCount::UpTo(1), shard: 0 };
        let lanes = Lanes::of(&format, &rule)?;
        // The least lead: at most one tick beyond the clock.
        let settings = MintSettings { wait_max: WAIT_MAX, lead_max: Duration::ZERO, window: WINDOW, shard: 0 };
        let mut mint = Mint::new(Arc::clone(&clock), settings);
        let minter = mint.add_sequenced(Arc::clone(&format), lanes);
        let now = clock.now();
        // Whatever an earlier object has minted lies in the tick of now at most, or in the one of its lead.
        let session = mint.prepare(SessionStart::at(now.after(tick.duration() * 2)));
        raise(&session, now, now);
        mint.begin(Arc::clone(&session));
        let one = minter.request(NonZeroU32::MIN, None).expect("one id without a type, of a format that has none");
        Ok(InProcess { format, clock, session, minter, one })
    }

    /// The next id. Waits for a tick whose sequence is not used up, up to two seconds.
    ///
    /// # Errors
    /// [`Refusal`]: no id was minted; the clock has gone back by more than that, or the format has ended.
    pub fn next(&self) -> Result<u128, Refusal> {
        loop {
            match self.minter.reserve(&self.one) {
                Ok(mut granted) => {
                    if let Some(due) = granted.due {
                        thread::sleep(due.since(self.clock.now()));
                    }
                    let mut id = [0];
                    assert_eq!(granted.batch.fill(&mut id), 1, "one was asked for");
                    return Ok(id[0]);
                }
                Err(Denied::Horizon { needed }) => raise(&self.session, self.clock.now(), needed),
                Err(Denied::Refused(refusal)) => return Err(refusal),
            }
        }
    }

    /// What it mints: how its ids are written and read.
    pub fn format(&self) -> &Format {
        &self.format
    }
}

/// Reserves time for the session, for as long as the process lives: there is nothing to write to.
fn raise(session: &Session, now: UnixNanos, needed: UnixNanos) {
    let plan = session.plan_extension(now, needed);
    let Ok(kept) = Durable::write(plan, |_| Ok::<(), Infallible>(()));
    session.raise(&kept, now);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::preset;
    use crate::time::ManualClock;
    use std::collections::HashSet;

    const START: UnixNanos = UnixNanos::from_seconds(1_800_000_000);

    #[test]
    fn ids_of_many_threads_and_of_the_object_after_it_are_all_different() {
        let mut seen = HashSet::new();
        for _ in 0..20 {
            let ids = InProcess::new(preset("snowflake"), 3).expect("a worker of the format");
            let minted = thread::scope(|scope| {
                let mint = || (0..1_000).map(|_| ids.next().expect("the clock goes on")).collect::<Vec<_>>();
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(mint)).collect();
                threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
            });
            seen.extend(minted);
        }
        assert_eq!(seen.len(), 80_000);
    }

    #[test]
    fn an_object_that_follows_within_a_tick_begins_above_all_of_the_one_before() {
        for name in ["snowflake", "js53", "payment"] {
            let hand = ManualClock::at(START);
            let begin = || InProcess::by(Arc::new(hand.clock()), preset(name), 0).expect("worker 0");
            let mut last = 0;
            for _ in 0..100 {
                let ids = begin();
                hand.advance(Duration::from_secs(3));
                for _ in 0..10 {
                    let id = ids.next().expect("its tick has begun");
                    assert!(last < id, "{name}: {id} after {last}");
                    last = id;
                }
            }
        }
    }

    #[test]
    fn what_has_no_such_worker_or_no_sequence_is_refused() {
        let refused = |name, worker| InProcess::new(preset(name), worker).expect_err("refused").to_string();
        assert_eq!(refused("uuid7", 0), "format `uuid7` is not sequenced: its ids need no worker number");
        assert_eq!(refused("siq", 0), "format `siq` has types, which only the service mints");
        assert!(refused("snowflake", 1_024).contains("snowflake"), "{}", refused("snowflake", 1_024));
        assert!(refused("snowflake", u32::MAX).contains("snowflake"));
    }
}
