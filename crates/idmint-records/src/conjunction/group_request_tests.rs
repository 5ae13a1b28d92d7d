//! Tests how reports are grouped into conjunctions, with and without stored anchors.

use std::collections::HashSet;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::conjunction::grouped_minter::PairOrder;
use crate::conjunction::report::Report;
use idmint_core::id::{FormatDefinition, PRESETS};
use idmint_core::time::UnixTime;

/// The base time of the tests, 2024-02-01T00:00:00Z, in microseconds since 1970.
const BASE: i64 = 1_706_745_600_000_000;

fn minter(pair_order: PairOrder) -> Arc<GroupedMinter> {
    let preset = PRESETS
        .iter()
        .find(|preset| preset.name == "conjunction")
        .expect("a built-in format");
    let format = FormatDefinition::from_toml(preset.name, preset.toml)
        .expect("parses")
        .compile(preset.name);
    Arc::new(GroupedMinter::new(
        Arc::new(format.expect("is sound")),
        pair_order,
    ))
}

/// Returns a report, `delta` microseconds after the base time.
fn sent_report(delta: i64, primary: u64, secondary: u64) -> SentReport {
    let tca = UnixTime::from(Tca(BASE + delta));
    SentReport::new(Report::new(tca, primary, secondary).expect("two objects"))
}

fn request_of(sent_reports: &[SentReport]) -> GroupRequest {
    GroupRequest::new(minter(PairOrder::Reported), sent_reports).expect("each can have an id")
}

/// Returns a request with one report of the default pair at each of these times, in microseconds
/// after the base time.
fn request(deltas: &[i64]) -> GroupRequest {
    request_of(
        &deltas
            .iter()
            .map(|delta| sent_report(*delta, 1, 2))
            .collect::<Vec<_>>(),
    )
}

fn anchor(delta: i64, rank: u32) -> Anchor {
    Anchor {
        tca: Tca(BASE + delta),
        rank,
    }
}

/// Groups reports of the default pair. Returns for each report the time of its anchor, in
/// microseconds after the base time, and whether the report created the anchor.
fn decide(deltas: &[i64], stored: &[Anchor]) -> Vec<(i64, bool)> {
    let near = |delta: &i64| {
        let neighbourhood = Tca(BASE + delta).neighbourhood();
        stored
            .iter()
            .copied()
            .filter(|anchor| neighbourhood.contains(&anchor.tca))
            .collect()
    };
    let stored: Vec<_> = deltas.iter().map(near).collect();
    let (grouped, _) = request(deltas)
        .decide(&stored, &mut NewAnchors::default())
        .expect("no id is expected");
    grouped
        .iter()
        .map(|grouped| (grouped.anchor.0 - BASE, grouped.created.expect("stored")))
        .collect()
}

#[test]
fn a_second_either_way_joins_and_a_microsecond_more_does_not() {
    for delta in [-1_000_000, -1, 0, 1, 1_000_000] {
        assert_eq!(decide(&[delta], &[anchor(0, 0)]), [(0, false)], "{delta}");
    }
    for delta in [-1_000_001, 1_000_001, 2_000_000] {
        assert_eq!(
            decide(&[delta], &[anchor(0, 0)]),
            [(delta, true)],
            "{delta}"
        );
    }
}

#[test]
fn of_two_within_reach_the_first_created_is_joined() {
    let (early, late) = (-900_000, 1_000_000);
    for delta in [0, 99_999, 100_000] {
        assert_eq!(
            decide(&[delta], &[anchor(early, 0), anchor(late, 1)]),
            [(early, false)],
            "{delta}"
        );
        assert_eq!(
            decide(&[delta], &[anchor(early, 1), anchor(late, 0)]),
            [(late, false)],
            "{delta}"
        );
    }
    assert_eq!(
        decide(&[100_001], &[anchor(early, 0), anchor(late, 1)]),
        [(late, false)]
    );
}

#[test]
fn the_reports_of_a_request_come_one_after_the_other() {
    assert_eq!(
        decide(&[0, 1_000_000, 1_000_001, -1], &[]),
        [(0, true), (0, false), (1_000_001, true), (0, false)]
    );
    assert_eq!(
        decide(&[1_000_001, 1_000_000, 0], &[]),
        [(1_000_001, true), (1_000_001, false), (0, true)]
    );
}

