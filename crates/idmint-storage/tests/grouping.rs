//! Tests that reports are grouped exactly as a linear search through all anchors (the first reports
//! of conjunctions) would group them.
//!
//! The same reports are grouped in three ways: by the decision functions alone, with the records of
//! a store, and by the writer thread. Some reports arrive with an id, and in some requests the
//! reports keep their ids.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use idmint_core::id::{Format, FormatDefinition, PRESETS};
use idmint_core::time::{ManualClock, UnixNanos, UnixTime};
use idmint_records::conjunction::{
    Anchor, AnchorPlan, GroupRequest, Grouped, GroupedMinter, NewAnchors, NotedRule, Pair,
    PairOrder, Report, SentReport, Tca,
};
use idmint_storage::samples::memory_records;
use idmint_storage::{RecordPlan, RecordWriterHandle, Records};
use proptest::prelude::*;

const SECOND: i64 = 1_000_000;

/// 2016-12-31T23:59:58Z in microseconds, two seconds before the end of a day with a leap second.
const BASE: i64 = 1_483_228_798 * SECOND;

/// The pair of objects in most reports.
const PAIR: (u64, u64) = (25_544, 48_274);

/// A report. If it arrived with an id, `noted` is the second of that id, counted from the base.
#[derive(Debug, Clone, Copy)]
struct Sent {
    report: Report,
    noted: Option<i64>,
}

/// Reports that are sent in one request. If `keep` is `true`, each report keeps the id with which
/// it arrived. If not, each report joins the conjunction of its id from up to `reach` seconds away.
#[derive(Debug, Clone)]
struct Order {
    keep: bool,
    reach: u8,
    reports: Vec<Sent>,
}

/// Groups of requests. The requests of a group arrive together, and the groups arrive in order.
type Arrivals = Vec<Vec<Order>>;

/// Returns a time of closest approach. If `by_leap_second` is set, the first second after midnight
/// is written as the leap second, which is second 60 of the year before.
fn tca(delta: i64, by_leap_second: bool) -> UnixTime {
    let instant = UnixTime::from(Tca(BASE + delta));
    let text = instant.to_text(6).unwrap();
    let fraction = text
        .strip_prefix("2017-01-01T00:00:00")
        .filter(|_| by_leap_second);
    let read = fraction.map(|fraction| {
        UnixTime::from_utc_text(&format!("2016-12-31T23:59:60{fraction}")).unwrap()
    });
    read.unwrap_or(instant)
}

/// Returns times in microseconds from the base. The times are near whole seconds, near half
/// seconds, or anywhere.
fn deltas() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => (0..6_i64, -1..=1_i64).prop_map(|(seconds, beside)| seconds * SECOND + beside),
        2 => (0..12_i64, -1..=1_i64).prop_map(|(halves, beside)| halves * SECOND / 2 + beside),
        2 => -SECOND..7 * SECOND,
    ]
}

fn reports() -> impl Strategy<Value = Sent> {
    let noted = prop_oneof![1 => Just(None), 1 => (-1..=1_i64).prop_map(Some), 1 => (-1..8_i64).prop_map(Some)];
    (deltas(), any::<bool>(), any::<bool>(), 0..10_u8, noted).prop_map(
        |(delta, is_swapped, by_leap_second, other, noted)| {
            let secondary = if other == 0 { 7 } else { PAIR.1 };
            let (primary, secondary) = if is_swapped {
                (secondary, PAIR.0)
            } else {
                (PAIR.0, secondary)
            };
            let report = Report::new(tca(delta, by_leap_second), primary, secondary).unwrap();
            // Most reports that arrive with an id have one from a nearby second.
            let noted = noted.map(|second| {
                if second.abs() <= 1 {
                    delta.div_euclid(SECOND) + second
                } else {
                    second
                }
            });
            Sent { report, noted }
        },
    )
}

fn arrivals() -> impl Strategy<Value = Arrivals> {
    let reports = prop_oneof![3 => prop::collection::vec(reports(), 1), 1 => prop::collection::vec(reports(), 0..8)];
    let orders = (0..4_u8, reports).prop_map(|(keep, reports)| Order {
        keep: keep == 0,
        reach: if keep == 1 { 3 } else { 0 },
        reports,
    });
    prop::collection::vec(prop::collection::vec(orders, 1..5), 1..12)
}

fn minter(pair_order: PairOrder) -> Arc<GroupedMinter> {
    let preset = PRESETS
        .iter()
        .find(|preset| preset.name == "conjunction")
        .unwrap();
    let format: Format = FormatDefinition::from_toml(preset.name, preset.toml)
        .unwrap()
        .compile(preset.name)
        .unwrap();
    Arc::new(GroupedMinter::new(Arc::new(format), pair_order))
}

/// Returns the id for the objects of a report, in this second after the base.
fn id_at(minter: &GroupedMinter, report: &Report, second: i64) -> u128 {
    minter
        .id_of(&report.at(UnixTime::from(Tca(BASE + second * SECOND))))
        .unwrap()
}

