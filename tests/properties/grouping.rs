//! Reports are grouped as a list of anchors, searched from its beginning, would group them.
//!
//! The same reports go three ways: the pure decision, the records of a store, and the thread that writes these.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use idmint::conjunction::{
    Anchor, AnchorPlan, GroupRequest, Grouped, GroupedMinter, NewAnchors, Pair, PairOrder, Report, Sighting, Tca,
};
use idmint::id::{Format, FormatDefinition, PRESETS};
use idmint::storage::{MemoryRecords, RecordKeeper, RecordPlan, Records};
use idmint::time::{ManualClock, UnixNanos, UnixTime};
use proptest::prelude::*;

const SECOND: i64 = 1_000_000;

/// 2016-12-31T23:59:58Z in microseconds: two seconds later a leap second was inserted.
const BASE: i64 = 1_483_228_798 * SECOND;

/// The two objects that most reports are about.
const PAIR: (u64, u64) = (25_544, 48_274);

/// What arrives at once: orders of one or more reports each.
type Arrivals = Vec<Vec<Vec<Report>>>;

/// A time of closest approach, whose first second after midnight may be called the 60th of the year before.
fn tca(delta: i64, by_leap_second: bool) -> UnixTime {
    let instant = UnixTime::from(Tca(BASE + delta));
    let text = instant.to_text(6).unwrap();
    let fraction = text.strip_prefix("2017-01-01T00:00:00").filter(|_| by_leap_second);
    let read = fraction.map(|fraction| UnixTime::from_utc_text(&format!("2016-12-31T23:59:60{fraction}")).unwrap());
    read.unwrap_or(instant)
}

/// Microseconds from the base: at whole seconds, one beside them, half between them, and anywhere.
fn deltas() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => (0..6_i64, -1..=1_i64).prop_map(|(seconds, beside)| seconds * SECOND + beside),
        2 => (0..12_i64, -1..=1_i64).prop_map(|(halves, beside)| halves * SECOND / 2 + beside),
        2 => -SECOND..7 * SECOND,
    ]
}

fn reports() -> impl Strategy<Value = Report> {
    (deltas(), any::<bool>(), any::<bool>(), 0..10_u8).prop_map(|(delta, is_swapped, by_leap_second, other)| {
        let secondary = if other == 0 { 7 } else { PAIR.1 };
        let (primary, secondary) = if is_swapped { (secondary, PAIR.0) } else { (PAIR.0, secondary) };
        Report::new(tca(delta, by_leap_second), primary, secondary).unwrap()
    })
}

fn arrivals() -> impl Strategy<Value = Arrivals> {
    let orders = prop_oneof![3 => prop::collection::vec(reports(), 1), 1 => prop::collection::vec(reports(), 0..8)];
    prop::collection::vec(prop::collection::vec(orders, 1..5), 1..12)
}

fn minter(pair_order: PairOrder) -> Arc<GroupedMinter> {
    let preset = PRESETS.iter().find(|preset| preset.name == "conjunction").unwrap();
    let format: Format = FormatDefinition::from_toml(preset.name, preset.toml).unwrap().compile(preset.name).unwrap();
    Arc::new(GroupedMinter::new(Arc::new(format), pair_order))
}

fn order(minter: &Arc<GroupedMinter>, reports: &[Report]) -> GroupRequest {
    let sighting = |report: &Report| Sighting::new(*report);
    GroupRequest::new(Arc::clone(minter), &reports.iter().map(sighting).collect::<Vec<_>>()).unwrap()
}

/// Every anchor in the order of creation, and nothing clever.
struct Oracle {
    minter: Arc<GroupedMinter>,
    pair_order: PairOrder,
    anchors: Vec<((u64, u64), i64)>,
}

impl Oracle {
    fn group(&mut self, report: &Report) -> Grouped {
        let mut pair = (report.primary(), report.secondary());
        if self.pair_order == PairOrder::Unordered {
            pair = (pair.0.min(pair.1), pair.0.max(pair.1));
        }
        let micros = i64::try_from(report.tca().nanos() / 1_000).unwrap();
        let is_within_a_second = |(of, anchor): &&((u64, u64), i64)| *of == pair && (micros - anchor).abs() <= SECOND;
        let joined = self.anchors.iter().find(is_within_a_second).map(|(_, anchor)| *anchor);
        let anchor = joined.unwrap_or(micros);
        if joined.is_none() {
            self.anchors.push((pair, micros));
        }
        Grouped {
            id: self.minter.id_of(&report.at(UnixTime::from(Tca(anchor)))).unwrap(),
            created: Some(joined.is_none()),
            anchor: Tca(anchor),
            delta_us: micros - anchor,
            noted_differs: None,
        }
    }
}

/// What becomes of every order by the oracle.
fn group_by_oracle(arrivals: &Arrivals, pair_order: PairOrder) -> Vec<Vec<Grouped>> {
    let mut oracle = Oracle { minter: minter(pair_order), pair_order, anchors: Vec::new() };
    arrivals.iter().flatten().map(|reports| reports.iter().map(|report| oracle.group(report)).collect()).collect()
}