#[test]
fn an_anchor_ranks_above_all_within_two_seconds() {
    let stored = [anchor(-2_000_000, 4), anchor(2_000_000, 6)];
    let (_, plans) = request(&[0])
        .decide(&[stored.to_vec()], &mut NewAnchors::default())
        .expect("no id is expected");
    assert_eq!(
        plans,
        [AnchorPlan::of_report(
            "conjunction",
            Pair {
                primary: 1,
                secondary: 2
            },
            anchor(0, 7)
        )]
    );
}

#[test]
fn what_was_decided_before_and_is_not_stored_yet_counts() {
    let mut new = NewAnchors::default();
    let mut decide = |request: GroupRequest| {
        let stored = vec![Vec::new(); request.len()];
        request
            .decide(&stored, &mut new)
            .expect("no id is expected")
    };
    let (first, plans) = decide(request(&[0]));
    assert_eq!(
        (first[0].created, first[0].delta_us, plans.len()),
        (Some(true), 0, 1)
    );
    let (second, plans) = decide(request(&[700_000]));
    assert_eq!(
        (second[0].created, second[0].delta_us, plans.len()),
        (Some(false), 700_000, 0)
    );
    assert_eq!(second[0].id, first[0].id);
    let (third, plans) = decide(request(&[1_500_000]));
    assert_eq!((third[0].created, plans[0].anchor.rank), (Some(true), 1));
}

#[test]
fn the_pairs_are_kept_apart_and_their_order_counts_as_configured() {
    let sent_reports = [
        sent_report(0, 1, 2),
        sent_report(0, 2, 1),
        sent_report(0, 1, 3),
        sent_report(5, 2, 1),
    ];
    let created = |pair_order| {
        let request =
            GroupRequest::new(minter(pair_order), &sent_reports).expect("each can have an id");
        let (grouped, _) = request
            .decide(&vec![Vec::new(); 4], &mut NewAnchors::default())
            .expect("no id is expected");
        assert_eq!(grouped[1].id, grouped[3].id);
        (
            grouped[0].id == grouped[1].id,
            grouped
                .iter()
                .map(|grouped| grouped.created == Some(true))
                .collect(),
        )
    };
    assert_eq!(
        created(PairOrder::Reported),
        (false, vec![true, true, true, false])
    );
    assert_eq!(
        created(PairOrder::Unordered),
        (true, vec![true, false, true, false])
    );
}

#[test]
fn all_of_a_request_is_known_or_nothing_is_said() {
    let request = request(&[10, 1_000_000]);
    let known = request
        .join_stored(&[vec![anchor(0, 0)], vec![anchor(0, 0)]])
        .expect("no id is expected")
        .expect("known");
    assert_eq!(
        known
            .iter()
            .map(|known| (known.created, known.delta_us))
            .collect::<Vec<_>>(),
        [(Some(false), 10), (Some(false), 1_000_000)]
    );
    assert_eq!(known[0].id, known[1].id);
    assert_eq!(
        request.join_stored(&[vec![anchor(0, 0)], vec![anchor(-1, 0)]]),
        Ok(None)
    );
    assert_eq!(
        request.join_stored(&[Vec::new(), vec![anchor(0, 0)]]),
        Ok(None)
    );
}

#[test]
fn ungrouped_reports_have_the_ids_of_their_own_times() {
    let own = request(&[0, 999_999, 1_000_000])
        .decide_ungrouped()
        .expect("no id is expected");
    assert!(
        own.iter()
            .all(|own| (own.created, own.delta_us) == (None, 0))
    );
    assert_eq!(own[0].id, own[1].id, "an id knows whole seconds");
    assert_ne!(own[0].id, own[2].id);
    assert_eq!(own[1].anchor, Tca(BASE + 999_999));
}

/// Returns the id of the second that begins `seconds` after the base time.
fn id_at(seconds: i64) -> u128 {
    request(&[seconds * 1_000_000])
        .decide_ungrouped()
        .expect("no id is noted")[0]
        .id
}

/// Returns a report whose time is `delta` microseconds after the base time. The id attached to it
/// is the id of the second that begins `seconds` after the base time.
fn noting(delta: i64, seconds: i64) -> SentReport {
    SentReport {
        noted: Some(id_at(seconds)),
        ..sent_report(delta, 1, 2)
    }
}

