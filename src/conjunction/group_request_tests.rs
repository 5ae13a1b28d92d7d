//! How reports are grouped, with and without what is stored.

use super::*;
use crate::conjunction::grouped_minter::PairOrder;
use crate::id::{FormatDefinition, PRESETS};
use crate::time::UnixTime;

/// 2024-02-01T00:00:00Z in microseconds.
const BASE: i64 = 1_706_745_600_000_000;

fn minter(pair_order: PairOrder) -> Arc<GroupedMinter> {
    let preset = PRESETS.iter().find(|preset| preset.name == "conjunction").expect("a built-in format");
    let format = FormatDefinition::from_toml(preset.name, preset.toml).expect("parses").compile(preset.name);
    Arc::new(GroupedMinter::new(Arc::new(format.expect("is sound")), pair_order))
}

/// A report at `delta` microseconds after the base.
fn sighting(delta: i64, primary: u64, secondary: u64) -> Sighting {
    let tca = UnixTime::from(Tca(BASE + delta));
    Sighting { report: Report::new(tca, primary, secondary).expect("two objects"), expected: None }
}

fn request_of(sightings: &[Sighting]) -> GroupRequest {
    GroupRequest::new(minter(PairOrder::Reported), sightings).expect("each can have an id")
}

/// Reports of one pair, at these times.
fn request(deltas: &[i64]) -> GroupRequest {
    request_of(&deltas.iter().map(|delta| sighting(*delta, 1, 2)).collect::<Vec<_>>())
}

fn anchor(delta: i64, rank: u32) -> Anchor {
    Anchor { tca: Tca(BASE + delta), rank }
}

/// Where each report of one pair comes to, as microseconds from the base, and whether it is the first there.
fn decide(deltas: &[i64], stored: &[Anchor]) -> Vec<(i64, bool)> {
    let near = |delta: &i64| {
        let neighbourhood = Tca(BASE + delta).neighbourhood();
        stored.iter().copied().filter(|anchor| neighbourhood.contains(&anchor.tca)).collect()
    };
    let stored: Vec<_> = deltas.iter().map(near).collect();
    let (grouped, _) = request(deltas).decide(&stored, &mut NewAnchors::default()).expect("no id is expected");
    grouped.iter().map(|grouped| (grouped.anchor.0 - BASE, grouped.created.expect("stored"))).collect()
}

#[test]
fn a_second_either_way_joins_and_a_microsecond_more_does_not() {
    for delta in [-1_000_000, -1, 0, 1, 1_000_000] {
        assert_eq!(decide(&[delta], &[anchor(0, 0)]), [(0, false)], "{delta}");
    }
    for delta in [-1_000_001, 1_000_001, 2_000_000] {
        assert_eq!(decide(&[delta], &[anchor(0, 0)]), [(delta, true)], "{delta}");
    }
}

#[test]
fn of_two_within_reach_the_first_created_is_joined() {
    let (early, late) = (-900_000, 1_000_000);
    for delta in [0, 99_999, 100_000] {
        assert_eq!(decide(&[delta], &[anchor(early, 0), anchor(late, 1)]), [(early, false)], "{delta}");
        assert_eq!(decide(&[delta], &[anchor(early, 1), anchor(late, 0)]), [(late, false)], "{delta}");
    }
    assert_eq!(decide(&[100_001], &[anchor(early, 0), anchor(late, 1)]), [(late, false)]);
}

#[test]
fn the_reports_of_a_request_come_one_after_the_other() {
    assert_eq!(decide(&[0, 1_000_000, 1_000_001, -1], &[]), [(0, true), (0, false), (1_000_001, true), (0, false)]);
    assert_eq!(decide(&[1_000_001, 1_000_000, 0], &[]), [(1_000_001, true), (1_000_001, false), (0, true)]);
}

#[test]
fn an_anchor_ranks_above_all_within_two_seconds() {
    let stored = [anchor(-2_000_000, 4), anchor(2_000_000, 6)];
    let (_, plans) = request(&[0]).decide(&[stored.to_vec()], &mut NewAnchors::default()).expect("no id is expected");
    assert_eq!(
        plans,
        [AnchorPlan { format: "conjunction".into(), pair: Pair { primary: 1, secondary: 2 }, anchor: anchor(0, 7) }]
    );
}

