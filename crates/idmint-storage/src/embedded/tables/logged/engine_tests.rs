//! Tests that a reader sees every commit that is in the log. The tables may already have the
//! commit, receive it during the read, or fail to store it.

use std::sync::Arc;

use super::*;
use crate::embedded::tables::request_table::REQUESTS;
use crate::embedded::tables::{Database, RecordTables};
use crate::failure::{FailureKind, Obstacle};
use crate::records::{
    AnchorKey, ConjunctionStore, LedgerStore, ListRange, RecordPlan, RecordStore,
};
use crate::samples::{NOW, anchor, append, create, links, near, plan, write, write_ledger};
use idmint_core::time::UnixNanos;
use idmint_records::conjunction::{Pair, ReportCount, Seen, Tca};
use idmint_records::ledger::AppendPlan;

fn in_memory() -> (Arc<Database>, RecordTables) {
    let database = Arc::new(Database::on_simulated_disk().expect("memory suffices"));
    (
        Arc::clone(&database),
        RecordTables::open(database).expect("it is new"),
    )
}

#[test]
fn what_the_tables_do_not_take_is_no_reason_to_show_what_was_before() {
    let (database, records) = in_memory();
    let plans = write_ledger(&records, "genesis", 10);
    let spoil = |engine: &Engine| {
        let transaction = engine.begin_write()?;
        transaction.delete_table(REQUESTS)?;
        transaction.open_table(TableDefinition::<u32, u32>::new("requests"))?;
        transaction.commit()
    };
    database.attempt(spoil).expect("the database works");
    let next = plan(
        &append(plans[0].ledger(), &["next"], 30),
        Some(plans[2].head()),
        NOW + 3_000_000,
    );
    records
        .write(&[RecordPlan::Append(next.clone())])
        .expect("the log has it");
    for _ in 0..3 {
        records
            .head(next.ledger())
            .expect_err("the tables have another head than was acknowledged");
        records
            .apply_pending()
            .expect_err("the tables do not take it");
        records
            .write(&[anchor(0, 0)])
            .expect_err("nothing is written on top of it");
    }
    assert_eq!(
        records.obstacle().map(Obstacle::failure_kind),
        Some(FailureKind::NotUsable),
        "it must be opened again"
    );
}

#[test]
fn readers_wait_for_short_commits_alone_and_see_every_one() {
    let (database, records) = in_memory();
    let pending = || {
        let pending = |engine: &Engine| {
            engine
                .pending()
                .map(|pending| (pending.len(), pending.waits()))
        };
        database.attempt(pending).expect("the database works")
    };
    let (mut plans, mut key) = (vec![plan(&create("genesis", 1), None, NOW)], 1);
    write(&records, &plans);
    records.apply_pending().expect("the tables take it");
    // Appends of one event take about 190 bytes each.
    let mut append = |count: usize| {
        let first = plans.len();
        for _ in 0..count {
            key += 1;
            let request = append(plans[0].ledger(), &["next"], key);
            plans.push(plan(
                &request,
                plans.last().map(AppendPlan::head),
                NOW + 1_000_000,
            ));
        }
        write(&records, &plans[first..]);
        plans.clone()
    };
    let mut committed = 0;
    for _ in 0..30 {
        let (before, _) = pending();
        let plans = append(50);
        let (len, waits) = pending();
        assert!(
            waits && len > before,
            "callers are told before the tables take it"
        );
        records.apply_pending().expect("the tables take it");
        match pending() {
            (0, false) => committed += 1,
            (open, waits) => assert!(
                !waits && open == len && open < OPEN_MAX,
                "{open} of {len} bytes"
            ),
        }
        assert_eq!(
            records.head(plans[0].ledger()).expect("readable"),
            plans.last().map(AppendPlan::head)
        );
    }
    assert!(
        committed >= 2,
        "{committed} commits of 1 500 appends that nobody reads"
    );

    for (count, waits) in [(50, true), (400, false), (1, true)] {
        let plans = append(count);
        assert_eq!(
            pending().1,
            waits,
            "{count} appends: of many the tables have all before callers are told"
        );
        assert_eq!(
            records
                .chain(plans[0].ledger(), None, 9_999)
                .expect("readable"),
            links(&plans)
        );
        assert_eq!(pending(), (0, false), "what is read is committed");
    }
}

