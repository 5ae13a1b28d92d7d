//! Checks that excluded ids of another generator are never minted again, whatever these ids are,
//! even if their times are in the future.
//!
//! The formats have ticks from 1 ns to 1 h, and excluded ids near the current time. For each seed,
//! a process is started and killed several times. To replay a failing seed: `EXCLUSIONS_SEED=7
//! cargo test --test properties exclusions`.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use idmint_core::id::{FieldKind, Format, PRESETS, StartAfter};
use idmint_core::minting::{
    Denied, Durable, LaneCount, LaneRule, Lanes, Mint, MintSettings, Minter, Session, SessionStart,
};
use idmint_core::time::{Clock, ManualClock, UnixNanos};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::restarts;

const SEEDS: u64 = 1_500;
const LIVES: usize = 3;
const STEPS: usize = 15;
const START: UnixNanos = UnixNanos::from_seconds(1_800_000_000);

/// The worker number, the index of the layout, and the tick of an id. If an excluded id has these
/// values, no other id with the same values may be minted.
type Place = (u128, usize, u128);

/// The number of excluded ticks, the number of minted ids, and the number of times that each
/// interesting situation occurred.
#[derive(Debug, Default)]
struct Tally {
    ids: usize,
    /// The number of lanes (worker numbers) that minted both before and after an excluded tick.
    passed: usize,
    excluded: usize,
    /// The number of process starts that came before the format's `start_after`.
    held_back: usize,
}

struct Life {
    clock: Arc<Clock>,
    minter: Arc<Minter>,
    session: Arc<Session>,
}

fn place(format: &Format, id: u128) -> Place {
    let variant = format.variant_at(id);
    let layout = &format.variants[variant].layout;
    let values = layout.unpack(id).expect("what is minted splits");
    let number = |kind| layout.sum_of(kind, &values).unwrap_or(0);
    (number(FieldKind::Worker), variant, number(FieldKind::Time))
}

/// Returns an id with this worker number, layout and tick, and a random sequence.
fn id_at(format: &Format, (worker, variant, tick): Place, random: &mut StdRng) -> u128 {
    let layout = &format.variants[variant].layout;
    let values = layout
        .fields()
        .iter()
        .map(|field| match (field.constant, field.kind) {
            (Some(constant), _) => constant,
            (None, FieldKind::Time) => tick,
            (None, FieldKind::Worker) => worker,
            (None, FieldKind::Sequence) => random.random_range(0..=field.max),
            (None, _) => 0,
        });
    layout.pack(&values.collect::<Vec<_>>()).expect("each fits")
}

impl Life {
    fn begin(
        format: &Arc<Format>,
        lanes: u32,
        horizon: Option<UnixNanos>,
        hand: &ManualClock,
        excluded: &[u128],
    ) -> Life {
        let rule = LaneRule {
            slot: 0,
            slots: 1,
            lanes: LaneCount::UpTo(lanes),
            shard: 0,
        };
        let (wait_max, lead_max) = (Duration::from_millis(250), Duration::from_millis(5));
        let settings = MintSettings {
            wait_max,
            lead_max,
            window: Duration::from_secs(3),
            shard: 0,
        };
        let clock = Arc::new(hand.clock());
        let mut mint = Mint::new(Arc::clone(&clock), settings);
        let minter =
            mint.add_sequenced(Arc::clone(format), Lanes::of(format, &rule).expect("fits"));
        let now = clock.now();
        let mut ids = minter.excluded_ids(now).expect("it is sequenced");
        for id in excluded {
            ids.read_line(&format.canonical().to_text(*id))
                .expect("sorted");
        }
        minter.exclude(ids.ticks());
        let start = horizon.map_or(now, |horizon| horizon.max(now));
        let session = mint.prepare(SessionStart::at(start));
        mint_up_to(&session, now, start.after(Duration::from_nanos(1)));
        mint.begin(Arc::clone(&session));
        Life {
            clock,
            minter,
            session,
        }
    }

