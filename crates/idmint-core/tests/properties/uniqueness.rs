//! Mints 10^8 ids on four threads, and checks that no two of them are equal.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use idmint_core::id::{Format, FormatDefinition, PRESETS};
use idmint_core::minting::{
    Denied, Durable, LaneCount, LaneRule, Lanes, Mint, MintSettings, Minter, Session, SessionStart,
};
use idmint_core::time::{ManualClock, UnixNanos};

const THREADS: u32 = 4;
const IDS: u64 = 100_000_000;
const BATCH: u32 = 5_000;

/// The sequences that one worker has used in one millisecond, with one bit for each sequence.
type Page = [u64; 4096 / 64];

/// The set of all ids seen so far. It has a page for each worker and millisecond, and one bit in
/// the page for each id.
#[derive(Default)]
struct Seen {
    pages: HashMap<(u128, u128), Page>,
    ids: u64,
}

impl Seen {
    /// Adds an id. Panics if the id was seen before.
    fn take_in(&mut self, worker: u128, time: u128, sequence: u128) {
        let page = self.pages.entry((worker, time)).or_insert([0; 64]);
        let bit = 1 << (sequence % 64);
        let word = &mut page[usize::try_from(sequence / 64).expect("12 bits")];
        assert_eq!(
            *word & bit,
            0,
            "worker {worker} minted {sequence} of {time} twice"
        );
        *word |= bit;
        self.ids += 1;
    }

    fn merge(&mut self, other: Seen) {
        for (place, page) in other.pages {
            let mine = self.pages.entry(place).or_insert([0; 64]);
            for (mine, theirs) in mine.iter_mut().zip(page) {
                assert_eq!(
                    *mine & theirs,
                    0,
                    "two threads were given one id of {place:?}"
                );
                *mine |= theirs;
            }
        }
        self.ids += other.ids;
    }
}

fn snowflake() -> Arc<Format> {
    let preset = PRESETS
        .iter()
        .find(|preset| preset.name == "snowflake")
        .expect("is built in");
    Arc::new(
        FormatDefinition::from_toml("snowflake", preset.toml)
            .expect("parses")
            .compile("snowflake")
            .expect("is sound"),
    )
}

fn mint_on(hand: &ManualClock, format: &Arc<Format>) -> (Mint, Arc<Minter>) {
    let rule = LaneRule {
        slot: 0,
        slots: 1,
        lanes: LaneCount::UpTo(8),
        shard: 0,
    };
    let lanes = Lanes::of(format, &rule).expect("fits");
    let settings = MintSettings {
        wait_max: Duration::from_millis(250),
        lead_max: Duration::from_millis(5),
        window: Duration::from_secs(3),
        shard: 0,
    };
    let mut mint = Mint::new(Arc::new(hand.clock()), settings);
    let minter = mint.add_sequenced(Arc::clone(format), lanes);
    let session = mint.prepare(SessionStart::at(hand.wall()));
    extend(&session, hand.wall(), hand.wall());
    mint.begin(session);
    (mint, minter)
}

fn extend(session: &Session, now: UnixNanos, needed: UnixNanos) {
    let durable = Durable::write(session.plan_extension(now, needed), |_| {
        Ok::<_, std::convert::Infallible>(())
    });
    session.raise(&durable.expect("infallible"), now);
}

/// Mints a quarter of all ids, and checks that the ids of each worker increase. If the sequences of
/// a millisecond are used up, advances the clock.
fn mint_a_share(
    mint: &Mint,
    minter: &Minter,
    hand: &ManualClock,
    extending: &std::sync::Mutex<()>,
) -> Seen {
    let request = minter
        .request(NonZeroU32::new(BATCH).expect("not zero"), None)
        .expect("a sound request");
    let mut seen = Seen::default();
    let mut last_of_worker = HashMap::new();
    let mut ids = vec![0; usize::try_from(BATCH).expect("small")];
    while seen.ids < IDS / u64::from(THREADS) {
        match minter.reserve(&request) {
            Ok(mut granted) => {
                assert_eq!(granted.batch.fill(&mut ids), ids.len());
                for id in &ids {
                    // Split the id by shifts, so that the test does not rely on the code that
                    // composed it.
                    let [time, worker, sequence] = [id >> 22, id >> 17 & 31, id & 4095];
                    let last = last_of_worker.insert(worker, *id).unwrap_or(0);
                    assert!(*id > last, "worker {worker}: {id} came after {last}");
                    seen.take_in(worker, time, sequence);
                }
            }
            Err(Denied::Refused(_)) => hand.advance(Duration::from_micros(500)),
            Err(Denied::Horizon { needed }) => {
                let _one_at_a_time = extending.lock().expect("no holder panics");
                let session = mint.session().expect("it has begun");
                if session.horizon() < needed {
                    extend(&session, mint.clock().now(), needed);
                }
            }
        }
    }
    seen
}

#[test]
fn a_hundred_million_ids_of_four_threads_are_all_different_and_increase_for_each_worker() {
    let format = snowflake();
    let hand = ManualClock::at(UnixNanos::from_seconds(1_800_000_000));
    let (mint, minter) = mint_on(&hand, &format);
    let extending = std::sync::Mutex::new(());
    let mut all = Seen::default();
    std::thread::scope(|scope| {
        let share = || mint_a_share(&mint, &minter, &hand, &extending);
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(share)).collect();
        for thread in threads {
            all.merge(thread.join().expect("a thread found a duplicate"));
        }
    });
    assert!(all.ids >= IDS);
    assert_eq!(minter.counted().counters.minted(), all.ids);
}