fn request(minter: &Arc<GroupedMinter>, order: &Order) -> GroupRequest {
    let Order {
        keep,
        reach,
        reports,
    } = order;
    let sent_report = |Sent { report, noted }: &Sent| {
        let noted = noted.map(|second| id_at(minter, report, second));
        SentReport {
            noted,
            ..SentReport::new(*report)
        }
    };
    let request = GroupRequest::new(
        Arc::clone(minter),
        &reports.iter().map(sent_report).collect::<Vec<_>>(),
    )
    .unwrap();
    request.with_noted_rule(NotedRule {
        keep: *keep,
        must_agree: false,
        named_reach: Duration::from_secs(u64::from(*reach)),
    })
}

/// Groups reports by a linear search through all anchors (the first reports of conjunctions), in
/// the order of their creation.
struct Oracle {
    minter: Arc<GroupedMinter>,
    pair_order: PairOrder,
    anchors: Vec<((u64, u64), i64)>,
}

impl Oracle {
    fn group(&mut self, Sent { report, noted }: &Sent, keep: bool, reach: u8) -> Grouped {
        let mut pair = (report.primary(), report.secondary());
        if self.pair_order == PairOrder::Unordered {
            pair = (pair.0.min(pair.1), pair.0.max(pair.1));
        }
        let micros = i64::try_from(report.tca().nanos() / 1_000).unwrap();
        let is_near = |time: i64| (micros - time).abs() <= SECOND;
        let of_pair = || {
            self.anchors
                .iter()
                .filter(|(of, _)| *of == pair)
                .map(|(_, anchor)| *anchor)
        };
        let oldest = of_pair().find(|anchor| is_near(*anchor));
        // If the report arrived with an id, find the existing anchor with that id and the place for
        // a new one.
        let named = noted.map(|second| {
            let begins = BASE + second * SECOND;
            let known = of_pair().find(|anchor| (begins..begins + SECOND).contains(anchor));
            (known, micros.clamp(begins, begins + SECOND - 1))
        });
        let (anchor, created) = match (named, oldest) {
            (Some((Some(known), _)), _) if keep => (known, false),
            (Some((None, nearest)), _) if keep => (nearest, true),
            (_, Some(oldest)) => (oldest, false),
            (Some((Some(known), _)), None)
                if (micros - known).abs() <= i64::from(reach) * SECOND =>
            {
                (known, false)
            }
            (Some((None, nearest)), None) if is_near(nearest) => (nearest, true),
            (_, None) => (micros, true),
        };
        if created {
            self.anchors.push((pair, anchor));
        }
        let id = self
            .minter
            .id_of(&report.at(UnixTime::from(Tca(anchor))))
            .unwrap();
        Grouped {
            id,
            created: Some(created),
            anchor: Tca(anchor),
            delta_us: micros - anchor,
            noted_differs: noted.map(|second| id_at(&self.minter, report, second) != id),
        }
    }
}

/// Groups every request with the oracle.
fn group_by_oracle(arrivals: &Arrivals, pair_order: PairOrder) -> Vec<Vec<Grouped>> {
    let mut oracle = Oracle {
        minter: minter(pair_order),
        pair_order,
        anchors: Vec::new(),
    };
    let group = |order: &Order| {
        order
            .reports
            .iter()
            .map(|sent| oracle.group(sent, order.keep, order.reach))
            .collect()
    };
    arrivals.iter().flatten().map(group).collect()
}

/// Groups every request with the decision functions alone. Each request of a group sees the
/// decisions before it, although they are not stored yet.
fn group_by_decision(arrivals: &Arrivals, pair_order: PairOrder) -> Vec<Vec<Grouped>> {
    let minter = minter(pair_order);
    let mut stored: HashMap<Pair, Vec<Anchor>> = HashMap::new();
    let mut all = Vec::new();
    for at_once in arrivals {
        let (mut new, mut plans) = (NewAnchors::default(), Vec::new());
        for order in at_once {
            let order = request(&minter, order);
            let near = |(pair, tca): (Pair, Tca)| {
                let of_pair = stored.get(&pair).into_iter().flatten().copied();
                of_pair
                    .filter(|anchor| tca.neighbourhood().contains(&anchor.tca))
                    .collect()
            };
            let (grouped, planned) = order
                .decide(&order.keys().map(near).collect::<Vec<_>>(), &mut new)
                .unwrap();
            all.push(grouped);
            plans.extend(planned);
        }
        plans
            .into_iter()
            .for_each(|AnchorPlan { pair, anchor, .. }| {
                stored.entry(pair).or_default().push(anchor)
            });
    }
    all
}

fn records() -> Records {
    memory_records().expect("memory suffices")
}

