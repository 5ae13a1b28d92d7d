//! Checks that the rows of a batch contain exactly the ids of the batch, each once and in the same
//! order.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use idmint_core::id::{DomainHash, Format, FormatDefinition, PRESETS, Rule};
use idmint_core::minting::{
    Batch, Denied, Durable, LaneCount, LaneRule, Lanes, Mint, MintSettings, Minter, SessionStart,
};
use idmint_core::time::{ManualClock, UnixNanos};
use proptest::prelude::*;

const START: UnixNanos = UnixNanos::from_seconds(1_800_000_000);

/// Two custom formats. In the first, no batch fills a tick. In the second, every batch needs
/// several ticks, and the worker field comes after the sequence.
const CUSTOM: [(&str, &str); 2] = [
    (
        "wide",
        r#"
        summary = "22 bits of sequence"
        rule = "sequenced"
        tick = "1ms"
        epoch = "2020-01-01T00:00:00Z"
        fields = [{ name = "time", kind = "time", bits = 42 }, { name = "worker", kind = "worker", bits = 4 },
                  { name = "sequence", kind = "sequence", bits = 22 }]
        encodings = ["decimal"]
        "#,
    ),
    (
        "narrow",
        r#"
        summary = "Five ids in a tick, the worker last"
        rule = "sequenced"
        tick = "100us"
        epoch = "2020-01-01T00:00:00Z"
        fields = [{ name = "time", kind = "time", bits = 50 }, { name = "sequence", kind = "sequence", cardinality = 5 },
                  { name = "worker", kind = "worker", bits = 3 }]
        encodings = ["decimal"]
        "#,
    ),
];

fn formats() -> Vec<Arc<Format>> {
    let built_in = PRESETS.iter().map(|preset| (preset.name, preset.toml));
    let compile = |(name, toml)| {
        FormatDefinition::from_toml(name, toml)
            .unwrap()
            .compile(name)
            .unwrap()
    };
    let sequenced = built_in
        .chain(CUSTOM)
        .map(compile)
        .filter(|format| format.rule == Rule::Sequenced);
    sequenced.map(Arc::new).collect()
}

/// Returns a minter, the mint that created it, and the handle that controls their clock.
fn minter(format: &Arc<Format>) -> (Mint, Arc<Minter>, ManualClock) {
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
    let plan = session.plan_extension(START, START.after(Duration::from_secs(3_600)));
    let durable =
        Durable::write(plan, |_| Ok::<_, std::convert::Infallible>(())).expect("infallible");
    session.raise(&durable, START);
    mint.begin(session);
    (mint, minter, hand)
}

fn reserve(minter: &Minter, count: u32) -> Option<Batch> {
    let format = &minter.counted().format;
    let of_type = format.has_types().then_some("message");
    let request = minter
        .request(NonZeroU32::new(count).expect("not zero"), of_type)
        .expect("a sound request");
    match minter.reserve(&request.for_domain(DomainHash::DEVELOPMENT)) {
        Ok(granted) => Some(granted.batch),
        Err(Denied::Refused(_)) => None,
        Err(Denied::Horizon { .. }) => panic!("the horizon is an hour away"),
    }
}

fn ids_of(mut batch: Batch) -> Vec<u128> {
    let mut ids = vec![0; usize::try_from(batch.count()).expect("few")];
    assert_eq!(batch.fill(&mut ids), ids.len());
    ids
}

/// Returns the values of all fields except the sequence. These values must be the same for all ids
/// of a row.
fn place_of(format: &Format, id: u128) -> Vec<u128> {
    let mut values = format.split(id).expect("an id").values;
    let fields = format.variant_of(id).layout.fields();
    let sequence = fields
        .iter()
        .position(|field| field.kind == idmint_core::id::FieldKind::Sequence)
        .expect("it has one");
    values[sequence] = 0;
    values
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn the_rows_of_every_sequenced_format_are_the_ids_that_it_would_write(
        steps in prop::collection::vec((1_u32..3_000, 0_u64..20_000), 1..12),
    ) {
        let formats = formats();
        prop_assert!(formats.len() >= 9, "{}", formats.len());
        for format in &formats {
            let ((_one, texts, of_texts), (_other, rows, of_rows)) = (minter(format), minter(format));
            let (mut seen, mut minted) = (BTreeSet::new(), 0);
            for (count, micros) in &steps {
                of_texts.advance(Duration::from_micros(*micros));
                of_rows.advance(Duration::from_micros(*micros));
                let (whole, in_rows) = (reserve(&texts, *count), reserve(&rows, *count));
                prop_assert_eq!(whole.is_some(), in_rows.is_some(), "{}", format.name);
                let (Some(whole), Some(mut in_rows)) = (whole, in_rows) else { continue };
                let told = in_rows.rows_len(|row| usize::try_from(row.count).expect("few"));
                prop_assert_eq!(told, Some(u64::from(*count)));
                let mut expanded = Vec::new();
                while let Some(row) = in_rows.next_row() {
                    prop_assert_eq!(place_of(format, row.first), place_of(format, row.last()), "a row leaves its tick");
                    expanded.extend(row.values());
                    prop_assert_eq!(in_rows.count(), u64::from(*count) - expanded.len() as u64);
                }
                prop_assert_eq!(&expanded, &ids_of(whole), "{} of {}", count, format.name);
                minted += expanded.len();
                seen.extend(expanded);
            }
            prop_assert_eq!(seen.len(), minted, "an id of {} came twice", format.name);
        }
    }
}