const TELL: NotedRule = NotedRule {
    keep: false,
    must_agree: false,
    named_reach: Duration::ZERO,
};
const KEEP: NotedRule = NotedRule {
    keep: true,
    must_agree: false,
    named_reach: Duration::ZERO,
};

/// Groups a single report. Returns the time of its anchor in microseconds after the base time,
/// whether the report created the anchor, and whether its id differs from the attached id.
fn match_noted(rule: NotedRule, sent_report: SentReport, stored: &[Anchor]) -> (i64, bool, bool) {
    let request = request_of(&[sent_report]).with_noted_rule(rule);
    let near = |(_, tca): (Pair, Tca)| {
        stored
            .iter()
            .copied()
            .filter(|anchor| tca.neighbourhood().contains(&anchor.tca))
            .collect::<Vec<_>>()
    };
    let stored: Vec<_> = request.keys().map(near).collect();
    let (grouped, plans) = request
        .decide(&stored, &mut NewAnchors::default())
        .expect("nothing must agree");
    let joined = request.join_stored(&stored).expect("nothing must agree");
    assert_eq!(
        joined.as_deref(),
        plans.is_empty().then_some(&grouped[..]),
        "both ways decide alike"
    );
    let grouped = grouped[0];
    assert_eq!(
        grouped.delta_us,
        (Tca::of(&sent_report.report)).since(grouped.anchor)
    );
    let differs = grouped.noted_differs.expect("it came with an id");
    assert_eq!(differs, Some(grouped.id) != sent_report.noted);
    (
        grouped.anchor.0 - BASE,
        grouped.created.expect("stored"),
        differs,
    )
}

#[test]
fn within_reach_the_oldest_is_joined_whatever_id_a_report_names_and_kept_ids_are_kept_anywhere() {
    let stored = [anchor(-900_000, 0), anchor(900_000, 1)];
    assert_eq!(
        match_noted(TELL, noting(50_000, 0), &stored),
        (-900_000, false, true),
        "as without the id"
    );
    assert_eq!(
        match_noted(TELL, noting(50_000, -1), &stored),
        (-900_000, false, false)
    );
    assert_eq!(
        match_noted(TELL, noting(1_900_000, 0), &stored),
        (900_000, false, false)
    );
    assert_eq!(
        match_noted(TELL, noting(1_900_001, 0), &stored),
        (1_900_001, true, true),
        "out of reach"
    );
    let hour = 3_600_000_000;
    for delta in [50_000, hour, -hour] {
        assert_eq!(
            match_noted(KEEP, noting(delta, 0), &stored),
            (900_000, false, false),
            "{delta}"
        );
    }
    let there = [anchor(900_000, 1), anchor(hour, 0)];
    assert_eq!(
        match_noted(KEEP, noting(hour, 0), &there),
        (900_000, false, false),
        "whatever is near"
    );
    assert_eq!(
        match_noted(TELL, noting(hour, 0), &there),
        (hour, false, true)
    );
}

#[test]
fn an_unknown_id_is_adopted_unless_an_anchor_is_within_reach_and_at_once_if_it_is_kept() {
    for (delta, adopted) in [
        (300_000, 300_000),
        (-1_000_000, 0),
        (1_999_999, 999_999),
        (0, 0),
    ] {
        assert_eq!(
            match_noted(TELL, noting(delta, 0), &[]),
            (adopted, true, false),
            "{delta}"
        );
    }
    for (delta, adopted) in [
        (-1_000_001, 0),
        (2_000_000, 999_999),
        (86_400_000_000, 999_999),
    ] {
        assert_eq!(
            match_noted(TELL, noting(delta, 0), &[]),
            (delta, true, true),
            "{delta}"
        );
        assert_eq!(
            match_noted(KEEP, noting(delta, 0), &[]),
            (adopted, true, false),
            "{delta}"
        );
    }
    assert_eq!(
        match_noted(TELL, noting(500_000, 0), &[anchor(1_500_000, 3)]),
        (1_500_000, false, true)
    );
    assert_eq!(
        match_noted(KEEP, noting(500_000, 0), &[anchor(1_500_000, 3)]),
        (500_000, true, false)
    );
    for rule in [TELL, KEEP] {
        assert_eq!(
            match_noted(rule, noting(500_000, 0), &[anchor(1_500_001, 3)]),
            (500_000, true, false)
        );
    }
    // The conjunction of the attached id exists, but its anchor is more than one second from the
    // report. The report must not create a second anchor with the same id, so it gets the id of its
    // own time.
    assert_eq!(
        match_noted(TELL, noting(-900_000, 0), &[anchor(200_000, 0)]),
        (-900_000, true, true)
    );
}

