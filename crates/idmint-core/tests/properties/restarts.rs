//! Checks that no id is minted twice, even if the process is killed and restarted and the clock
//! jumps.
//!
//! Each seed simulates one node. The simulated disk holds only the horizon and the floor, and
//! writing to it may fail. The test also sets the clock. The formats are built-in ones and
//! generated ones, with ticks from 1 ns to 1 h and any number of lanes (worker numbers). Sometimes
//! the data folder is lost, or is restored as documented.
//!
//! The test keeps all ids of a seed and compares them at the end. To replay a failing seed:
//! `RESTARTS_SEED=7 cargo test --test properties restarts`.

use std::num::NonZeroU32;
use std::ops::AddAssign;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use idmint_core::id::{Format, FormatDefinition, PRESETS};
use idmint_core::minting::{
    Denied, Durable, HorizonPlan, LaneCount, LaneRule, Lanes, Mint, MintSettings, Minter, Session,
    SessionStart,
};
use idmint_core::time::{Clock, ManualClock, UnixNanos, UnixTime};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

const SEEDS: u64 = 8_900;
const LIVES: usize = 12;
/// A process takes fewer than this number of steps before it is killed. Each step mints once. The
/// first seeds have more steps.
const STEPS: usize = 12;
const STEPS_OF_LONG_SEEDS: usize = 40;
const LONG_SEEDS: u64 = 300;

/// The data on the simulated disk, which survives a kill.
#[derive(Default)]
struct Disk {
    horizon: Option<UnixNanos>,
    floor: Option<UnixNanos>,
}

/// The totals over all seeds, which show how often each situation occurred.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    lives: u64,
    ids: u64,
    lost_folders: u64,
    restores: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, more: Tally) {
        self.lives += more.lives;
        self.ids += more.ids;
        self.lost_folders += more.lost_folders;
        self.restores += more.restores;
    }
}

/// One life of the process, from its start until it is killed.
struct Life {
    clock: Arc<Clock>,
    /// The minters of all formats, in the order of the formats.
    minters: Vec<Arc<Minter>>,
    session: Arc<Session>,
}

/// All ids that were ever minted.
#[derive(Default)]
struct Minted {
    /// Each id with the index of its format. The test compares all ids at the end.
    ids: Vec<(usize, u128)>,
    /// The greatest time in any id.
    newest: Option<UnixTime>,
}

/// The error for a write that the simulated disk refused. The process exits after this error.
struct Refused;

pub(crate) fn formats(random: &mut StdRng) -> Vec<Arc<Format>> {
    let preset = |name: &str| {
        let preset = PRESETS
            .iter()
            .find(|preset| preset.name == name)
            .expect("a built-in format");
        FormatDefinition::from_toml(name, preset.toml)
            .expect("parses")
            .compile(name)
            .expect("is sound")
    };
    let odd = r#"
        summary = "an odd tick"
        rule = "sequenced"
        tick = "7ms"
        epoch = "2020-01-01T00:00:00.003Z"
        fields = [ { name = "time", kind = "time", bits = 40 }, { name = "sequence", kind = "sequence", cardinality = 37 } ]
        encodings = ["decimal"]"#;
    let odd = FormatDefinition::from_toml("odd", odd)
        .expect("parses")
        .compile("odd")
        .expect("is sound");
    let presets = ["payment", "snowflake", "siq", "conjunction-v1"].map(preset);
    let drawn = [0, 1, 2].map(|_| drawn_format(random));
    presets
        .into_iter()
        .chain([odd])
        .chain(drawn)
        .map(Arc::new)
        .collect()
}

/// Draws a format with a random tick, order of fields, and strides.
fn drawn_format(random: &mut StdRng) -> Format {
    // The ticks to choose from, each with the maximum number of values of a sequence. With ticks of
    // a few nanoseconds, more values are refused, because 64-bit stamps would not last ten years.
    let ticks = [
        ("1ns", 58),
        ("7ns", 409),
        ("100ns", 5_000),
        ("3us", 5_000),
        ("1s/65536", 5_000),
        ("1ms", 5_000),
        ("99ms", 5_000),
        ("1s/3", 5_000),
        ("7s", 5_000),
        ("60s", 5_000),
        ("3600s", 5_000),
    ];
    let (tick, sequence_max) = ticks[random.random_range(0..ticks.len())];
    let sequence: u128 = random.random_range(1..=sequence_max);
    let spread = 1 << random.random_range(0..=(sequence / 4).checked_ilog2().unwrap_or(0));
    let mut fields = [
        ("time", 1_u128 << 63),
        ("worker", random.random_range(8..40)),
        ("sequence", sequence),
    ]
    .map(|field| (field, 0));
    fields.shuffle(random);
    let mut stride = 1;
    for ((_, values), of_field) in fields.iter_mut().rev() {
        stride *= random.random_range(1..4);
        *of_field = stride;
        stride *= *values;
    }
    let field = |((name, values), stride): &((&str, u128), u128)| {
        format!(
            "{{ name = '{name}', kind = '{name}', cardinality = '{values}', stride = '{stride}' }}"
        )
    };
    let text = format!(
        "summary = ''\nrule = 'sequenced'\ntick = '{tick}'\nepoch = '2020-01-01T00:00:00.003Z'\nencodings = ['decimal']\n\
         sequence_spread = {spread}\nfields = [{}]",
        fields.iter().map(field).collect::<Vec<_>>().join(", ")
    );
    FormatDefinition::from_toml("drawn", &text)
        .expect(&text)
        .compile("drawn")
        .expect(&text)
}