#[test]
fn what_callers_were_told_of_is_there_whoever_comes_next() {
    type Next = fn(&RecordTables, &[AppendPlan]);
    let comes: [(&str, Next); 4] = [
        ("a reader", |records, plans| {
            assert_eq!(
                records.link(plans[0].head().id).expect("readable"),
                plans[0].links().next()
            );
        }),
        ("a writer in a transaction of his own", |records, _| {
            records.add_reports(&[]).expect("writable")
        }),
        ("a long commit", |records, _| {
            let anchors: Vec<_> = (0..500)
                .map(|second| anchor(second * 5_000_000, 0))
                .collect();
            records.write(&anchors).expect("they are far apart");
        }),
        ("a start", |records, _| {
            records.reopen().expect("the file is sound")
        }),
    ];
    for (who, come) in comes {
        for is_applied in [false, true] {
            let (database, records) = in_memory();
            let plans = write_ledger(&records, "genesis", 10);
            if is_applied {
                records.apply_pending().expect("the tables take it");
            }
            come(&records, &plans);
            for _ in 0..2 {
                assert_eq!(
                    records
                        .chain(plans[0].ledger(), None, 99)
                        .expect("readable"),
                    links(&plans),
                    "{who}"
                );
                database.reopen().expect("the file is sound");
            }
        }
    }
}

#[test]
fn after_a_panic_in_a_transaction_nothing_is_written_until_the_file_was_opened_again() {
    let (database, records) = in_memory();
    let plans = write_ledger(&records, "genesis", 10);
    let panicking = |engine: &Engine| -> Result<(), redb::Error> {
        let mut writing = engine.begin_write()?;
        // Simulate a panic of the engine while it commits rows that are already in the log.
        let rows = logged_rows::bytes_of(&[anchor(0, 0)], &[]);
        writing.log.append(&rows)?;
        panic!("page 7 is out of range");
    };
    database.attempt(panicking).expect_err("the work panicked");
    let next = plan(
        &append(plans[0].ledger(), &["next"], 30),
        Some(plans[2].head()),
        NOW + 3_000_000,
    );
    let next = [RecordPlan::Append(next)];
    for _ in 0..3 {
        records
            .write(&next)
            .expect_err("nothing is written on top of a commit that the tables do not have");
        records
            .add_reports(&[])
            .expect_err("nor synced, which would say that they have it");
    }
    assert_eq!(
        records
            .chain(plans[0].ledger(), None, 99)
            .expect("readable"),
        links(&plans)
    );
    database.reopen().expect("the log is sound");
    assert_eq!(
        near(&records, 0),
        [(0, 0)],
        "what the log has is there, told of or not"
    );
    records.write(&next).expect("the tables have all");
}

#[test]
fn rows_of_the_log_that_the_tables_have_already_stay_as_they_are() {
    let (database, records) = in_memory();
    let plans = write_ledger(&records, "genesis", 10);
    records
        .write(&[anchor(0, 0), anchor(5_000_000, 0)])
        .expect("they are far apart");
    let pair = Pair {
        primary: 1,
        secondary: 2,
    };
    let key = AnchorKey {
        format: "conjunction".to_owned(),
        pair,
        tca: Tca(0),
    };
    let reports = ReportCount::of(Seen {
        at: UnixNanos::new(7),
        tca: Tca(9),
    });
    records.add_reports(&[(key, reports)]).expect("writable");
    // Simulate an engine that was closed after a panic: the tables are synced, but the commit
    // number in them is outdated.
    let forget_number = |engine: &Engine| {
        let Writing {
            transaction,
            mut log,
            ..
        } = engine.begin_write()?;
        transaction.open_table(COMMITS)?.insert((), 0)?;
        log.noted = log.last;
        Ok(transaction.commit()?)
    };
    database.attempt(forget_number).expect("the database works");
    let times = Tca(i64::MIN)..=Tca(i64::MAX);
    let all = ListRange {
        format: "conjunction".to_owned(),
        times,
        after: None,
        latest_first: false,
    };
    for _ in 0..2 {
        database
            .reopen()
            .expect("every row of the log is there already");
        assert_eq!(
            records
                .chain(plans[0].ledger(), None, 99)
                .expect("readable"),
            links(&plans)
        );
        assert_eq!(near(&records, 0), [(0, 0)]);
        let listed = records.conjunctions(&all, 9).expect("readable");
        assert_eq!(
            listed
                .iter()
                .map(|listed| listed.report_count)
                .collect::<Vec<_>>(),
            [Some(reports), None]
        );
    }
}