#[test]
fn what_a_plan_to_adopt_rests_on_is_looked_at_again() {
    let free = |delta| Tca(BASE + delta);
    let tick = free(0)..=free(999_999);
    let plan_of = |rule, delta| {
        let request = request_of(&[noting(delta, 0)]).with_noted_rule(rule);
        let keys: Vec<_> = request.keys().map(|(_, tca)| tca.0 - BASE).collect();
        assert_eq!(keys, [delta, 999_999]);
        let stored = [Vec::new(), vec![anchor(2_500_000, 4)]];
        request
            .decide(&stored, &mut NewAnchors::default())
            .expect("free")
            .1
            .remove(0)
    };
    let kept = plan_of(KEEP, 90_000_000);
    assert_eq!(
        (kept.anchor, kept.free),
        (anchor(999_999, 5), vec![tick.clone()])
    );
    let told = plan_of(TELL, 1_400_000);
    assert_eq!(
        (told.anchor, told.free),
        (
            anchor(999_999, 5),
            vec![free(400_000)..=free(2_400_000), tick]
        )
    );
}

/// The rule for an analysis, a report that names its conjunction by id. It joins this conjunction
/// if their times differ by at most ten minutes.
const ANALYSIS: NotedRule = NotedRule {
    named_reach: Duration::from_secs(600),
    ..TELL
};

#[test]
fn an_analysis_joins_the_conjunction_that_it_names_within_its_reach_unless_one_is_within_a_second()
{
    let reach = 600_000_000;
    let named = anchor(900_000, 7);
    for (delta, expected) in [
        (2_000_000, (900_000, false, false)),
        (900_000 + reach, (900_000, false, false)),
        (900_000 - reach, (900_000, false, false)),
        (900_001 + reach, (900_001 + reach, true, true)),
        (899_999 - reach, (899_999 - reach, true, true)),
    ] {
        assert_eq!(
            match_noted(ANALYSIS, noting(delta, 0), &[named]),
            expected,
            "{delta}"
        );
        let off = match_noted(TELL, noting(delta, 0), &[named]);
        assert_eq!(off, (delta, true, true), "{delta}, as any other report");
    }
    let other = anchor(60_000_000, 9);
    assert_eq!(
        match_noted(ANALYSIS, noting(61_000_000, 0), &[named, other]),
        (60_000_000, false, true),
        "a conjunction within a second comes first"
    );
    assert_eq!(
        match_noted(ANALYSIS, noting(61_000_001, 0), &[named, other]),
        (900_000, false, false)
    );
    assert_eq!(
        match_noted(ANALYSIS, noting(60_000_000, 0), &[]),
        (60_000_000, true, true),
        "an unknown id is adopted only within a second"
    );
    assert_eq!(
        match_noted(ANALYSIS, noting(1_500_000, 0), &[]),
        (999_999, true, false)
    );
}

#[test]
fn a_plan_for_an_analysis_rests_on_the_named_conjunction_being_unknown() {
    let free = |from, to| Tca(BASE + from)..=Tca(BASE + to);
    let plan_of = |rule, delta, stored: &[Anchor]| {
        let request = request_of(&[noting(delta, 0)]).with_noted_rule(rule);
        let stored = [Vec::new(), stored.to_vec()];
        let decided = request.decide(&stored, &mut NewAnchors::default());
        decided.expect("free").1.remove(0).free
    };
    let reach = |delta: i64| free(delta - 1_000_000, delta + 1_000_000);
    let within = plan_of(ANALYSIS, 90_000_000, &[]);
    assert_eq!(within, [reach(90_000_000), free(0, 999_999)]);
    assert_eq!(plan_of(TELL, 90_000_000, &[]), [reach(90_000_000)]);
    let beyond = plan_of(ANALYSIS, 700_000_000, &[]);
    assert_eq!(beyond, [reach(700_000_000)]);

    // The anchor of the attached id is stored, but just more than ten minutes from the report. The
    // plan must not require the time of this anchor to be free, because such a plan could never be
    // written.
    let partly = plan_of(ANALYSIS, 600_500_000, &[anchor(499_999, 0)]);
    assert_eq!(partly, [reach(600_500_000), free(500_000, 999_999)]);
}