impl Disk {
    /// Writes a plan to the simulated disk, or fails. After a failure, the plan may or may not be
    /// on the disk, as with a real disk.
    fn write(
        &mut self,
        plan: HorizonPlan,
        random: &mut StdRng,
    ) -> Result<Durable<HorizonPlan>, Refused> {
        Durable::write(plan, |plan| {
            assert!(
                self.horizon.is_none_or(|horizon| plan.horizon() >= horizon),
                "a horizon is never lowered"
            );
            let fails = random.random_bool(0.05);
            if !fails || random.random_bool(0.5) {
                (self.horizon, self.floor) = (Some(plan.horizon()), plan.floor());
            }
            if fails { Err(Refused) } else { Ok(()) }
        })
    }
}

impl Life {
    fn begin(
        formats: &[Arc<Format>],
        hand: &ManualClock,
        disk: &mut Disk,
        random: &mut StdRng,
    ) -> Result<Life, Refused> {
        let rule = LaneRule {
            slot: 0,
            slots: 1,
            lanes: LaneCount::UpTo(random.random_range(1..4)),
            shard: 0,
        };
        let settings = MintSettings {
            wait_max: Duration::from_millis(250),
            lead_max: Duration::from_millis(5),
            window: Duration::from_secs(3),
            shard: 0,
        };
        let clock = Arc::new(hand.clock());
        let mut mint = Mint::new(Arc::clone(&clock), settings);
        let minter = |format| {
            mint.add_sequenced(Arc::clone(format), Lanes::of(format, &rule).expect("fits"))
        };
        let minters = formats.iter().map(minter).collect();
        let now = clock.now();
        let start = disk
            .horizon
            .map_or(now.ceil_to_second(), |horizon| horizon.max(now));
        let floor = if disk.horizon.is_some() {
            disk.floor
        } else {
            Some(start)
        };
        let session = mint.prepare(SessionStart::at(start).above_floor(floor));
        let durable = disk.write(session.plan_extension(now, start), random)?;
        session.raise(&durable, now);
        mint.begin(Arc::clone(&session));
        Ok(Life {
            clock,
            minters,
            session,
        })
    }

    /// Mints the ids of one request, and extends the horizon as often as the request needs.
    fn mint(
        &self,
        format: usize,
        count: u32,
        disk: &mut Disk,
        random: &mut StdRng,
        minted: &mut Minted,
    ) -> Result<(), Refused> {
        let minter = &self.minters[format];
        let definition = &minter.counted().format;
        let of_type = definition
            .has_types()
            .then_some(["message", "user", "content"][random.random_range(0..3)]);
        let request = minter
            .request(NonZeroU32::new(count).expect("not zero"), of_type)
            .expect("a sound request");
        loop {
            match minter.reserve(&request) {
                Ok(mut granted) => {
                    let mut ids = vec![0; usize::try_from(count).expect("small")];
                    assert_eq!(granted.batch.fill(&mut ids), ids.len());
                    minted.take_in(
                        format,
                        definition,
                        &ids,
                        disk.horizon.expect("something is durable"),
                    );
                    return Ok(());
                }
                Err(Denied::Refused(_)) => return Ok(()),
                Err(Denied::Horizon { needed }) => {
                    let now = self.clock.now();
                    let durable = disk.write(self.session.plan_extension(now, needed), random)?;
                    self.session.raise(&durable, now);
                }
            }
        }
    }
}

impl Minted {
    fn take_in(&mut self, format: usize, definition: &Format, ids: &[u128], durable: UnixNanos) {
        for id in ids {
            self.ids.push((format, *id));
            let time = definition
                .split(*id)
                .expect("what is minted splits")
                .time
                .expect("has a time");
            // If a tick is not a whole number of nanoseconds, it begins up to one nanosecond before
            // its rounded time.
            let rounded = i128::from(definition.tick.is_some_and(|tick| tick.parts() > 1));
            assert!(
                time.nanos() - rounded < UnixTime::from(durable).nanos(),
                "minted above what is durable"
            );
            self.newest = self.newest.max(Some(time));
        }
    }

