//! Checks how every storage engine stores anchors, the first reports of close approaches.

use std::thread;

use super::assert_stale;
use crate::records::{AnchorKey, CountedAnchor, ListRange, RecordPlan, RecordStore, WriteError};
use crate::samples::{NOW, anchor, anchor_of, create, near, plan, reports};
use idmint_core::time::UnixNanos;
use idmint_records::conjunction::{
    Anchor, AnchorPlan, ExternalId, NewAnchors, Pair, ReportCount, Seen, Tca,
};

pub fn an_anchor_that_others_have_come_near_to_writes_nothing(records: &dyn RecordStore) {
    records
        .write(&[anchor(0, 0), anchor(1_500_000, 1)])
        .expect("the second knows of the first");
    let ledger = RecordPlan::Append(plan(&create("genesis", 1), None, NOW));
    for stale in [
        anchor(0, 0),
        anchor(1_000_000, 2),
        anchor(-1_000_000, 0),
        anchor(-1_000_001, 0),
        anchor(-2_000_000, 0),
        anchor(3_500_000, 3),
        anchor(-1_000_001, 2),
    ] {
        assert_stale(records, &[ledger.clone(), stale]);
    }
    assert_eq!(records.ledgers(None, 9).expect("reads"), []);
    for sound in [
        anchor(-2_000_001, 0),
        anchor(3_500_000, 2),
        anchor(-3_000_002, 1),
        anchor_of("conjunction", (2, 1), 0, 0),
        anchor_of("conjunctions", (1, 2), 0, 0),
        anchor_of("conjunction", (1, 3), 0, 0),
    ] {
        records
            .write(std::slice::from_ref(&sound))
            .unwrap_or_else(|error| panic!("{sound:?}: {error}"));
    }
}

pub fn an_adopted_anchor_is_not_written_where_another_has_come_to_its_second(
    records: &dyn RecordStore,
) {
    let pair = Pair {
        primary: 1,
        secondary: 2,
    };
    let plan = |free: &[(i64, i64)]| {
        let free = free
            .iter()
            .map(|(from, to)| Tca(*from)..=Tca(*to))
            .collect();
        let anchor = Anchor {
            tca: Tca(999_999),
            rank: 1,
        };
        RecordPlan::Anchor(AnchorPlan {
            format: "conjunction".to_owned(),
            pair,
            anchor,
            free,
        })
    };
    records
        .write(&[anchor(1_500_000, 0), anchor(70_000_000, 0)])
        .expect("nothing is near them");
    assert_stale(records, &[plan(&[(69_000_001, 71_000_001), (0, 999_999)])]);
    assert_stale(
        records,
        &[plan(&[(80_000_000, 82_000_000), (0, 1_500_000)])],
    );
    records
        .write(&[plan(&[(80_000_000, 82_000_000), (0, 999_999)])])
        .expect("both are free");
    assert_eq!(near(records, 0), [(999_999, 1), (1_500_000, 0)]);
}

pub fn neighbours_are_two_seconds_either_way_and_of_one_pair_and_format(records: &dyn RecordStore) {
    let plans = [-2_000_000, 0, 2_000_000]
        .map(|delta| anchor(delta, u32::from(delta > -9) + u32::from(delta > 9)));
    records.write(&plans).expect("each knows of those before");
    records
        .write(&[anchor_of("conjunction", (1, 3), 5, 0)])
        .expect("another pair");
    records
        .write(&[anchor_of("conjunction-of-ours", (1, 2), 5, 0)])
        .expect("another format");
    assert_eq!(near(records, 0), [(-2_000_000, 0), (0, 1), (2_000_000, 2)]);
    assert_eq!(near(records, 1), [(0, 1), (2_000_000, 2)]);
    assert_eq!(near(records, -1), [(-2_000_000, 0), (0, 1)]);
    assert_eq!(near(records, 4_000_000), [(2_000_000, 2)]);
    assert_eq!(near(records, 4_000_001), []);

    let keys =
        [(1, 2), (1, 3), (2, 1)].map(|(primary, secondary)| (Pair { primary, secondary }, Tca(0)));
    let found = records
        .neighbours("conjunction", &mut keys.into_iter())
        .expect("the database works");
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [3, 1, 0]);
    assert_eq!(
        near(records, i64::MAX),
        [],
        "the neighbourhood ends where time does"
    );
}