/// A simplified model of a service that stores anchors, so that reports can be grouped one after
/// another.
#[derive(Default)]
struct Stored {
    anchors: HashMap<Pair, Vec<Anchor>>,
}

impl Stored {
    /// Groups one report, stores its anchor if it is new, and returns the id of the report.
    fn report(&mut self, rule: NotedRule, sent_report: &SentReport) -> u128 {
        let request = request_of(std::slice::from_ref(sent_report)).with_noted_rule(rule);
        let near = |(pair, tca): (Pair, Tca)| {
            let of_pair = self.anchors.get(&pair).into_iter().flatten().copied();
            of_pair
                .filter(|anchor| tca.neighbourhood().contains(&anchor.tca))
                .collect::<Vec<_>>()
        };
        let stored: Vec<_> = request.keys().map(near).collect();
        let (grouped, plans) = request
            .decide(&stored, &mut NewAnchors::default())
            .expect("nothing must agree");
        plans
            .into_iter()
            .for_each(|plan| self.anchors.entry(plan.pair).or_default().push(plan.anchor));
        grouped[0].id
    }
}

#[test]
fn a_report_that_got_another_id_gets_it_again_after_somebody_elses_report_brought_the_noted_one() {
    let (r1, r2) = (noting(10_000_000, 10), noting(10_900_000, 10));
    let near = sent_report(11_500_000, 1, 2);
    for (rule, of_r2) in [(TELL, id_at(11)), (KEEP, id_at(10))] {
        let mut service = Stored::default();
        assert_eq!(service.report(rule, &near), id_at(11));
        assert_eq!(service.report(rule, &r2), of_r2, "{rule:?}");
        assert_eq!(
            service.report(rule, &r1),
            id_at(10),
            "{rule:?}: nothing is within its reach, or it keeps its id"
        );
        assert_eq!(
            service.report(rule, &r2),
            of_r2,
            "{rule:?}: the same report again"
        );
        let without = SentReport { noted: None, ..r2 };
        assert_eq!(
            service.report(rule, &without),
            id_at(11),
            "{rule:?}: the oldest within reach"
        );
        assert_eq!(service.report(rule, &near), id_at(11), "{rule:?}");
    }
}

/// Returns reports of a pair, as if several services forwarded them to each other. Half of the
/// reports have an attached id from another service, and the others have none.
fn posted_back(random: &mut StdRng, pair: u64, count: usize) -> Vec<(NotedRule, SentReport)> {
    let mut first = Stored::default();
    let report = |random: &mut StdRng| sent_report(random.random_range(0..6_000_000), pair, 9);
    let mut reports: Vec<(NotedRule, SentReport)> = (0..count)
        .map(|at| {
            let report = report(random);
            let rule = if random.random_bool(0.3) { KEEP } else { TELL };
            let noted = (at % 2 == 0).then(|| first.report(TELL, &report));
            (rule, SentReport { noted, ..report })
        })
        .collect();
    reports.shuffle(random);
    reports
}

#[test]
fn every_report_gets_its_first_answer_again_after_every_later_report() {
    const PAIRS: u64 = 120;
    const REPORTS: usize = 12;
    let mut random = StdRng::seed_from_u64(508);
    let (mut noted, mut differing, mut repeated) = (0, 0, 0);
    for pair in 1..=PAIRS {
        let mut service = Stored::default();
        let mut told: Vec<(NotedRule, SentReport, u128)> = Vec::new();
        for (rule, report) in posted_back(&mut random, 10 * pair, REPORTS) {
            let id = service.report(rule, &report);
            noted += usize::from(report.noted.is_some());
            differing += usize::from(report.noted.is_some_and(|noted| noted != id));
            assert!(
                !rule.keep || report.noted.is_none_or(|noted| noted == id),
                "{report:?} kept its id"
            );
            told.push((rule, report, id));
            for (rule, report, id) in &told {
                assert_eq!(
                    service.report(*rule, report),
                    *id,
                    "pair {pair}: {report:?} with {rule:?}"
                );
                repeated += 1;
            }
        }
        let anchors: Vec<Tca> = service
            .anchors
            .values()
            .flatten()
            .map(|anchor| anchor.tca)
            .collect();
        let seconds: HashSet<i64> = anchors
            .iter()
            .map(|tca| tca.0.div_euclid(1_000_000))
            .collect();
        assert_eq!(
            seconds.len(),
            anchors.len(),
            "pair {pair}: no id names two anchors"
        );
    }
    println!(
        "{noted} reports came with an id, {differing} got another one; {repeated} were repeated"
    );
    assert_eq!((noted, repeated), (720, 9_360));
    assert!(
        differing > 50,
        "only {differing} got another id, so this says little"
    );
}

