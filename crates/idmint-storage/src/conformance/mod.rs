//! The conformance suite, which checks the behavior that every store must have.
//!
//! [`record_store_tests!`](crate::record_store_tests) turns each check into a test. A new store
//! only has to provide a function that runs a check on an empty store. [`stores_agree_on_records`]
//! and [`stores_agree_on_numbers`] compare several stores that receive the same plans.

#![allow(
    missing_docs,
    reason = "the name of a check is a sentence that says what it checks"
)]

pub mod anchors;
mod equal_engines;
pub mod numbers;
pub mod records;
#[cfg(test)]
mod starts;

use std::slice;
use std::sync::Barrier;
use std::thread;

use crate::records::{RecordPlan, RecordStore, WriteError};
pub use equal_engines::{stores_agree_on_numbers, stores_agree_on_records};

macro_rules! suite {
    ($d:tt $($group:ident { $($check:ident,)* })*) => {
        /// Defines one test for each check of the suite.
        /// `$on` is the name of a function that takes a check, `fn(&dyn RecordStore)`. The function
        /// must call the check on an empty store, once for each kind of store.
        #[macro_export]
        macro_rules! record_store_tests {
            ($d on:ident) => {$(
                mod $group {$(
                    #[test]
                    fn $check() {
                        super::$d on($d crate::conformance::$group::$check);
                    }
                )*}
            )*};
        }
    };
}

suite! { $
    anchors {
        an_anchor_that_others_have_come_near_to_writes_nothing,
        an_adopted_anchor_is_not_written_where_another_has_come_to_its_second,
        neighbours_are_two_seconds_either_way_and_of_one_pair_and_format,
        many_reporters_at_once_make_one_anchor,
        anchors_are_forgotten_a_few_at_a_time_and_the_others_stay,
        an_anchor_whose_reports_were_counted_since_it_was_read_is_not_forgotten,
        ids_of_others_are_kept_beside_anchors_that_are_stored_and_forgotten_with_them,
        many_anchors_with_many_ids_of_others_are_forgotten,
        conjunctions_are_listed_by_time_with_what_is_known_of_their_reports,
    }
    numbers {
        numbers_are_read_as_they_were_written_and_found_by_their_keys,
        a_plan_for_another_head_writes_nothing_nor_do_those_before_it,
        plans_that_follow_each_other_are_written_in_one_call,
        a_number_is_void_once_and_listed_with_its_reason,
        series_are_listed_in_their_order_page_by_page,
        many_writers_at_once_make_one_series_without_a_gap,
        a_series_with_numbers_keeps_its_kind_and_one_without_may_change_it,
        a_wrong_first_number_is_replaced_once_and_its_key_is_free_again,
        two_series_may_write_equal_texts_only_if_they_have_numbers_already,
        a_number_keeps_the_form_in_which_it_was_given,
        a_number_that_was_skipped_after_a_restore_is_void,
        templates_of_the_first_start_stay_and_no_text_is_written_twice,
        a_changed_text_is_compared_with_the_numbers_that_were_written,
        a_series_does_not_repeat_its_own_plain_digits,
        a_higher_start_does_not_hide_texts_that_a_begun_series_repeats,
        the_series_whose_texts_change_are_named_with_their_next_numbers,
        a_closed_series_gives_no_number_and_keeps_those_it_has,
        of_a_number_and_a_close_at_once_one_comes_first,
    }
    records {
        appends_are_read_as_they_were_written,
        a_long_append_is_one_append_and_read_from_anywhere_within,
        that_an_import_goes_on_is_kept_with_the_head,
        what_is_not_there_is_not_found,
        a_plan_for_another_head_writes_nothing_nor_do_those_before_it,
        plans_that_follow_each_other_are_written_in_one_call,
        many_writers_at_once_make_one_chain,
        ledgers_are_listed_in_their_order_page_by_page,
        a_chain_is_read_from_any_event_on_and_page_by_page,
        a_request_is_found_by_its_key,
        a_plan_that_is_stale_leaves_no_key,
        keys_are_forgotten_a_day_at_a_time_and_those_of_the_last_three_days_never,
    }
}

/// Asserts that the store refuses these plans as stale, because the stored data has changed since
/// the plans were made.
fn assert_stale(records: &dyn RecordStore, plans: &[RecordPlan]) {
    assert!(
        matches!(records.write(plans), Err(WriteError::Stale)),
        "{plans:?}"
    );
}

/// Writes all plans at the same moment, each on its own thread. All plans are based on the current
/// state, so the store must accept exactly one of them. Returns the index of the accepted plan.
fn written_of(records: &dyn RecordStore, plans: &[RecordPlan]) -> usize {
    let begin = Barrier::new(plans.len());
    let is_written = |plan: &RecordPlan| {
        begin.wait();
        match records.write(slice::from_ref(plan)) {
            Ok(()) => true,
            Err(WriteError::Stale) => false,
            Err(
                WriteError::Store(error)
                | WriteError::NotWritten(error)
                | WriteError::TooLong(error),
            ) => panic!("{error}"),
        }
    };
    let written: Vec<bool> = thread::scope(|scope| {
        let writers: Vec<_> = plans
            .iter()
            .map(|plan| scope.spawn(|| is_written(plan)))
            .collect();
        writers
            .into_iter()
            .map(|writer| writer.join().expect("no writer panics"))
            .collect()
    });
    let places: Vec<usize> = (0..plans.len()).filter(|at| written[*at]).collect();
    assert!(matches!(places[..], [_]), "{written:?} of {plans:?}");
    places[0]
}

#[cfg(test)]
mod tests {
    use super::starts::on_every_engine;
    use crate::records::RecordStore;
    use crate::samples::ready;
    use idmint_core::time::UnixNanos;

    fn on_own_engines(check: impl Fn(&dyn RecordStore)) {
        on_every_engine(|engine| {
            let store = ready(engine.open(), UnixNanos::new(500), &[]);
            check(&*store.records().expect("the store works"));
        });
    }

    record_store_tests!(on_own_engines);
}