    /// Mints the ids of one request. Returns no ids if the request is refused.
    fn mint(&self, count: u32, of_type: Option<&str>, hand: &ManualClock) -> Vec<u128> {
        let count = NonZeroU32::new(count).expect("not zero");
        let request = self
            .minter
            .request(count, of_type)
            .expect("a sound request");
        loop {
            match self.minter.reserve(&request) {
                Ok(mut granted) => {
                    let mut ids = vec![0; usize::try_from(count.get()).expect("small")];
                    assert_eq!(granted.batch.fill(&mut ids), ids.len());
                    if let Some(due) = granted.due {
                        hand.advance(due.since(self.clock.now()));
                    }
                    return ids;
                }
                Err(Denied::Refused(_)) => return Vec::new(),
                Err(Denied::Horizon { needed }) => {
                    mint_up_to(&self.session, self.clock.now(), needed)
                }
            }
        }
    }
}

fn mint_up_to(session: &Session, now: UnixNanos, needed: UnixNanos) {
    let plan = session.plan_extension(now, needed);
    let durable = Durable::write(plan, |_| Ok::<_, std::io::Error>(())).expect("nothing to fail");
    session.raise(&durable, now);
}

/// Asserts that the ids of a batch have one worker number and consecutive stamps, apart from
/// excluded ticks.
fn assert_a_run(format: &Format, ids: &[u128]) {
    let stamp = |id: u128| {
        let (worker, variant, tick) = place(format, id);
        let layout = &format.variants[variant].layout;
        let sequence = layout.field_of(FieldKind::Sequence).expect("it counts");
        let values = layout.unpack(id).expect("splits");
        (
            worker,
            tick * (sequence.max + 1)
                + layout
                    .sum_of(FieldKind::Sequence, &values)
                    .expect("it counts"),
        )
    };
    for pair in ids.windows(2) {
        let ((one, before), (other, after)) = (stamp(pair[0]), stamp(pair[1]));
        assert_eq!((one, before + 1), (other, after), "a batch has a gap");
    }
}

fn live(seed: u64, tally: &mut Tally) {
    let random = &mut StdRng::seed_from_u64(seed);
    let mut formats = restarts::formats(random);
    let format = formats.swap_remove(random.random_range(0..formats.len()));
    let mut format = Arc::into_inner(format).expect("nobody else has it");
    let tick = format.tick.expect("it is sequenced");
    let present = format.ticks_at(START.into()).expect("a tick");
    let lanes = random.random_range(1..4);
    let excluded: BTreeSet<u128> = (0..random.random_range(0..40))
        .map(|_| {
            let variant = random.random_range(0..format.variants.len());
            let worker = if format.variants[0]
                .layout
                .field_of(FieldKind::Worker)
                .is_some()
            {
                u128::from(format.first_worker) + u128::from(random.random_range(0..lanes))
            } else {
                0
            };
            id_at(
                &format,
                (worker, variant, present + random.random_range(0..30)),
                random,
            )
        })
        .collect();
    let after = random
        .random_bool(0.3)
        .then(|| present + random.random_range(0..20));
    format.start_after = after.map(|tick| StartAfter {
        id: String::new(),
        tick,
    });
    let format = Arc::new(format);
    let left_out: BTreeSet<Place> = excluded.iter().map(|id| place(&format, *id)).collect();
    let excluded: Vec<u128> = excluded.into_iter().collect();
    let (hand, mut horizon, mut all) = (ManualClock::at(START), None, Vec::new());
    for _ in 0..LIVES {
        let life = Life::begin(&format, lanes, horizon, &hand, &excluded);
        let now = format.ticks_at(life.clock.now().into()).expect("a tick");
        let workers = life
            .minter
            .lanes()
            .expect("it is sequenced")
            .workers()
            .to_vec();
        let is_held = |(worker, _, tick): &Place| {
            *tick >= now && workers.iter().any(|own| u128::from(*own) == *worker)
        };
        let holds_some = left_out.iter().any(is_held);
        for _ in 0..STEPS {
            hand.advance(tick.duration() * random.random_range(0..4) / 2);
            let types: Vec<_> = format
                .variants
                .iter()
                .filter_map(|variant| variant.name.as_deref())
                .collect();
            let of_type = (!types.is_empty()).then(|| types[random.random_range(0..types.len())]);
            let count = if random.random_bool(0.2) {
                random.random_range(1..400)
            } else {
                random.random_range(1..20)
            };
            let ids = life.mint(count, of_type, &hand);
            if holds_some {
                assert_a_run(&format, &ids);
            }
            all.extend(ids);
        }
        tally.held_back += usize::from(after.is_some());
        horizon = Some(life.session.horizon());
    }
    let places: BTreeSet<Place> = all.iter().map(|id| place(&format, *id)).collect();
    assert!(
        places.is_disjoint(&left_out),
        "an excluded tick was minted in"
    );
    assert!(
        after.is_none_or(|after| places.iter().all(|(_, _, tick)| *tick > after)),
        "minted at or below start_after"
    );
    let ids = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), ids, "an id came twice");
    let mut minted: BTreeMap<(u128, usize), Vec<u128>> = BTreeMap::new();
    places.iter().for_each(|(worker, variant, tick)| {
        minted.entry((*worker, *variant)).or_default().push(*tick)
    });
    for (worker, variant, tick) in &left_out {
        let ticks = minted
            .get(&(*worker, *variant))
            .map_or(&[][..], Vec::as_slice);
        let (first, last) = (ticks.first(), ticks.last());
        tally.passed += usize::from(
            first.is_some_and(|first| first < tick) && last.is_some_and(|last| last > tick),
        );
    }
    tally.ids += ids;
    tally.excluded += left_out.len();
}