#[test]
fn an_id_of_other_objects_stops_its_whole_request() {
    let named = id_at(0);
    for other in [
        sent_report(0, 1, 3),
        sent_report(0, 2, 1),
        sent_report(0, 3, 2),
    ] {
        let sent_reports = [
            sent_report(0, 1, 2),
            SentReport {
                noted: Some(named),
                ..other
            },
        ];
        let refusal = GroupRequest::new(minter(PairOrder::Reported), &sent_reports)
            .expect_err("of other objects");
        assert_eq!(
            refusal,
            GroupRefusal {
                index: 1,
                error: GroupError::OtherObjects { named }
            }
        );
    }
    let swapped = [SentReport {
        noted: Some(named),
        ..sent_report(0, 2, 1)
    }];
    assert!(
        GroupRequest::new(minter(PairOrder::Unordered), &swapped).is_ok(),
        "the same pair there"
    );
}

#[test]
fn without_storage_the_id_that_came_with_a_report_is_kept() {
    let decide = |rule, sent_report| {
        let grouped = request_of(&[sent_report])
            .with_noted_rule(rule)
            .decide_ungrouped()
            .expect("nothing must agree")[0];
        (
            grouped.anchor.0 - BASE,
            grouped.noted_differs,
            grouped.created,
        )
    };
    assert_eq!(
        decide(TELL, noting(1_999_999, 0)),
        (999_999, Some(false), None)
    );
    assert_eq!(
        decide(TELL, noting(2_000_000, 0)),
        (2_000_000, Some(true), None)
    );
    assert_eq!(
        decide(KEEP, noting(2_000_000, 0)),
        (999_999, Some(false), None)
    );
    assert_eq!(
        decide(KEEP, sent_report(2_000_000, 1, 2)),
        (2_000_000, None, None)
    );
}

#[test]
fn a_report_that_must_agree_stops_its_whole_request() {
    let rule = NotedRule {
        keep: false,
        must_agree: true,
        named_reach: Duration::ZERO,
    };
    let naming = |seconds| {
        request_of(&[sent_report(5_000_000, 1, 2), noting(500_000, seconds)]).with_noted_rule(rule)
    };
    let (right, wrong) = (id_at(0), id_at(1));
    let refusal = GroupRefusal {
        index: 1,
        error: GroupError::OtherId {
            named: wrong,
            gets: right,
        },
    };
    let stored = [Vec::new(), vec![anchor(0, 0)], vec![anchor(0, 0)]];

    let mut new = NewAnchors::default();
    assert_eq!(naming(1).decide(&stored, &mut new), Err(refusal.clone()));
    assert!(new.by_format.is_empty(), "nothing was decided");
    let all_known = [
        vec![anchor(5_000_000, 0)],
        vec![anchor(0, 0)],
        vec![anchor(0, 0)],
    ];
    assert_eq!(naming(1).join_stored(&all_known), Err(refusal));
    let (grouped, plans) = naming(0)
        .decide(&stored, &mut new)
        .expect("the named id is the one it gets");
    assert_eq!((grouped[1].id, plans.len()), (right, 1));
}

#[test]
fn a_report_without_an_id_of_its_own_is_refused_at_once() {
    let sent_reports = [
        sent_report(0, 1, 2),
        sent_report(0, 1, 1 << 22),
        sent_report(0, 1 << 22, 1),
    ];
    let refusal = GroupRequest::new(minter(PairOrder::Reported), &sent_reports)
        .expect_err("no catalogue number");
    assert_eq!(refusal.index, 1);
    assert!(matches!(
        refusal.error,
        GroupError::Report(ReportError::ObjectTooGreat { .. })
    ));
}