pub fn many_reporters_at_once_make_one_anchor(records: &dyn RecordStore) {
    let group_until_done = |delta: i64| {
        let order = reports(&[delta], 1, 2);
        loop {
            let stored = records
                .neighbours(order.format(), &mut order.keys())
                .expect("reads");
            let (grouped, plans) = order
                .decide(&stored, &mut NewAnchors::default())
                .expect("no id is expected");
            let plans: Vec<_> = plans.into_iter().map(RecordPlan::Anchor).collect();
            match records.write(&plans) {
                Ok(()) => return grouped[0].anchor,
                Err(WriteError::Stale) => {}
                Err(
                    WriteError::Store(error)
                    | WriteError::NotWritten(error)
                    | WriteError::TooLong(error),
                ) => {
                    panic!("{error}")
                }
            }
        }
    };
    for conjunction in 0..10 {
        let deltas = [-400_000, -1, 1, 400_000].map(|beside| conjunction * 5_000_000 + beside);
        let anchors = thread::scope(|scope| {
            let reporters = deltas.map(|delta| scope.spawn(move || group_until_done(delta)));
            reporters.map(|reporter| reporter.join().expect("nobody panics"))
        });
        assert!(
            anchors.iter().all(|anchor| *anchor == anchors[0]),
            "{anchors:?}"
        );
    }
}

pub fn anchors_are_forgotten_a_few_at_a_time_and_the_others_stay(records: &dyn RecordStore) {
    assert_eq!(records.anchors(None, 5).expect("works"), []);
    let all = (0..20).map(|at| {
        anchor_of(
            ["a", "b"][at % 2],
            (1, 2),
            5_000_000 * i64::try_from(at).expect("small"),
            0,
        )
    });
    records
        .write(&all.collect::<Vec<_>>())
        .expect("they are far apart");
    let (mut after, mut listed) = (None, Vec::new());
    loop {
        let some = records.anchors(after.as_ref(), 3).expect("works");
        let old: Vec<_> = some
            .iter()
            .filter(|anchor| anchor.key.tca < Tca(50_000_000))
            .cloned()
            .collect();
        records.forget_anchors(&old).expect("works");
        let Some(last) = some.last() else { break };
        after = Some(last.key.clone());
        listed.extend(
            some.into_iter()
                .map(|anchor| (anchor.key.format, anchor.key.tca.0 / 5_000_000)),
        );
    }
    let of_format = |format: &str| {
        listed
            .iter()
            .filter(|(of, _)| of == format)
            .map(|(_, at)| *at)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of_format("a"),
        (0..20).rev().filter(|at| at % 2 == 0).collect::<Vec<_>>(),
        "the latest first"
    );
    assert_eq!(
        of_format("b"),
        (0..20).rev().filter(|at| at % 2 == 1).collect::<Vec<_>>()
    );
    assert!(
        listed.is_sorted_by(|(one, _), (other, _)| one >= other),
        "{listed:?}"
    );
    let left = (0..20).filter(|at| {
        let key = (
            Pair {
                primary: 1,
                secondary: 2,
            },
            Tca(5_000_000 * at),
        );
        let found = ["a", "b"].map(|format| {
            records
                .neighbours(format, &mut std::iter::once(key))
                .expect("works")
        });
        found.concat().concat().len() == 1
    });
    assert_eq!(left.collect::<Vec<_>>(), (10..20).collect::<Vec<_>>());
}

/// Removes the anchors for which `is_old` returns `true`.
fn forget(records: &dyn RecordStore, is_old: impl Fn(&CountedAnchor) -> bool) {
    let anchors = records.anchors(None, 100).expect("reads");
    records
        .forget_anchors(&anchors.into_iter().filter(is_old).collect::<Vec<_>>())
        .expect("writable");
}

pub fn an_anchor_whose_reports_were_counted_since_it_was_read_is_not_forgotten(
    records: &dyn RecordStore,
) {
    records
        .write(&[anchor(0, 0), anchor(5_000_000, 0)])
        .expect("they are far apart");
    let read = records.anchors(None, 9).expect("reads");
    let counted = ReportCount::of(Seen {
        at: UnixNanos::new(7),
        tca: Tca(0),
    });
    records
        .add_reports(&[(read[1].key.clone(), counted)])
        .expect("writable");
    records.forget_anchors(&read).expect("writable");
    assert_eq!(
        (near(records, 0), near(records, 5_000_000)),
        (vec![(0, 0)], vec![])
    );
    let left = records.anchors(None, 9).expect("reads");
    assert_eq!(
        left,
        [CountedAnchor {
            key: read[1].key.clone(),
            report_count: Some(counted)
        }]
    );
    records.forget_anchors(&left).expect("writable");
    assert_eq!(
        (near(records, 0), records.anchors(None, 9).expect("reads")),
        (vec![], vec![])
    );
}