#[test]
fn no_id_of_another_generator_is_minted_whatever_it_has_issued_and_whenever_a_start_is_killed() {
    let (seeds, is_whole) = match std::env::var("EXCLUSIONS_SEED") {
        Ok(seed) => seed
            .parse()
            .map(|seed| (seed..=seed, false))
            .expect("EXCLUSIONS_SEED is a number"),
        Err(_) => (0..=SEEDS, true),
    };
    let mut tally = Tally::default();
    for seed in seeds {
        println!("EXCLUSIONS_SEED={seed}");
        live(seed, &mut tally);
    }
    println!("{tally:?}");
    let is_enough = tally.ids > 100_000
        && tally.excluded > 10_000
        && tally.passed > 1_000
        && tally.held_back > 500;
    assert!(!is_whole || is_enough, "{tally:?}");
}

/// Several threads mint around the same excluded ticks. Every second tick is excluded, so each
/// thread passes many of these ticks, and threads often meet at one.
#[test]
fn callers_at_once_get_runs_that_touch_no_excluded_tick() {
    let preset = PRESETS
        .iter()
        .find(|preset| preset.name == "snowflake")
        .expect("a built-in format");
    let format = Arc::new(Format::built_in(preset.name).expect("it is sound"));
    let random = &mut StdRng::seed_from_u64(1);
    let present = format.ticks_at(START.into()).expect("a tick");
    let left_out: BTreeSet<Place> = (0..400)
        .flat_map(|tick| [0, 1].map(|worker| (worker, 0, present + 1 + 2 * tick)))
        .collect();
    let mut excluded: Vec<u128> = left_out
        .iter()
        .map(|at| id_at(&format, *at, random))
        .collect();
    excluded.sort_unstable();
    let hand = ManualClock::at(START);
    let life = Life::begin(&format, 2, None, &hand, &excluded);
    mint_up_to(
        &life.session,
        life.clock.now(),
        START.after(Duration::from_secs(3600)),
    );
    let mut all: Vec<u128> = thread::scope(|scope| {
        let caller = |caller: u64| {
            let (life, hand, format) = (&life, &hand, &format);
            scope.spawn(move || {
                let random = &mut StdRng::seed_from_u64(caller);
                let mut all = Vec::new();
                for _ in 0..300 {
                    hand.advance(Duration::from_micros(random.random_range(0..1_000)));
                    let ids = life.mint(random.random_range(1..4_000), None, hand);
                    assert_a_run(format, &ids);
                    all.extend(ids);
                }
                all
            })
        };
        let callers: Vec<_> = (0..4).map(caller).collect();
        callers
            .into_iter()
            .flat_map(|caller| caller.join().expect("no panic"))
            .collect()
    });
    let places: BTreeSet<Place> = all.iter().map(|id| place(&format, *id)).collect();
    assert!(
        places.is_disjoint(&left_out),
        "an excluded tick was minted in"
    );
    assert!(places.len() > 100, "{} ticks", places.len());
    let ids = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), ids, "an id came twice");
}
