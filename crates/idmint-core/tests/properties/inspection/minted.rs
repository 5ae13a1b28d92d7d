//! Generates columns of ids like those of real generators. A few workers mint the ids during a span
//! of time, with counters that start again at zero.

use std::collections::BTreeMap;

use idmint_core::id::{Encoding, FieldKind, Format, Rule};
use idmint_core::time::{UnixNanos, UnixTime};
use rand::RngExt;
use rand::rngs::StdRng;

/// The time span in which the ids of a column were minted.
pub(super) struct Span {
    pub(super) name: &'static str,
    /// The age of the newest id, in seconds.
    until: u64,
    seconds: u64,
}

const DAY: u64 = 86_400;

pub(super) const SPANS: [Span; 8] = [
    Span {
        name: "one batch",
        until: 1,
        seconds: 0,
    },
    Span {
        name: "a minute",
        until: 5,
        seconds: 60,
    },
    Span {
        name: "a day",
        until: 60,
        seconds: DAY,
    },
    Span {
        name: "a month",
        until: 600,
        seconds: 30 * DAY,
    },
    Span {
        name: "a year",
        until: 7200,
        seconds: 365 * DAY,
    },
    Span {
        name: "last month",
        until: 30 * DAY,
        seconds: 5 * DAY,
    },
    Span {
        name: "last year",
        until: 400 * DAY,
        seconds: DAY,
    },
    Span {
        name: "long ago",
        until: 1300 * DAY,
        seconds: 30 * DAY,
    },
];

/// Returns `count` texts of a format in one encoding, in the order in which they were minted.
pub(super) fn column_of(
    format: &Format,
    encoding: &Encoding,
    count: usize,
    workers: usize,
    span: &Span,
    now: UnixNanos,
    random: &mut StdRng,
) -> Vec<String> {
    let until = now.get() - span.until * 1_000_000_000;
    let least = u64::try_from(format.epoch.nanos().max(0)).unwrap();
    let from = until
        .saturating_sub(span.seconds * 1_000_000_000)
        .max(least);
    let until = until.max(from);
    let mut times: Vec<u64> = (0..count)
        .map(|_| random.random_range(from..=until))
        .collect();
    times.sort_unstable();
    // For each worker, the field values that are the same in all of its ids, such as its worker
    // number.
    let kept: Vec<BTreeMap<String, u128>> = (0..workers)
        .map(|at| {
            let fields = format
                .variants
                .iter()
                .flat_map(|variant| variant.layout.fields());
            let of_field = |field: &idmint_core::id::Field| match field.kind {
                FieldKind::Worker if field.max < 1 << 16 => {
                    (at as u128 + u128::from(format.first_worker)).min(field.max)
                }
                FieldKind::Ledger | FieldKind::Worker | FieldKind::Shard => {
                    random.random_range(0..=field.max)
                }
                FieldKind::Sequence
                    if format.rule == Rule::DecodeOnly && format.name != "sonyflake" =>
                {
                    random.random_range(0..=field.max / 2)
                }
                _ => 0,
            };
            fields
                .map(of_field)
                .zip(
                    format
                        .variants
                        .iter()
                        .flat_map(|variant| variant.layout.fields()),
                )
                .map(|(value, field)| (field.name.clone(), value))
                .collect()
        })
        .collect();
    let mut counters: BTreeMap<(usize, u128), u128> = BTreeMap::new();
    let mut before: Option<(u128, u128)> = None;
    let assigned: Vec<_> = format
        .variants
        .iter()
        .filter(|variant| variant.assigned)
        .collect();
    let mut id = |at: u64, random: &mut StdRng| {
        let worker = random.random_range(0..workers);
        let ticks = format
            .ticks_at(UnixTime::from(UnixNanos::new(at)))
            .unwrap_or(0);
        let layout = &assigned[worker % assigned.len()].layout;
        let is_decoded = format.rule == Rule::DecodeOnly;
        let counted = counters
            .entry((worker, if is_decoded { 0 } else { ticks }))
            .or_insert_with(|| {
                if !is_decoded && format.sequence_spread > 1 {
                    u128::from(random.random_range(0..format.sequence_spread))
                } else {
                    0
                }
            });
        *counted += 1;
        let values: Vec<u128> = layout
            .fields()
            .iter()
            .map(|field| match (field.constant, field.kind) {
                (Some(constant), _) => constant,
                (None, FieldKind::Time) => ticks / field.scale % (field.max + 1),
                // A UUID generator chooses its clock sequence once, when it starts.
                (None, FieldKind::Sequence) if format.name.starts_with("uuid") => {
                    kept[worker][&field.name]
                }
                (None, FieldKind::Sequence) => {
                    (kept[worker][&field.name] + *counted - 1) % (field.max + 1)
                }
                (None, FieldKind::Worker | FieldKind::Shard | FieldKind::Ledger) => {
                    kept[worker][&field.name]
                }
                (None, FieldKind::Object) if format.rule == Rule::Grouped => {
                    random.random_range(1..70_000)
                }
                (None, FieldKind::Object) if format.rule == Rule::Sequenced => 0,
                (None, _) => random.random_range(0..=field.max),
            })
            .collect();
        let id = layout.pack(&values).unwrap();
        // With a single worker, ids increase within a tick. Some generators increment the random
        // bits instead of drawing them again.
        let id = match before {
            Some((tick, last)) if tick == ticks && format.name == "ulid" && workers == 1 => {
                last + 1
            }
            _ => id,
        };
        before = Some((ticks, id));
        id
    };
    times
        .into_iter()
        .map(|at| encoding.to_text(id(at, random)))
        .collect()
}