pub fn ids_of_others_are_kept_beside_anchors_that_are_stored_and_forgotten_with_them(
    records: &dyn RecordStore,
) {
    let key = |format: &str, delta| AnchorKey {
        format: format.to_owned(),
        pair: Pair {
            primary: 1,
            secondary: 2,
        },
        tca: Tca(delta),
    };
    let id = |text: &str| ExternalId::new(text).expect("short");
    let beside = |delta| {
        let found = records
            .externals(&[key("conjunction", 77), key("conjunction", delta)])
            .expect("reads");
        assert_eq!(found[0], [], "there is no such anchor");
        found[1]
            .iter()
            .map(ExternalId::to_string)
            .collect::<Vec<_>>()
    };
    let anchors = |text: &str, count_max| {
        let found = records
            .anchors_of_external("conjunction", &id(text), count_max)
            .expect("reads");
        found
            .into_iter()
            .map(|key| key.tca.0 / 5_000_000)
            .collect::<Vec<_>>()
    };
    records
        .write(&[anchor(0, 0), anchor(5_000_000, 0), anchor(-5_000_000, 0)])
        .expect("they are far apart");
    records
        .write(&[anchor_of("conjunctions", (1, 2), 0, 0)])
        .expect("another format");
    let given = [
        (0, "A"),
        (5_000_000, "A"),
        (-5_000_000, "A"),
        (0, "é / A"),
        (0, "A"),
        (77, "A"),
        (0, "AB"),
    ];
    let given = given.map(|(delta, text)| (key("conjunction", delta), id(text)));
    records.add_externals(&given).expect("writable");
    records
        .add_externals(&[(key("conjunctions", 0), id("B"))])
        .expect("writable");
    records.add_externals(&given).expect("the same again");
    assert_eq!(
        (beside(0), beside(5_000_000)),
        (
            vec!["A".to_owned(), "é / A".into(), "AB".into()],
            vec!["A".into()]
        )
    );
    assert_eq!(
        (anchors("A", 9), anchors("A", 2), anchors("A", 0)),
        (vec![1, 0, -1], vec![1, 0], vec![])
    );
    assert_eq!((anchors("é / A", 9), anchors("B", 9)), (vec![0], vec![]));

    let many: Vec<_> = (0..40)
        .map(|at| (key("conjunction", 5_000_000), id(&format!("N{at}"))))
        .collect();
    records.add_externals(&many).expect("writable");
    assert_eq!(beside(5_000_000).len(), ExternalId::COUNT_MAX);
    assert_eq!(
        (anchors("N14", 9), anchors("N15", 9)),
        (vec![1], vec![]),
        "the first 16 are kept"
    );

    let read = records.anchors(None, 9).expect("reads");
    let old: Vec<_> = read
        .into_iter()
        .filter(|anchor| anchor.key.format == "conjunction")
        .collect();
    let counted = ReportCount::of(Seen {
        at: UnixNanos::new(7),
        tca: Tca(0),
    });
    records
        .add_reports(&[(key("conjunction", 0), counted)])
        .expect("writable");
    records.forget_anchors(&old).expect("writable");
    assert_eq!(
        (anchors("A", 9), anchors("N0", 9), beside(5_000_000)),
        (vec![0], vec![], vec![])
    );
    assert_eq!(beside(0).len(), 3, "its anchor was reported again");
    let of_other = records
        .anchors_of_external("conjunctions", &id("B"), 9)
        .expect("reads");
    assert_eq!(of_other, [key("conjunctions", 0)]);
}

pub fn many_anchors_with_many_ids_of_others_are_forgotten(records: &dyn RecordStore) {
    let at = |at: usize| 5_000_000 * i64::try_from(at).expect("small");
    records
        .write(
            &(0..70)
                .map(|number| anchor(at(number), 0))
                .collect::<Vec<_>>(),
        )
        .expect("they are far apart");
    let key = |number| AnchorKey {
        format: "conjunction".to_owned(),
        pair: Pair {
            primary: 1,
            secondary: 2,
        },
        tca: Tca(at(number)),
    };
    // Add 0 to 19 external ids to each anchor, the first report of a close approach. The store must
    // keep at most 16 of them per anchor.
    let given = (0..70).flat_map(|number| (0..number * 2 / 7).map(move |of| (number, of)));
    let given = given.map(|(number, of)| {
        (
            key(number),
            ExternalId::new(&format!("{number}-{of}")).expect("short"),
        )
    });
    let given: Vec<_> = given.collect();
    assert_eq!(given.len(), 660);
    records.add_externals(&given).expect("writable");
    let left = || {
        let found = given.iter().map(|(_, id)| {
            records
                .anchors_of_external("conjunction", id, 1)
                .expect("reads")
                .len()
        });
        found.sum::<usize>()
    };
    let kept = (0..70)
        .map(|number: usize| (number * 2 / 7).min(ExternalId::COUNT_MAX))
        .sum::<usize>();
    assert_eq!(left(), kept);
    forget(records, |_| true);
    let beside = records
        .externals(&(0..70).map(key).collect::<Vec<_>>())
        .expect("reads");
    assert_eq!(
        (
            left(),
            beside.concat(),
            records.anchors(None, 9).expect("reads")
        ),
        (0, vec![], vec![])
    );
}

