//! Checks that the range of a time span contains exactly the ids that were minted in that span.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use idmint_core::id::{DomainHash, Format, FormatDefinition, PRESETS, RangeError, Rule};
use idmint_core::minting::{
    Denied, Durable, LaneCount, LaneRule, Lanes, Mint, MintSettings, Minter, Randomness,
    SessionStart,
};
use idmint_core::time::{ManualClock, UnixNanos, UnixTime};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const ORDERS: usize = 400;
const SPANS: usize = 2_000;

/// The instant at which the tests start to mint, 2027-01-15. They mint for about two minutes.
const BEGIN: UnixNanos = UnixNanos::from_seconds(1_800_000_000);

fn format(name: &str, toml: &str) -> Arc<Format> {
    Arc::new(
        FormatDefinition::from_toml(name, toml)
            .unwrap()
            .compile(name)
            .unwrap(),
    )
}

fn formats() -> Vec<Arc<Format>> {
    let odd = r#"
        summary = "a tick that no second is a multiple of, and constants around the time"
        rule = "sequenced"
        tick = "7ms"
        epoch = "2020-01-01T00:00:00.003Z"
        fields = [ { name = "region", kind = "constant", bits = 4, value = 9 },
                   { name = "time", kind = "time", bits = 40 },
                   { name = "version", kind = "constant", bits = 3, value = 5 },
                   { name = "sequence", kind = "sequence", cardinality = 37 } ]
        encodings = ["decimal"]"#;
    let minted = PRESETS
        .iter()
        .map(|preset| format(preset.name, preset.toml));
    let minted = minted.filter(|format| matches!(format.rule, Rule::Sequenced | Rule::Random));
    minted
        .filter(|format| format.leads_with_time())
        .chain([format("odd", odd)])
        .collect()
}

fn minters_on(hand: &ManualClock, formats: &[Arc<Format>]) -> Vec<Arc<Minter>> {
    let rule = LaneRule {
        slot: 0,
        slots: 1,
        lanes: LaneCount::UpTo(3),
        shard: 0,
    };
    let (wait_max, lead_max) = (Duration::from_millis(250), Duration::from_millis(5));
    let settings = MintSettings {
        wait_max,
        lead_max,
        window: Duration::from_secs(3),
        shard: 0,
    };
    let mut mint = Mint::new(Arc::new(hand.clock()), settings);
    let randomness = Randomness::seeded(1);
    let mut minter = |format: &Arc<Format>| match format.rule {
        Rule::Sequenced => {
            mint.add_sequenced(Arc::clone(format), Lanes::of(format, &rule).unwrap())
        }
        _ => mint.add_random(Arc::clone(format), randomness.clone()),
    };
    let minters = formats.iter().map(&mut minter).collect();
    let session = mint.prepare(SessionStart::at(hand.wall()));
    // Reserve an hour with a single horizon, because these tests do not cover the horizon itself.
    let needed = hand.wall().after(Duration::from_secs(3_600));
    let durable = Durable::write(session.plan_extension(hand.wall(), needed), |_| {
        Ok::<_, std::convert::Infallible>(())
    });
    session.raise(&durable.unwrap(), hand.wall());
    mint.begin(session);
    minters
}

/// Mints ids of each format at random times.
fn mint_at_random_moments(formats: &[Arc<Format>], random: &mut StdRng) -> Vec<Vec<u128>> {
    let hand = ManualClock::at(BEGIN);
    let minters = minters_on(&hand, formats);
    let mut minted = vec![Vec::new(); formats.len()];
    for _ in 0..ORDERS {
        hand.advance(Duration::from_nanos(random.random_range(0..600_000_000)));
        for ((format, minter), minted) in formats.iter().zip(&minters).zip(&mut minted) {
            let types: Vec<_> = format
                .variants
                .iter()
                .filter_map(|variant| variant.name.as_deref())
                .collect();
            let of_type = (!types.is_empty()).then(|| types[random.random_range(0..types.len())]);
            let count = NonZeroU32::new(random.random_range(1..20)).unwrap();
            let request = minter.request(count, of_type).unwrap();
            let request = request.for_domain(DomainHash::of("example.com", None).unwrap());
            match minter.reserve(&request) {
                Ok(mut granted) => {
                    let mut ids = vec![0; usize::try_from(count.get()).unwrap()];
                    assert_eq!(granted.batch.fill(&mut ids), ids.len());
                    minted.extend(ids);
                }
                Err(Denied::Refused(_)) => {}
                Err(Denied::Horizon { needed }) => panic!("the horizon was raised beyond {needed}"),
            }
        }
    }
    minted
}

/// Draws the start or the end of a time span within the two minutes after `BEGIN`. It is either any
/// nanosecond, or an instant at or next to the time of an id.
fn edge(format: &Format, ids: &[u128], random: &mut StdRng) -> UnixTime {
    if random.random_bool(0.5) {
        return UnixTime::from(BEGIN).after(Duration::from_nanos(
            random.random_range(0..120_000_000_000),
        ));
    }
    let time = format
        .split(ids[random.random_range(0..ids.len())])
        .unwrap()
        .time
        .unwrap();
    UnixTime::from_nanos(time.nanos() + random.random_range(-1..=1))
}

#[test]
fn minted_ids_lie_in_a_range_exactly_when_their_times_lie_in_its_span() {
    let random = &mut StdRng::seed_from_u64(1);
    let formats = formats();
    for (format, ids) in formats.iter().zip(mint_at_random_moments(&formats, random)) {
        assert!(
            ids.len() > 1_000,
            "only {} ids of {}",
            ids.len(),
            format.name
        );
        for _ in 0..SPANS {
            let [from, to] = [edge(format, &ids, random), edge(format, &ids, random)];
            let range = match format.range(from, to) {
                Ok(range) => Some(range.least..=range.greatest),
                Err(RangeError::NotBefore { .. }) => continue,
                Err(RangeError::WithinOneTick { .. }) => None,
                Err(error) => panic!("{}: {error}", format.name),
            };
            for id in &ids {
                let time = format.split(*id).unwrap().time.unwrap();
                let is_in_span = from <= time && time < to;
                let is_in_range = range.as_ref().is_some_and(|range| range.contains(id));
                assert_eq!(
                    is_in_range, is_in_span,
                    "{} {id} of {time} in {from} to {to}",
                    format.name
                );
            }
        }
    }
}
