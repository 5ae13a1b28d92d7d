//! Kills, restarts and clocks that jump: whatever comes, no id comes twice.
//!
//! A seeded simulation of one node. The disk is one number that may refuse; the clock is a hand. Every id of every life
//! is kept and compared. A failing seed replays: `RESTARTS_SEED=7 cargo test --test properties restarts`.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use idmint::id::{Format, FormatDefinition, PRESETS};
use idmint::minting::{
    Denied, Durable, HorizonPlan, LaneCount, LaneRule, Lanes, Mint, MintSettings, Minter, Session, SessionStart,
};
use idmint::time::{Clock, ManualClock, UnixNanos};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SEEDS: u64 = 300;
const LIVES: usize = 12;
const STEPS: usize = 40;

/// What survives a kill.
#[derive(Default)]
struct Disk {
    horizon: Option<UnixNanos>,
}

/// One life of the program, from a start to a kill.
struct Life {
    clock: Arc<Clock>,
    /// One for each format, in order.
    minters: Vec<Arc<Minter>>,
    session: Arc<Session>,
}

/// Everything that was ever minted.
#[derive(Default)]
struct Minted {
    ids: HashSet<(usize, u128)>,
}

/// The disk refused, which ends a life.
struct Refused;

fn formats() -> Vec<Arc<Format>> {
    let preset = |name: &str| {
        let preset = PRESETS.iter().find(|preset| preset.name == name).expect("a built-in format");
        FormatDefinition::from_toml(name, preset.toml).expect("parses").compile(name).expect("is sound")
    };
    let odd = r#"
        summary = "an odd tick"
        rule = "sequenced"
        tick = "7ms"
        epoch = "2020-01-01T00:00:00.003Z"
        fields = [ { name = "time", kind = "time", bits = 40 }, { name = "sequence", kind = "sequence", cardinality = 37 } ]
        encodings = ["decimal"]"#;
    let odd = FormatDefinition::from_toml("odd", odd).expect("parses").compile("odd").expect("is sound");
    let presets = ["payment", "snowflake", "siq", "conjunction-v1"].map(preset);
    presets.into_iter().chain([odd]).map(Arc::new).collect()
}

impl Disk {
    /// Makes a plan durable, or refuses, having written it or not.
    fn write(&mut self, plan: HorizonPlan, random: &mut StdRng) -> Result<Durable<HorizonPlan>, Refused> {
        Durable::write(plan, |plan| {
            assert!(self.horizon.is_none_or(|horizon| plan.horizon() >= horizon), "a horizon is never lowered");
            let fails = random.random_bool(0.05);
            if !fails || random.random_bool(0.5) {
                self.horizon = Some(plan.horizon());
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
        let rule = LaneRule { slot: 0, slots: 1, lanes: LaneCount::UpTo(2), shard: 0 };
        let settings = MintSettings {
            wait_max: Duration::from_millis(250),
            lead_max: Duration::from_millis(5),
            window: Duration::from_secs(3),
            shard: 0,
        };
        let clock = Arc::new(hand.clock());
        let mut mint = Mint::new(Arc::clone(&clock), settings);
        let minter = |format| mint.add_sequenced(Arc::clone(format), Lanes::of(format, &rule).expect("fits"));
        let minters = formats.iter().map(minter).collect();
        let now = clock.now();
        let start = disk.horizon.map_or(now.ceil_to_second(), |horizon| horizon.max(now));
        let session = mint.prepare(SessionStart::at(start));
        let durable = disk.write(session.plan_extension(now, start), random)?;
        session.raise(&durable, now);
        mint.begin(Arc::clone(&session));
        Ok(Life { clock, minters, session })
    }

    /// Mints once, extending the horizon as often as it takes.
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
        let of_type = definition.has_types().then_some(["message", "user", "content"][random.random_range(0..3)]);
        let request = minter.request(NonZeroU32::new(count).expect("not zero"), of_type).expect("a sound request");
        loop {
            match minter.reserve(&request) {
                Ok(mut granted) => {
                    let mut ids = vec![0; usize::try_from(count).expect("small")];
                    assert_eq!(granted.batch.fill(&mut ids), ids.len());
                    minted.take_in(format, definition, &ids, disk.horizon.expect("something is durable"));
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
            assert!(self.ids.insert((format, *id)), "{} {id} was minted twice", definition.name);
            let parts = definition.split(*id).expect("what is minted splits");
            assert!(parts.time.expect("has a time") < durable.into(), "minted above what is durable");
        }
    }
}

fn live(seed: u64) {
    let random = &mut StdRng::seed_from_u64(seed);
    let formats = formats();
    let hand = ManualClock::at(UnixNanos::from_seconds(1_800_000_000));
    let mut disk = Disk::default();
    let mut minted = Minted::default();
    for _ in 0..LIVES {
        if random.random_bool(0.3) {
            step_the_wall_clock(&hand, random);
        }
        // A start that finds its horizon more than 5 s ahead waits for its clock.
        if let Some(horizon) = disk.horizon.filter(|horizon| *horizon > hand.wall().after(Duration::from_secs(5))) {
            hand.advance(horizon.since(hand.wall().after(Duration::from_secs(5))));
        }
        let Ok(life) = Life::begin(&formats, &hand, &mut disk, random) else { continue };
        for _ in 0..random.random_range(1..STEPS) {
            hand.advance(Duration::from_micros(random.random_range(0..50_000)));
            if random.random_bool(0.02) {
                step_the_wall_clock(&hand, random);
                life.clock.observe(Duration::from_secs(5));
            }
            let count = if random.random_bool(0.1) { random.random_range(1..3000) } else { random.random_range(1..20) };
            if life.mint(random.random_range(0..formats.len()), count, &mut disk, random, &mut minted).is_err() {
                break;
            }
        }
    }
    assert!(minted.ids.len() > 100, "seed {seed} minted next to nothing");
}

fn step_the_wall_clock(hand: &ManualClock, random: &mut StdRng) {
    let by = Duration::from_millis(random.random_range(0..100_000));
    hand.set_wall(if random.random_bool(0.5) { hand.wall().after(by) } else { hand.wall().before(by) });
}

#[test]
fn restarts_with_any_clock_repeat_no_id() {
    let seeds = match std::env::var("RESTARTS_SEED") {
        Ok(seed) => seed.parse().map(|seed| seed..=seed).expect("RESTARTS_SEED is a number"),
        Err(_) => 0..=SEEDS,
    };
    for seed in seeds {
        let replay = std::panic::catch_unwind(|| live(seed));
        assert!(replay.is_ok(), "replay with RESTARTS_SEED={seed}");
    }
}