pub fn conjunctions_are_listed_by_time_with_what_is_known_of_their_reports(
    records: &dyn RecordStore,
) {
    for (pair, delta) in [
        ((1, 2), 0),
        ((3, 4), 5_000_000),
        ((1, 2), 5_000_000),
        ((2, 1), 9_000_000),
    ] {
        records
            .write(&[anchor_of("conjunction", pair, delta, 0)])
            .expect("nothing is near it");
    }
    records
        .write(&[anchor_of("conjunctions", (1, 2), 0, 0)])
        .expect("another format");
    let list = |times: (i64, i64),
                after: Option<(i64, u64, u64)>,
                latest_first: bool,
                count_max: usize| {
        let after = after.map(|(tca, primary, secondary)| (Tca(tca), Pair { primary, secondary }));
        let times = Tca(times.0)..=Tca(times.1);
        let range = ListRange {
            format: "conjunction".to_owned(),
            times,
            after,
            latest_first,
        };
        let found = records.conjunctions(&range, count_max).expect("reads");
        found
            .iter()
            .map(|one| (one.anchor.tca.0, one.pair.primary))
            .collect::<Vec<_>>()
    };
    let all = [(0, 1), (5_000_000, 1), (5_000_000, 3), (9_000_000, 2)];
    let reversed: Vec<_> = all.iter().rev().copied().collect();
    assert_eq!(list((i64::MIN, i64::MAX), None, false, 9), all);
    assert_eq!(list((i64::MIN, i64::MAX), None, true, 9), reversed);
    assert_eq!(list((i64::MIN, i64::MAX), None, true, 2), reversed[..2]);
    assert_eq!(list((1, 5_000_000), None, false, 9), all[1..3]);
    assert_eq!(
        list((0, 9_000_000), Some((5_000_000, 1, 2)), false, 9),
        all[2..]
    );
    assert_eq!(
        list((0, 9_000_000), Some((5_000_000, 1, 2)), true, 9),
        all[..1]
    );
    assert_eq!(list((6_000_000, 5_000_000), None, true, 9), []);

    let key = |delta| AnchorKey {
        format: "conjunction".to_owned(),
        pair: Pair {
            primary: 1,
            secondary: 2,
        },
        tca: Tca(delta),
    };
    let seen = |at, tca| {
        ReportCount::of(Seen {
            at: UnixNanos::new(at),
            tca: Tca(tca),
        })
    };
    records
        .add_reports(&[(key(0), seen(5, 10))])
        .expect("writable");
    records
        .add_reports(&[(key(0), seen(6, -10)), (key(77), seen(6, 0))])
        .expect("writable");
    let range = ListRange {
        format: "conjunction".to_owned(),
        times: Tca(0)..=Tca(5_000_000),
        after: None,
        latest_first: false,
    };
    let report_counts: Vec<_> = records
        .conjunctions(&range, 9)
        .expect("reads")
        .iter()
        .map(|one| one.report_count)
        .collect();
    assert_eq!(
        report_counts,
        [Some(seen(5, 10).followed_by(seen(6, -10))), None, None]
    );
    forget(records, |anchor: &CountedAnchor| {
        anchor.key.tca < Tca(6_000_000)
    });
    assert_eq!(
        list((i64::MIN, i64::MAX), None, false, 9),
        all[3..],
        "what is forgotten is not listed"
    );
    let pair = Pair {
        primary: 2,
        secondary: 1,
    };
    let spans = [
        (pair, Tca(8_000_000)..=Tca(9_000_000)),
        (pair, Tca(9_000_001)..=Tca(9_000_002)),
    ];
    let within = records
        .anchors_within("conjunction", &mut spans.into_iter())
        .expect("reads");
    assert_eq!(within.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0]);
}