/// The pure decision. The orders of one arrival are decided on top of each other, before any of it is stored.
fn group_by_decision(arrivals: &Arrivals, pair_order: PairOrder) -> Vec<Vec<Grouped>> {
    let minter = minter(pair_order);
    let mut stored: HashMap<Pair, Vec<Anchor>> = HashMap::new();
    let mut all = Vec::new();
    for at_once in arrivals {
        let (mut new, mut plans) = (NewAnchors::default(), Vec::new());
        for reports in at_once {
            let order = order(&minter, reports);
            let near = |(pair, tca): (Pair, Tca)| {
                let of_pair = stored.get(&pair).into_iter().flatten().copied();
                of_pair.filter(|anchor| tca.neighbourhood().contains(&anchor.tca)).collect()
            };
            let (grouped, planned) = order.decide(&order.keys().map(near).collect::<Vec<_>>(), &mut new).unwrap();
            all.push(grouped);
            plans.extend(planned);
        }
        plans.into_iter().for_each(|AnchorPlan { pair, anchor, .. }| stored.entry(pair).or_default().push(anchor));
    }
    all
}

fn records() -> Records {
    Arc::new(MemoryRecords::default())
}

/// The records, written after every arrival.
fn group_by_records(arrivals: &Arrivals, pair_order: PairOrder) -> Vec<Vec<Grouped>> {
    let (minter, records) = (minter(pair_order), records());
    let mut all = Vec::new();
    for at_once in arrivals {
        let (mut new, mut plans) = (NewAnchors::default(), Vec::new());
        for reports in at_once {
            let order = order(&minter, reports);
            let stored = records.neighbours(order.format(), &mut order.keys()).unwrap();
            let (grouped, planned) = order.decide(&stored, &mut new).unwrap();
            all.push(grouped);
            plans.extend(planned.into_iter().map(RecordPlan::Anchor));
        }
        records.write(&plans).unwrap();
    }
    all
}

/// The thread, asked for all orders of an arrival before the first answer.
fn group_by_keeper(arrivals: &Arrivals, pair_order: PairOrder) -> Vec<Vec<Grouped>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let clock = ManualClock::at(UnixNanos::from_seconds(1_800_000_000)).clock();
    let (minter, keeper) = (minter(pair_order), RecordKeeper::start(records(), Arc::new(clock), None));
    let mut all = Vec::new();
    for at_once in arrivals {
        let asked = at_once.iter().map(|reports| keeper.group(order(&minter, reports))).collect();
        all.extend(runtime.block_on(together(asked)).into_iter().map(Result::unwrap));
    }
    all
}

/// Begins all of them in their order, and ends them in any.
async fn together<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, done) in running.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[test]
fn the_second_60_is_the_first_of_the_next_day() {
    assert_eq!(tca(2 * SECOND + 5, true), tca(2 * SECOND + 5, false));
    let report = |delta| Report::new(tca(delta, true), PAIR.0, PAIR.1).unwrap();
    let arrivals = vec![vec![vec![report(SECOND)]], vec![vec![report(2 * SECOND)], vec![report(2 * SECOND + 1)]]];
    let grouped = group_by_keeper(&arrivals, PairOrder::Reported).concat();
    let told: Vec<_> = grouped.iter().map(|grouped| (grouped.created, grouped.delta_us)).collect();
    assert_eq!(told, [(Some(true), 0), (Some(false), SECOND), (Some(true), 0)]);
}

proptest! {
    #[test]
    fn reports_are_grouped_as_the_oracle_does(arrivals in arrivals(), is_ordered: bool) {
        let pair_order = if is_ordered { PairOrder::Reported } else { PairOrder::Unordered };
        let expected = group_by_oracle(&arrivals, pair_order);
        prop_assert_eq!(&group_by_decision(&arrivals, pair_order), &expected);
        prop_assert_eq!(&group_by_records(&arrivals, pair_order), &expected);
        prop_assert_eq!(&group_by_keeper(&arrivals, pair_order), &expected);
    }

    #[test]
    fn reports_that_arrive_again_in_any_order_keep_their_ids(arrivals in arrivals(), again in any::<prop::sample::Index>()) {
        let reports: Vec<Report> = arrivals.iter().flatten().flatten().copied().collect();
        prop_assume!(!reports.is_empty());
        let first = again.index(reports.len());
        let rotated: Vec<Report> = reports[first..].iter().chain(&reports[..first]).rev().copied().collect();
        let both = vec![vec![reports.clone()], vec![rotated.clone()]];
        let grouped = group_by_keeper(&both, PairOrder::Reported);
        let ids: HashMap<Report, u128> = reports.iter().copied().zip(grouped[0].iter().map(|one| one.id)).collect();
        for (report, grouped) in rotated.iter().zip(&grouped[1]) {
            prop_assert_eq!((ids[report], Some(false)), (grouped.id, grouped.created));
        }
    }
}
