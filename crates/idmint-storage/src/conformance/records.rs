//! Checks how every engine stores ledgers and request keys, both alone and together with
//! conjunctions.

use super::{assert_stale, written_of};
use crate::records::{DoneRequest, LedgerSummary, RecordPlan, RecordStore, WrittenDay};
use crate::samples::{
    NOW, absent, anchor, append, at, create, links, near, plan, write, write_ledger,
};
use idmint_records::ledger::{
    AppendPlan, EventId, Head, ImportPart, KeyHash, LedgerId, LedgerRequest, Link,
};

/// The number of times that a test lets several threads write to the store at the same moment.
const ROUNDS: u128 = 25;

pub fn appends_are_read_as_they_were_written(records: &dyn RecordStore) {
    let plans = write_ledger(records, "genesis", 10);
    let (ledger, head) = (plans[0].ledger(), plans[2].head());
    assert_eq!((head.place, head.recorded), (6, at(NOW + 2_000_000)));
    assert_eq!(records.head(ledger).expect("reads"), Some(head));
    let summary = LedgerSummary {
        genesis: plans[0].head().id,
        head,
    };
    assert_eq!(records.ledger(ledger).expect("reads"), Some(summary));
    assert_eq!(
        records.chain(ledger, None, 100).expect("reads"),
        links(&plans)
    );
    for link in links(&plans) {
        assert_eq!(records.link(link.id).expect("reads"), Some(link));
    }
    for plan in &plans {
        let (stored, links) = records
            .append(plan.head().id)
            .expect("reads")
            .expect("is there");
        assert_eq!(
            (stored.first_place, stored.recorded, stored.mark),
            (plan.first_place(), plan.recorded, plan.mark)
        );
        assert_eq!(
            (stored.head(), &stored.entries),
            (plan.head(), &plan.entries)
        );
        assert_eq!(links, plan.links().collect::<Vec<_>>());
    }
}