#[test]
fn what_was_decided_before_and_is_not_stored_yet_counts() {
    let mut new = NewAnchors::default();
    let mut decide = |request: GroupRequest| {
        let stored = vec![Vec::new(); request.len()];
        request.decide(&stored, &mut new).expect("no id is expected")
    };
    let (first, plans) = decide(request(&[0]));
    assert_eq!((first[0].created, first[0].delta_us, plans.len()), (Some(true), 0, 1));
    let (second, plans) = decide(request(&[700_000]));
    assert_eq!((second[0].created, second[0].delta_us, plans.len()), (Some(false), 700_000, 0));
    assert_eq!(second[0].id, first[0].id);
    let (third, plans) = decide(request(&[1_500_000]));
    assert_eq!((third[0].created, plans[0].anchor.rank), (Some(true), 1));
}

#[test]
fn the_pairs_are_kept_apart_and_their_order_counts_as_configured() {
    let sightings = [sighting(0, 1, 2), sighting(0, 2, 1), sighting(0, 1, 3), sighting(5, 2, 1)];
    let created = |pair_order| {
        let request = GroupRequest::new(minter(pair_order), &sightings).expect("each can have an id");
        let (grouped, _) = request.decide(&vec![Vec::new(); 4], &mut NewAnchors::default()).expect("no id is expected");
        assert_eq!(grouped[1].id, grouped[3].id);
        (grouped[0].id == grouped[1].id, grouped.iter().map(|grouped| grouped.created == Some(true)).collect())
    };
    assert_eq!(created(PairOrder::Reported), (false, vec![true, true, true, false]));
    assert_eq!(created(PairOrder::Unordered), (true, vec![true, false, true, false]));
}

#[test]
fn all_of_a_request_is_known_or_nothing_is_said() {
    let request = request(&[10, 1_000_000]);
    let known =
        request.join_stored(&[vec![anchor(0, 0)], vec![anchor(0, 0)]]).expect("no id is expected").expect("known");
    assert_eq!(
        known.iter().map(|known| (known.created, known.delta_us)).collect::<Vec<_>>(),
        [(Some(false), 10), (Some(false), 1_000_000)]
    );
    assert_eq!(known[0].id, known[1].id);
    assert_eq!(request.join_stored(&[vec![anchor(0, 0)], vec![anchor(-1, 0)]]), Ok(None));
    assert_eq!(request.join_stored(&[Vec::new(), vec![anchor(0, 0)]]), Ok(None));
}

#[test]
fn ungrouped_reports_have_the_ids_of_their_own_times() {
    let own = request(&[0, 999_999, 1_000_000]).decide_ungrouped().expect("no id is expected");
    assert!(own.iter().all(|own| (own.created, own.delta_us) == (None, 0)));
    assert_eq!(own[0].id, own[1].id, "an id knows whole seconds");
    assert_ne!(own[0].id, own[2].id);
    assert_eq!(own[1].anchor, Tca(BASE + 999_999));
}

#[test]
fn a_report_that_names_another_id_stops_its_whole_request() {
    let id = |delta| request(&[delta]).decide_ungrouped().expect("no id is expected")[0].id;
    let naming =
        |id| request_of(&[sighting(5_000_000, 1, 2), Sighting { expected: Some(id), ..sighting(500_000, 1, 2) }]);
    let (right, wrong) = (id(0), id(1_000_000));
    let refusal = GroupRefusal { index: 1, error: GroupError::OtherId { named: wrong, gets: right } };
    let stored = [Vec::new(), vec![anchor(0, 0)]];

    let mut new = NewAnchors::default();
    assert_eq!(naming(wrong).decide(&stored, &mut new), Err(refusal.clone()));
    assert!(new.by_format.is_empty(), "nothing was decided");
    assert_eq!(naming(wrong).decide_ungrouped(), Err(refusal.clone()));
    let all_known = [vec![anchor(5_000_000, 0)], vec![anchor(0, 0)]];
    assert_eq!(naming(wrong).join_stored(&all_known), Err(refusal));
    let (grouped, plans) = naming(right).decide(&stored, &mut new).expect("the named id is the one it gets");
    assert_eq!((grouped[1].id, plans.len()), (right, 1));
}

#[test]
fn a_report_without_an_id_of_its_own_is_refused_at_once() {
    let sightings = [sighting(0, 1, 2), sighting(0, 1, 1 << 22), sighting(0, 1 << 22, 1)];
    let refusal = GroupRequest::new(minter(PairOrder::Reported), &sightings).expect_err("no catalogue number");
    assert_eq!(refusal.index, 1);
    assert!(matches!(refusal.error, GroupError::Report(ReportError::ObjectTooGreat { .. })));
}
