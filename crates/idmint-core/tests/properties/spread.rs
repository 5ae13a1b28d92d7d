//! Checks that ids that are minted one at a time, each in its own tick, do not all end in the same
//! low bits.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use idmint_core::id::{FieldKind, Format, PRESETS};
use idmint_core::minting::{Durable, LaneCount, LaneRule, Lanes, Mint, MintSettings, SessionStart};
use idmint_core::time::{ManualClock, UnixNanos};

const IDS: u32 = 10_000;
const START: UnixNanos = UnixNanos::from_seconds(1_800_000_000);

/// Mints ids one at a time, with the pause `apart` before each, and returns their sequences.
fn lone_sequences(format: &Arc<Format>, apart: Duration) -> Vec<u128> {
    let hand = ManualClock::at(START);
    let rule = LaneRule {
        slot: 0,
        slots: 1,
        lanes: LaneCount::UpTo(8),
        shard: 0,
    };
    let settings = MintSettings {
        wait_max: Duration::from_millis(250),
        lead_max: Duration::from_millis(5),
        window: Duration::from_secs(3),
        shard: 0,
    };
    let mut mint = Mint::new(Arc::new(hand.clock()), settings);
    let minter = mint.add_sequenced(Arc::clone(format), Lanes::of(format, &rule).expect("fits"));
    let session = mint.prepare(SessionStart::at(START));
    let plan = session.plan_extension(START, START.after(apart * (IDS + 1)));
    let durable =
        Durable::write(plan, |_| Ok::<_, std::convert::Infallible>(())).expect("infallible");
    session.raise(&durable, START);
    mint.begin(session);
    let one = minter
        .request(NonZeroU32::MIN, None)
        .expect("a sound request");
    let fields = format.variants[0].layout.fields();
    let sequence = fields
        .iter()
        .position(|field| field.kind == FieldKind::Sequence)
        .expect("it has one");
    let mint_one = || {
        hand.advance(apart);
        let mut granted = minter.reserve(&one).expect("the horizon is far away");
        let mut id = [0];
        assert_eq!((granted.due, granted.batch.fill(&mut id)), (None, 1));
        format.split(id[0]).expect("an id").values[sequence]
    };
    (0..IDS).map(|_| mint_one()).collect()
}

/// Returns a measure of how unevenly the remainders modulo `modulus` are distributed: the
/// chi-square statistic in standard deviations from its mean. Random numbers give about 0.
fn unevenness(numbers: &[u128], modulus: u32) -> f64 {
    let mut counts = vec![0_u32; usize::try_from(modulus).expect("small")];
    for number in numbers {
        counts[usize::try_from(number % u128::from(modulus)).expect("small")] += 1;
    }
    let (expected, freedom) = (f64::from(IDS) / f64::from(modulus), f64::from(modulus - 1));
    let chi_square: f64 = counts
        .iter()
        .map(|count| (f64::from(*count) - expected).powi(2) / expected)
        .sum();
    (chi_square - freedom) / (2.0 * freedom).sqrt()
}

#[test]
fn lone_ids_use_every_power_of_two_up_to_the_spread_fairly() {
    let formats = PRESETS
        .iter()
        .map(|preset| Format::built_in(preset.name).expect("is built in"));
    let spread: Vec<_> = formats
        .filter(|format| format.sequence_spread > 1)
        .map(Arc::new)
        .collect();
    let names: Vec<_> = spread
        .iter()
        .map(|format| (format.name.as_str(), format.sequence_spread))
        .collect();
    let expected = [
        ("conjunction-v1", 64),
        ("snowflake", 64),
        ("twitter", 64),
        ("instagram", 64),
        ("js53", 16),
    ];
    assert_eq!(names, expected);
    for format in &spread {
        for millis in [1, 20, 50, 1_000, 60_000] {
            let sequences = lone_sequences(format, Duration::from_millis(millis));
            let ticks_apart = format
                .tick
                .map(|tick| Duration::from_millis(millis) >= tick.duration());
            let greatest = *sequences.iter().max().expect("there are some");
            assert!(
                ticks_apart == Some(false) || greatest < u128::from(format.sequence_spread),
                "{greatest} of {names:?}"
            );
            for bits in 1..=format.sequence_spread.ilog2() {
                let unevenness = unevenness(&sequences, 1 << bits);
                assert!(
                    unevenness < 4.0,
                    "{} every {millis} ms, modulo 2^{bits}: {unevenness:.1}",
                    format.name
                );
            }
        }
    }
}