pub fn a_long_append_is_one_append_and_read_from_anywhere_within(records: &dyn RecordStore) {
    let genesis = plan(&create("genesis", 10), None, NOW);
    let names: Vec<String> = (0..1_000).map(|number| format!("event {number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let long = plan(
        &append(genesis.ledger(), &names, 11),
        Some(genesis.head()),
        NOW + 1_000_000,
    );
    let short = plan(
        &append(genesis.ledger(), &["short"], 12),
        Some(long.head()),
        NOW + 2_000_000,
    );
    let plans = [genesis, long, short];
    write(records, &plans[..2]);
    assert_eq!(
        records.head(plans[0].ledger()).expect("reads"),
        Some(plans[1].head())
    );
    write(records, &plans[2..]);

    let [genesis, long, short] = &plans;
    let (ledger, expected) = (genesis.ledger(), links(&plans));
    let summary = LedgerSummary {
        genesis: genesis.head().id,
        head: short.head(),
    };
    assert_eq!(records.ledgers(None, 9).expect("reads"), [summary]);
    for (at, link) in expected.iter().enumerate() {
        assert_eq!(records.link(link.id).expect("reads"), Some(*link));
        let behind = &expected[at + 1..];
        assert_eq!(
            records.chain(ledger, Some(link.id), 7).expect("reads"),
            behind[..behind.len().min(7)]
        );
        let is_an_end = plans.iter().any(|plan| plan.head().id == link.id);
        assert_eq!(
            records.append(link.id).expect("reads").is_some(),
            is_an_end,
            "event {at}"
        );
    }
    assert_eq!(records.chain(ledger, None, 2_000).expect("reads"), expected);
    let (stored, links) = records
        .append(long.head().id)
        .expect("reads")
        .expect("is there");
    assert_eq!(
        (stored.first_place, stored.mark, &stored.entries),
        (2, long.mark, &long.entries)
    );
    assert_eq!(links, long.links().collect::<Vec<_>>());
    let done = records
        .request(KeyHash(11))
        .expect("reads")
        .expect("is known");
    assert_eq!((done.last, done.recorded), (long.head().id, long.recorded));
}

pub fn that_an_import_goes_on_is_kept_with_the_head(records: &dyn RecordStore) {
    let LedgerRequest::Create { genesis, mark, .. } = create("genesis", 10) else {
        panic!("it creates a ledger")
    };
    let first = plan(
        &LedgerRequest::Create {
            genesis,
            mark,
            import: Some(ImportPart::More),
        },
        None,
        NOW,
    );
    write(records, std::slice::from_ref(&first));
    let head = records
        .head(first.ledger())
        .expect("reads")
        .expect("is there");
    assert!(head.is_importing && head == first.head());
    let summary = records
        .ledger(first.ledger())
        .expect("reads")
        .expect("is there");
    assert_eq!(
        (summary.head, records.ledgers(None, 9).expect("reads")),
        (head, vec![summary])
    );
    let (stored, _) = records.append(head.id).expect("reads").expect("is there");
    assert!(stored.is_importing);

    let forgetful = plan(
        &append(first.ledger(), &["a"], 11),
        Some(Head {
            is_importing: false,
            ..head
        }),
        NOW,
    );
    assert_stale(records, &[RecordPlan::Append(forgetful)]);
}

pub fn what_is_not_there_is_not_found(records: &dyn RecordStore) {
    let plans = write_ledger(records, "genesis", 10);
    let ledger = plans[0].ledger();
    for other in [ledger.bits() - 4, ledger.bits() + 4]
        .map(|bits| LedgerId::from_bits(bits).expect("version 00"))
    {
        assert_eq!(records.head(other).expect("reads"), None);
        assert_eq!(records.ledger(other).expect("reads"), None);
        assert_eq!(records.chain(other, None, 9).expect("reads"), []);
        assert_eq!(records.link(absent(other)).expect("reads"), None);
    }
    assert_eq!(records.link(absent(ledger)).expect("reads"), None);
    assert_eq!(records.append(absent(ledger)).expect("reads"), None);
    let inside = plans[1].entries[1].id;
    assert_eq!(
        records.append(inside).expect("reads"),
        None,
        "an append is named by its last event"
    );
    assert_eq!(near(records, 0), []);
}

pub fn a_plan_for_another_head_writes_nothing_nor_do_those_before_it(records: &dyn RecordStore) {
    let plans = write_ledger(records, "genesis", 10);
    let (ledger, old, head) = (plans[0].ledger(), plans[1].head(), plans[2].head());
    let other = plan(&create("other", 20), None, NOW);
    let late = plan(&append(ledger, &["late"], 30), Some(old), NOW + 3_000_000);
    let before = plan(&create("before", 60), None, NOW);
    let unknown = plan(&append(other.ledger(), &["a"], 40), Some(other.head()), NOW);
    let twice = plan(&append(ledger, &["twice"], 50), Some(head), NOW + 4_000_000);
    for stale in [
        vec![RecordPlan::Append(late)],
        vec![RecordPlan::Append(plans[0].clone())],
        vec![RecordPlan::Append(unknown)],
        vec![RecordPlan::Append(twice.clone()), RecordPlan::Append(twice)],
    ] {
        assert_stale(records, &stale);
        assert_stale(
            records,
            &[
                vec![RecordPlan::Append(before.clone()), anchor(0, 0)],
                stale,
            ]
            .concat(),
        );
        assert_eq!(records.ledgers(None, 9).expect("reads").len(), 1);
        assert_eq!(near(records, 0), []);
        assert_eq!(
            records.chain(ledger, None, 100).expect("reads"),
            links(&plans)
        );
    }
}

pub fn plans_that_follow_each_other_are_written_in_one_call(records: &dyn RecordStore) {
    let mut plans = vec![plan(&create("genesis", 1), None, NOW)];
    for key in 2..40 {
        let order = append(plans[0].ledger(), &["a", "b"], key);
        plans.push(plan(&order, plans.last().map(AppendPlan::head), NOW));
    }
    let other = plan(&create("other", 99), None, NOW);
    write(records, &[plans.clone(), vec![other.clone()]].concat());
    assert_eq!(
        records
            .chain(plans[0].ledger(), None, 1_000)
            .expect("reads"),
        links(&plans)
    );
    assert_eq!(
        records.head(other.ledger()).expect("reads"),
        Some(other.head())
    );
    records.write(&[]).expect("nothing is nothing");
}

pub fn many_writers_at_once_make_one_chain(records: &dyn RecordStore) {
    let genesis = plan(&create("genesis", 1), None, NOW);
    write(records, std::slice::from_ref(&genesis));
    let ledger = genesis.ledger();
    for round in 0..ROUNDS {
        let head = records.head(ledger).expect("reads");
        let of_writer = |writer: u128| {
            RecordPlan::Append(plan(
                &append(ledger, &["a"], round * 10 + writer),
                head,
                NOW,
            ))
        };
        written_of(records, &[2, 3, 4, 5].map(of_writer));
    }
    let chain = records.chain(ledger, None, 1_000).expect("reads");
    let ids = chain.iter().map(|link| link.id);
    assert_eq!(
        chain,
        Link::chain(genesis.previous(), 1, ids).collect::<Vec<_>>()
    );
    assert_eq!(
        (chain.len() as u128, requests(records).len()),
        (1 + ROUNDS, chain.len())
    );
}

pub fn ledgers_are_listed_in_their_order_page_by_page(records: &dyn RecordStore) {
    assert_eq!(records.ledgers(None, 9).expect("reads"), []);
    let mut all = Vec::new();
    for key in 0..7 {
        let plans = write_ledger(records, &format!("ledger {key}"), key * 10);
        all.push(LedgerSummary {
            genesis: plans[0].head().id,
            head: plans[2].head(),
        });
    }
    all.sort_by_key(|ledger| ledger.head.id.ledger());
    assert_eq!(records.ledgers(None, 100).expect("reads"), all);
    for page in 1..=all.len() {
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let found = records.ledgers(after, page).expect("reads");
            assert!(found.len() <= page);
            let Some(last) = found.last() else { break };
            after = Some(last.head.id.ledger());
            listed.extend(found);
        }
        assert_eq!(listed, all, "{page} at a time");
    }
    let last_there_can_be = LedgerId::from_bits(u32::MAX - 3);
    assert_eq!(records.ledgers(last_there_can_be, 9).expect("reads"), []);
}