    /// Returns the number of ids. Panics if the same id was minted twice.
    fn count_different(&mut self, formats: &[Arc<Format>]) -> usize {
        self.ids.sort_unstable();
        if let Some([(format, id), _]) = self.ids.array_windows().find(|[one, next]| one == next) {
            panic!("{} {id} was minted twice", formats[*format].name);
        }
        self.ids.len()
    }
}

impl Disk {
    /// Loses the data folder. In half of the cases, the process starts without a record of its ids,
    /// while its clock is right. In the other half, an operator restores the service as documented:
    /// with a floor that is later than both the newest id and the clock.
    fn lose(
        &mut self,
        hand: &ManualClock,
        random: &mut StdRng,
        newest: UnixTime,
        tally: &mut Tally,
    ) {
        let newest = UnixNanos::new(u64::try_from(newest.nanos()).expect("after 1970"));
        *self = Disk::default();
        if random.random_bool(0.5) {
            // Set the clock later than the newest id. In practice, some time passes between losing
            // a data folder and starting again.
            hand.advance(newest.since(hand.wall()) + Duration::from_nanos(1));
            tally.lost_folders += 1;
        } else {
            let window = Duration::from_secs(3);
            let floor = newest
                .after(window)
                .max(hand.wall().after(Duration::from_secs(10)));
            *self = Disk {
                horizon: Some(floor),
                floor: Some(floor),
            };
            tally.restores += 1;
        }
    }
}

fn live(seed: u64) -> Tally {
    let tally = &mut Tally::default();
    let random = &mut StdRng::seed_from_u64(seed);
    let formats = formats(random);
    let steps = if seed < LONG_SEEDS {
        STEPS_OF_LONG_SEEDS
    } else {
        STEPS
    };
    let hand = ManualClock::at(UnixNanos::from_seconds(1_800_000_000));
    let mut disk = Disk::default();
    let mut minted = Minted::default();
    for _ in 0..LIVES {
        if random.random_bool(0.3) {
            step_the_wall_clock(&hand, random);
        }
        if let Some(newest) = minted.newest.filter(|_| random.random_bool(0.1)) {
            disk.lose(&hand, random, newest, tally);
        }
        // If the horizon is more than 5 s ahead of the clock, a starting process waits.
        if let Some(horizon) = disk
            .horizon
            .filter(|horizon| *horizon > hand.wall().after(Duration::from_secs(5)))
        {
            hand.advance(horizon.since(hand.wall().after(Duration::from_secs(5))));
        }
        let Ok(life) = Life::begin(&formats, &hand, &mut disk, random) else {
            continue;
        };
        tally.lives += 1;
        for _ in 0..random.random_range(1..steps) {
            hand.advance(Duration::from_micros(random.random_range(0..50_000)));
            if random.random_bool(0.02) {
                step_the_wall_clock(&hand, random);
                life.clock.observe(Duration::from_secs(5));
            }
            let count = if random.random_bool(0.1) {
                random.random_range(1..3000)
            } else {
                random.random_range(1..20)
            };
            if life
                .mint(
                    random.random_range(0..formats.len()),
                    count,
                    &mut disk,
                    random,
                    &mut minted,
                )
                .is_err()
            {
                break;
            }
        }
    }
    let ids = minted.count_different(&formats);
    assert!(ids > 20, "seed {seed} minted next to nothing");
    tally.ids += u64::try_from(ids).expect("fits");
    *tally
}

fn live_all(seeds: impl Iterator<Item = u64>) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        tally += catch_unwind(|| live(seed))
            .unwrap_or_else(|_| panic!("replay with RESTARTS_SEED={seed}"));
    }
    tally
}

fn step_the_wall_clock(hand: &ManualClock, random: &mut StdRng) {
    let by = Duration::from_millis(random.random_range(0..100_000));
    hand.set_wall(if random.random_bool(0.5) {
        hand.wall().after(by)
    } else {
        hand.wall().before(by)
    });
}

#[test]
fn restarts_with_any_clock_repeat_no_id() {
    let seeds = match std::env::var("RESTARTS_SEED") {
        Ok(seed) => seed
            .parse()
            .map(|seed| seed..=seed)
            .expect("RESTARTS_SEED is a number"),
        Err(_) => 0..=SEEDS,
    };
    let is_whole = seeds.end() > seeds.start();
    let threads = thread::available_parallelism().map_or(2, usize::from);
    let mut tally = Tally::default();
    thread::scope(|scope| {
        let shares = (0..threads).map(|first| seeds.clone().skip(first).step_by(threads));
        let running: Vec<_> = shares
            .map(|share| scope.spawn(|| live_all(share)))
            .collect();
        running
            .into_iter()
            .for_each(|thread| tally += thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
    });
    println!("{tally:?}, no id twice");
    assert!(
        !is_whole || tally.lives >= 100_000 && tally.lost_folders > 1_000 && tally.restores > 1_000,
        "{tally:?}"
    );
}