/// Groups every request with the records of a store. The records are written after every group.
fn group_by_records(arrivals: &Arrivals, pair_order: PairOrder) -> Vec<Vec<Grouped>> {
    let (minter, records) = (minter(pair_order), records());
    let mut all = Vec::new();
    for at_once in arrivals {
        let (mut new, mut plans) = (NewAnchors::default(), Vec::new());
        for order in at_once {
            let order = request(&minter, order);
            let stored = records
                .neighbours(order.format(), &mut order.keys())
                .unwrap();
            let (grouped, planned) = order.decide(&stored, &mut new).unwrap();
            all.push(grouped);
            plans.extend(planned.into_iter().map(RecordPlan::Anchor));
        }
        records.write(&plans).unwrap();
    }
    all
}

/// Groups every request with the writer thread, which receives all requests of a group before it
/// sends the first response.
fn group_by_keeper(arrivals: &Arrivals, pair_order: PairOrder) -> Vec<Vec<Grouped>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let clock = ManualClock::at(UnixNanos::from_seconds(1_800_000_000)).clock();
    let (minter, keeper) = (
        minter(pair_order),
        RecordWriterHandle::start(records(), Arc::new(clock), None),
    );
    let mut all = Vec::new();
    for at_once in arrivals {
        let asked = at_once
            .iter()
            .map(|order| keeper.group(request(&minter, order)))
            .collect();
        all.extend(
            runtime
                .block_on(together(asked))
                .into_iter()
                .map(Result::unwrap),
        );
    }
    all
}

/// Splits each group that contains an analysis (a request with a reach), so that the requests of
/// the group arrive one after the other.
///
/// The writer thread may answer an analysis from the stored conjunctions alone, as if the analysis
/// had arrived before the other requests of its group.
fn with_lone_analyses(arrivals: &Arrivals) -> Arrivals {
    let split = |at_once: &Vec<Order>| match at_once.iter().any(|order| order.reach > 0) {
        true => at_once.iter().map(|order| vec![order.clone()]).collect(),
        false => vec![at_once.clone()],
    };
    arrivals.iter().flat_map(split).collect()
}

/// Starts all futures in order, and waits for them in any order.
async fn together<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, done) in running
            .iter_mut()
            .zip(&mut done)
            .filter(|(_, done)| done.is_none())
        {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[test]
fn the_second_60_is_the_first_of_the_next_day() {
    assert_eq!(tca(2 * SECOND + 5, true), tca(2 * SECOND + 5, false));
    let order = |delta| {
        let report = Report::new(tca(delta, true), PAIR.0, PAIR.1).unwrap();
        Order {
            keep: false,
            reach: 0,
            reports: vec![Sent {
                report,
                noted: None,
            }],
        }
    };
    let arrivals = vec![
        vec![order(SECOND)],
        vec![order(2 * SECOND), order(2 * SECOND + 1)],
    ];
    let grouped = group_by_keeper(&arrivals, PairOrder::Reported).concat();
    let told: Vec<_> = grouped
        .iter()
        .map(|grouped| (grouped.created, grouped.delta_us))
        .collect();
    assert_eq!(
        told,
        [(Some(true), 0), (Some(false), SECOND), (Some(true), 0)]
    );
}

proptest! {
    #[test]
    fn reports_are_grouped_as_the_oracle_does(arrivals in arrivals(), is_ordered: bool) {
        let pair_order = if is_ordered { PairOrder::Reported } else { PairOrder::Unordered };
        let expected = group_by_oracle(&arrivals, pair_order);
        prop_assert_eq!(&group_by_decision(&arrivals, pair_order), &expected);
        prop_assert_eq!(&group_by_records(&arrivals, pair_order), &expected);
        let arrivals = with_lone_analyses(&arrivals);
        prop_assert_eq!(&group_by_keeper(&arrivals, pair_order), &expected);
    }

    #[test]
    fn reports_that_arrive_again_in_any_order_keep_their_ids(arrivals in arrivals(), again in any::<prop::sample::Index>()) {
        // Send each report in a separate request, so that each is repeated exactly as it first
        // arrived. Set the reach to 0, because a repeated request with a reach (an analysis) may
        // join a later conjunction within a second.
        let of_one = |order: &Order| order.reports.iter()
            .map(|sent| Order { keep: order.keep, reach: 0, reports: vec![*sent] })
            .collect::<Vec<_>>();
        let orders: Vec<Order> = arrivals.iter().flatten().flat_map(of_one).collect();
        prop_assume!(!orders.is_empty());
        let first = again.index(orders.len());
        let rotated = |at: usize| orders.len() - 1 - (at + first) % orders.len();
        let back: Vec<Order> = (0..orders.len()).map(|at| orders[rotated(at)].clone()).collect();
        let grouped = group_by_keeper(&vec![orders.clone(), back], PairOrder::Reported).concat();
        let (told, again) = grouped.split_at(orders.len());
        for (at, again) in again.iter().enumerate() {
            let told = told[rotated(at)];
            prop_assert_eq!((told.id, told.anchor, Some(false)), (again.id, again.anchor, again.created));
        }
    }
}