pub fn a_chain_is_read_from_any_event_on_and_page_by_page(records: &dyn RecordStore) {
    let plans = write_ledger(records, "genesis", 10);
    write_ledger(records, "another", 20);
    let (ledger, all) = (plans[0].ledger(), links(&plans));
    let chain = |after: Option<EventId>, count| records.chain(ledger, after, count).expect("reads");
    for (known, link) in (1..).zip(&all) {
        assert_eq!(
            chain(Some(link.id), 100),
            all[known..],
            "after event {known}"
        );
        assert_eq!(chain(None, known), all[..known], "the first {known}");
        let page_end = (known + 2).min(all.len());
        assert_eq!(
            chain(Some(link.id), 2),
            all[known..page_end],
            "two after event {known}"
        );
    }
}

/// Returns the request keys below 500 that the store has recorded.
fn requests(records: &dyn RecordStore) -> Vec<u128> {
    let is_known = |key: &u128| records.request(KeyHash(*key)).expect("reads").is_some();
    (0..500).filter(is_known).collect()
}

pub fn a_request_is_found_by_its_key(records: &dyn RecordStore) {
    assert_eq!(requests(records), [0; 0]);
    let plans = [10, 20, 30]
        .map(|key| write_ledger(records, &format!("ledger {key}"), key))
        .concat();
    let mut unmarked = plan(&create("unmarked", 40), None, NOW + 9_000_000);
    unmarked.mark = None;
    write(records, &[unmarked]);
    for plan in &plans {
        let done = DoneRequest::of(&RecordPlan::Append(plan.clone())).expect("it has a key");
        assert_eq!(records.request(done.key).expect("reads"), Some(done));
    }
    assert!(
        requests(records).iter().all(|key| ![13, 40].contains(key)),
        "nobody sent them"
    );
}

pub fn a_plan_that_is_stale_leaves_no_key(records: &dyn RecordStore) {
    let plans = write_ledger(records, "genesis", 10);
    let ledger = plans[0].ledger();
    let next = plan(
        &append(ledger, &["f"], 50),
        Some(plans[2].head()),
        NOW + 3_000_000,
    );
    assert_stale(
        records,
        &[
            RecordPlan::Append(next),
            RecordPlan::Append(plans[1].clone()),
        ],
    );
    assert_eq!(requests(records), [10, 11, 12]);
}

pub fn keys_are_forgotten_a_day_at_a_time_and_those_of_the_last_three_days_never(
    records: &dyn RecordStore,
) {
    const DAY: u64 = 86_400_000_000;
    let [_, _, two] = write_ledger(records, "genesis", 10);
    let (ledger, mut head) = (two.ledger(), two.head());
    for day in 1..=5 {
        for key in [0, 1] {
            let request = append(ledger, &["next"], u128::from(day * 2 + key) + 18);
            let next = plan(&request, Some(head), NOW + day * DAY + key);
            head = next.head();
            write(records, &[next]);
        }
    }
    let forget = |since| while records.forget_requests(at(since), 1).expect("writable") {};
    forget(NOW + DAY);
    assert_eq!(requests(records), [20, 21, 22, 23, 24, 25, 26, 27, 28, 29]);
    forget(NOW + 5_000 * DAY);
    assert_eq!(
        requests(records),
        [24, 25, 26, 27, 28, 29],
        "a clock far ahead"
    );
    let days = records.request_days().expect("reads");
    assert_eq!(
        days,
        [3, 4, 5].map(|day| WrittenDay::of(at(NOW + day * DAY)))
    );
    assert_eq!(
        records.chain(ledger, None, 100).expect("reads").len(),
        16,
        "the events stay"
    );
}

#[cfg(test)]
mod reopened {
    use super::*;
    use crate::conformance::starts::on_every_engine;
    use crate::samples::ready;
    use idmint_core::time::UnixNanos;

    const HORIZON: UnixNanos = UnixNanos::new(500);

    #[test]
    fn a_store_that_is_opened_again_has_all_of_it() {
        on_every_engine(|engine| {
            let store = ready(engine.open(), HORIZON, &[]);
            let records = store.records().expect("the store works");
            let plans = write_ledger(&*records, "genesis", 10);
            records
                .write(&[anchor(0, 0), anchor(1_500_000, 1)])
                .expect("the second knows of the first");
            drop((records, store));

            let store = ready(engine.open(), HORIZON, &[]);
            let records = store.records().expect("the store works");
            assert_eq!(
                records.chain(plans[0].ledger(), None, 100).expect("reads"),
                links(&plans)
            );
            assert_eq!(requests(&*records), [10, 11, 12]);
            assert_eq!(near(&*records, 0), [(0, 0), (1_500_000, 1)]);
            assert_stale(&*records, &[RecordPlan::Append(plans[2].clone())]);
            records.reopen().expect("a sound store can be opened again");
            assert_eq!(records.obstacle(), None);
            assert_eq!(
                records.head(plans[0].ledger()).expect("reads"),
                Some(plans[2].head())
            );
        });
    }
}
