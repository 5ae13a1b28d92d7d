//! Checks how every engine stores numbers.

use std::collections::BTreeMap;

use super::{assert_stale, written_of};
use crate::failure::FailureKind;
use crate::records::{NumberStore, RecordPlan, RecordStore, SeriesSummary};
use crate::samples::{
    NOW, at, begin, close_plan, correction_plan, create, form, give, given_plan, in_form, plan,
    series, void_plan,
};
use idmint_records::ledger::{
    ClosedSeries, FormChange, GivenNumbers, KeyHash, NumberBounds, NumberCheck, NumberKinds,
    NumberPlan, NumberRule, NumberRules, NumberTemplate, ResumeRequest, SeriesHead, SeriesName,
    SeriesPattern,
};

/// The number of times that a test lets several threads write to the store at the same moment.
const ROUNDS: u64 = 25;

fn head_of(numbers: &dyn NumberStore, name: &SeriesName) -> Option<SeriesHead> {
    numbers.series_head(name).expect("reads")
}

fn given_to(numbers: &dyn NumberStore, name: &SeriesName, key: &str) -> Option<GivenNumbers> {
    numbers
        .given_to(&[(name.clone(), KeyHash::of_series(name, key))])
        .expect("reads")
        .remove(0)
}

pub fn numbers_are_read_as_they_were_written_and_found_by_their_keys(records: &dyn RecordStore) {
    let numbers: &dyn NumberStore = records;
    let (acme, other) = (series("acme-2026"), series("acme-202"));
    assert_eq!(
        (head_of(numbers, &acme), given_to(numbers, &acme, "a")),
        (None, None)
    );
    let all: Vec<GivenNumbers> = [("a", 1), ("b", 3), ("c", 1), ("d", 1_000)]
        .map(|(key, count)| give(records, &acme, count, key))
        .to_vec();
    let beside = give(records, &other, 2, "a");
    let bounds: Vec<_> = all.iter().map(|given| (given.first, given.last)).collect();
    assert_eq!(bounds, [(1, 1), (2, 4), (5, 5), (6, 1_005)]);
    assert_eq!(
        (beside.first, beside.last),
        (1, 2),
        "another series, and another key of the same name"
    );
    assert_eq!(head_of(numbers, &acme), Some(all[3].head()));
    for given in all.iter().chain([&beside]) {
        let found = numbers
            .given_to(&[(given.series.clone(), given.mark.key)])
            .expect("reads");
        assert_eq!(found, [Some(given.clone())]);
    }
    let keys: Vec<_> = all
        .iter()
        .map(|given| (acme.clone(), given.mark.key))
        .collect();
    assert_eq!(
        numbers.given_to(&keys).expect("reads"),
        all.iter().cloned().map(Some).collect::<Vec<_>>()
    );
    assert_eq!(
        (
            given_to(numbers, &acme, "z"),
            given_to(numbers, &other, "b")
        ),
        (None, None)
    );

    let given = |from, count_max| numbers.given(&acme, from, count_max).expect("reads");
    assert_eq!(given(0, 9), all);
    for (from, first) in [(1, 0), (2, 1), (3, 1), (4, 1), (5, 2), (6, 3), (1_005, 3)] {
        assert_eq!(
            given(from, 2),
            all[first..(first + 2).min(4)],
            "from {from}"
        );
    }
    assert_eq!((given(1_006, 9), given(u64::MAX, 9)), (vec![], vec![]));
    assert_eq!(numbers.given(&series("none"), 0, 9).expect("reads"), []);
}

pub fn a_plan_for_another_head_writes_nothing_nor_do_those_before_it(records: &dyn RecordStore) {
    let numbers: &dyn NumberStore = records;
    let acme = series("acme");
    let one = give(records, &acme, 1, "a");
    let head = one.head();
    let late = given_plan(&acme, 1, "b", Some(SeriesHead { last: 0, ..head }));
    let anew = given_plan(&acme, 1, "c", None);
    let earlier = given_plan(
        &acme,
        1,
        "d",
        Some(SeriesHead {
            recorded: at(NOW - 1),
            ..head
        }),
    );
    let twice = given_plan(&acme, 1, "e", Some(head));
    let ledger = RecordPlan::Append(plan(&create("genesis", 1), None, NOW));
    let before = given_plan(&series("before"), 1, "a", None);
    let void = void_plan(records, &acme, 1, "cancelled");
    for stale in [
        vec![late],
        vec![anew],
        vec![earlier],
        vec![twice.clone(), twice],
        vec![void.clone(), void.clone()],
    ] {
        assert_stale(records, &stale);
        assert_stale(
            records,
            &[vec![ledger.clone(), before.clone(), void.clone()], stale].concat(),
        );
        assert_eq!(numbers.series(None, 9).expect("reads").len(), 1);
        assert_eq!(head_of(numbers, &acme), Some(head));
        assert_eq!(numbers.voids(&acme, 0..=9).expect("reads"), []);
        assert_eq!(records.ledgers(None, 9).expect("reads"), []);
        assert!(
            ["b", "c", "d", "e"]
                .iter()
                .all(|key| given_to(numbers, &acme, key).is_none())
        );
    }
}

pub fn plans_that_follow_each_other_are_written_in_one_call(records: &dyn RecordStore) {
    let numbers: &dyn NumberStore = records;
    let (one, other) = (series("one"), series("other"));
    let mut plans = Vec::new();
    for name in [&one, &other] {
        let mut head = None;
        for key in 0..40 {
            let plan = given_plan(name, 2, &key.to_string(), head);
            let RecordPlan::Number(numbers) = &plan else {
                panic!("{plan:?}")
            };
            head = Some(numbers.given.head());
            plans.push(plan);
        }
    }
    let mut rest = plans.as_slice();
    while !rest.is_empty() {
        let (now, later) = rest.split_at(records.fitting(rest));
        records
            .write(now)
            .expect("each is on top of the one before");
        rest = later;
    }
    for name in [&one, &other] {
        assert_eq!(head_of(numbers, name).map(|head| head.last), Some(80));
        assert!((0..40).all(|key| given_to(numbers, name, &key.to_string()).is_some()));
    }
}

pub fn a_number_is_void_once_and_listed_with_its_reason(records: &dyn RecordStore) {
    let numbers: &dyn NumberStore = records;
    let acme = series("acme");
    give(records, &acme, 100, "a");
    for number in [7, 3, 50] {
        records
            .write(&[void_plan(records, &acme, number, "cancelled")])
            .expect("it is not void");
        assert_stale(records, &[void_plan(records, &acme, number, "lost")]);
    }
    let voids = |from, to| -> Vec<u64> {
        let found = numbers.voids(&acme, from..=to).expect("reads");
        assert!(
            found
                .iter()
                .all(|void| void.reason.as_str() == "cancelled" && void.recorded == at(NOW))
        );
        found.iter().map(|void| void.number).collect()
    };
    assert_eq!(
        (voids(0, 100), voids(4, 50), voids(4, 49)),
        (vec![3, 7, 50], vec![7, 50], vec![7])
    );
    assert_eq!(
        numbers.voids(&series("acm"), 0..=u64::MAX).expect("reads"),
        []
    );
    assert_eq!(
        head_of(numbers, &acme).map(|head| head.last),
        Some(100),
        "it stays used"
    );
}

pub fn a_number_that_was_skipped_after_a_restore_is_void(records: &dyn RecordStore) {
    let acme = series("acme");
    let given = give(records, &acme, 2, "a");
    let resume = ResumeRequest {
        series: acme.clone(),
        from: 6,
        bounds: NumberBounds::default(),
        by: None,
        form: None,
    };
    let plan = resume
        .plan(Some(given.head()), at(NOW))
        .expect("6 is above 2");
    let plan = RecordPlan::Number(plan.expect("3 to 5 are skipped"));
    records
        .write(&[plan])
        .expect("nothing was written meanwhile");
    for number in 1..=6 {
        let found = records.number(&acme, number).expect("reads");
        let is_void = found.map(|found| found.void.is_some());
        assert_eq!(is_void, (number < 6).then_some(number > 2), "{number}");
    }
}

pub fn series_are_listed_in_their_order_page_by_page(records: &dyn RecordStore) {
    let numbers: &dyn NumberStore = records;
    assert_eq!(numbers.series(None, 9).expect("reads"), []);
    let mut all = Vec::new();
    for name in ["b", "a-1", "a", "a.1", "A", "z_", "7", &"x".repeat(64)].map(series) {
        give(records, &name, 2, "first");
        let last = give(records, &name, 3, "second");
        all.push(SeriesSummary {
            series: name,
            first: 1,
            last: 5,
            updated: last.recorded,
            closed: None,
        });
    }
    all.sort_by(|one, other| one.series.cmp(&other.series));
    assert_eq!(numbers.series(None, 100).expect("reads"), all);
    for page in 1..=all.len() {
        let (mut listed, mut after): (Vec<SeriesSummary>, _) = (Vec::new(), None);
        loop {
            let found = numbers.series(after.as_ref(), page).expect("reads");
            let Some(last) = found.last() else { break };
            after = Some(last.series.clone());
            listed.extend(found);
        }
        assert_eq!(listed, all, "{page} at a time");
    }
}

pub fn many_writers_at_once_make_one_series_without_a_gap(records: &dyn RecordStore) {
    let acme = series("acme");
    let mut keys = Vec::new();
    for round in 1..=ROUNDS {
        let head = records.series_head(&acme).expect("reads");
        let of_writer = |writer: &str| given_plan(&acme, 1, &format!("{writer}-{round}"), head);
        let plans = ["a", "b", "c", "d"].map(of_writer);
        let RecordPlan::Number(NumberPlan { given, .. }) = &plans[written_of(records, &plans)]
        else {
            panic!("it gives")
        };
        keys.push(given.mark.key);
    }
    let given = records.given(&acme, 0, 99).expect("reads");
    assert_eq!(
        given.iter().map(|given| given.first).collect::<Vec<_>>(),
        (1..=ROUNDS).collect::<Vec<_>>()
    );
    assert_eq!(
        given.iter().map(|given| given.mark.key).collect::<Vec<_>>(),
        keys
    );
}

pub fn a_series_with_numbers_keeps_its_kind_and_one_without_may_change_it(
    records: &dyn RecordStore,
) {
    let kinds = |kinds: &[(&str, &str)]| {
        let text = |text: &&str| (*text).to_owned();
        NumberKinds(BTreeMap::from_iter(
            kinds
                .iter()
                .map(|(pattern, kind)| (text(pattern), text(kind))),
        ))
    };
    let agree = |now: &[(&str, &str)]| records.agree_on_kinds(&kinds(now));
    let blocks = [("rows-*", "blocks")];
    give(records, &series("rows-0"), 1, "a");
    agree(&blocks).expect("no start has stored a kind");
    agree(&[("rows-*", "blocks"), ("other", "blocks")]).expect("other has no numbers");
    agree(&[("rows-*", "blocks"), ("other", "gapless")]).expect("other has no numbers");
    give(records, &series("other"), 1, "a");
    for changed in [
        &[][..],
        &[("rows-*", "gapless")],
        &[("rows-*", "blocks"), ("rows-0", "gapless")],
        &[("rows-*", "blocks"), ("*", "blocks")],
    ] {
        let error = agree(changed).expect_err("a series with numbers would change its kind");
        assert_eq!(error.failure_kind(), FailureKind::Disagrees);
        let text = error.to_string();
        let is_named = text.contains("rows-0") || text.contains("other");
        assert!(
            is_named && text.contains("blocks") && text.contains("gapless"),
            "{text}"
        );
    }
    agree(&blocks).expect("other is gapless without a pattern, too");
    agree(&[("*", "gapless"), ("rows-0", "blocks")]).expect("both series keep their kinds");
}

pub fn a_wrong_first_number_is_replaced_once_and_its_key_is_free_again(records: &dyn RecordStore) {
    for (name, right) in [("lower", 4_711), ("higher", 5_000_000), ("equal", 47_110)] {
        let name = series(name);
        let wrong = begin(records, &name, 47_110, "wrong");
        let correction = correction_plan(&wrong, right, "right");
        records
            .write(std::slice::from_ref(&correction))
            .expect("the number is the only one");
        assert_stale(records, &[correction]);
        assert_eq!(given_to(records, &name, "wrong"), None);
        let listed = records.given(&name, 0, 9).expect("reads");
        let found = given_to(records, &name, "right").expect("it was stored");
        assert_eq!(
            (found.first, found.last, &listed),
            (right, right, &vec![found.clone()])
        );
        let summary = SeriesSummary {
            series: name.clone(),
            first: right,
            last: right,
            updated: found.recorded,
            closed: None,
        };
        let all = records.series(None, 99).expect("reads");
        assert!(all.contains(&summary), "{all:?}");
        assert_eq!(give(records, &name, 1, "next").first, right + 1);
        assert_stale(records, &[correction_plan(&wrong, 1, "again")]);
    }
    // The first number of a series was 12 and was corrected to 10. The next request gets 11 to 13.
    // So the number 12 now belongs to this request, and no longer to the request that received it
    // first.
    let name = series("near");
    let wrong = begin(records, &name, 12, "wrong");
    let correction = correction_plan(&wrong, 10, "right");
    let RecordPlan::Number(NumberPlan { given, .. }) = &correction else {
        unreachable!("made")
    };
    let next = given_plan(&name, 3, "next", Some(given.head()));
    records
        .write(&[correction, next])
        .expect("each follows the one before");
    let found = records
        .number(&name, 12)
        .expect("reads")
        .expect("it was given");
    assert_eq!((found.given.first, found.given.last), (11, 13));
    assert_eq!(given_to(records, &name, "next"), Some(found.given));
}

pub fn two_series_may_write_equal_texts_only_if_they_have_numbers_already(
    records: &dyn RecordStore,
) {
    let rule = |name: &str, pattern: &str, text: &str| NumberRule {
        template: NumberTemplate::from_text(text).expect("a template"),
        ..NumberRule::new(name, SeriesPattern::from_text(pattern).expect("a pattern"))
    };
    let rules = NumberRules::new(vec![
        rule("old", "old-*", "{n}-OLD"),
        rule("one", "old-1", "ONE{n}"),
        rule("new", "new-*", "NEW-{series}-{n}"),
    ])
    .expect("the patterns differ");
    give(records, &series("old-1"), 1, "a");
    give(records, &series("older"), 1, "a");
    let error = records
        .agree_on_rules(&rules)
        .expect_err("old-1 has a rule of its own");
    assert_eq!(error.failure_kind(), FailureKind::Disagrees);
    assert!(error.to_string().contains("numbers.old"), "{error}");
    give(records, &series("old-2"), 1, "a");
    records.agree_on_rules(&rules).expect("old-2 has a number");
}

pub fn a_number_keeps_the_form_in_which_it_was_given(records: &dyn RecordStore) {
    let numbers: &dyn NumberStore = records;
    let (acme, other) = (series("acme"), series("acme-2"));
    let write = |plan: RecordPlan| {
        records
            .write(std::slice::from_ref(&plan))
            .expect("nothing was written meanwhile");
    };
    let next =
        |name: &SeriesName, count, key: &str| given_plan(name, count, key, head_of(numbers, name));
    // The numbers 1 and 2 have no stored text form, like numbers that an earlier version of idmint
    // has stored.
    write(next(&acme, 2, "a"));
    for (key, before) in [("b", "A-"), ("c", "A-"), ("d", "B-"), ("e", "A-")] {
        write(in_form(next(&acme, 2, key), form(before)));
    }
    write(in_form(next(&other, 1, "a"), form("C-")));
    write(next(&acme, 1, "f"));
    let text = |name: &SeriesName, number| {
        let form = numbers.form_at(name, number).expect("reads");
        form.map_or_else(String::new, |form| form.text(number))
    };
    let texts: Vec<String> = (1..=11).map(|number| text(&acme, number)).collect();
    assert_eq!(
        texts,
        [
            "", "", "A-3", "A-4", "A-5", "A-6", "B-7", "B-8", "A-9", "A-10", "A-11"
        ]
    );
    assert_eq!(
        (text(&other, 1), text(&series("none"), 1)),
        ("C-1".to_owned(), String::new())
    );
    let changes = |numbers_from, to| -> Vec<u64> {
        let changes: Vec<FormChange> = numbers.forms(&acme, numbers_from..=to).expect("reads");
        changes.iter().map(|change| change.from).collect()
    };
    assert_eq!(changes(1, u64::MAX), [3, 7, 9], "only changes are stored");
    assert_eq!(
        (changes(4, 7), changes(8, 8), changes(1, 2)),
        (vec![3, 7], vec![7], vec![])
    );
    let of = numbers.forms(&acme, 7..=7).expect("reads").remove(0).of;
    assert_eq!(of, KeyHash::of_series(&acme, "d"));

    // The store must not keep the text form of this stale plan.
    assert_stale(
        records,
        &[in_form(given_plan(&acme, 1, "late", None), form("D-"))],
    );
    assert_eq!(changes(1, u64::MAX), [3, 7, 9]);

    // Two nodes with different templates for number texts issue one number each, and both numbers
    // are written in one call. Each number must keep its own text form.
    let head = |plan: &RecordPlan| match plan {
        RecordPlan::Number(plan) => plan.given.head(),
        _ => unreachable!("made"),
    };
    let one = in_form(next(&acme, 1, "g"), form("E-"));
    let two = in_form(given_plan(&acme, 1, "h", Some(head(&one))), form("F-"));
    records
        .write(&[one, two])
        .expect("each follows the one before");
    assert_eq!(
        (text(&acme, 12), text(&acme, 13)),
        ("E-12".to_owned(), "F-13".to_owned())
    );

    // The first number 12, written `OLD-12`, is corrected to 10, written `NEW-10`. The correction
    // must remove the stored prefix `OLD-`, or a later number 12 could be written `OLD-12`.
    let moved = series("moved");
    let beginning = |first, key: &str, before: &str| {
        let request = crate::samples::number_request(&moved, 1, key).beginning_with(first);
        let plan = NumberPlan::make(&request, None, at(NOW)).expect("it begins");
        in_form(RecordPlan::Number(plan), form(before))
    };
    let wrong = beginning(12, "wrong", "OLD-");
    write(wrong.clone());
    let RecordPlan::Number(NumberPlan { given: wrong, .. }) = wrong else {
        unreachable!("made")
    };
    write(in_form(correction_plan(&wrong, 10, "right"), form("NEW-")));
    write(in_form(next(&moved, 3, "next"), form("NEW-")));
    let texts: Vec<String> = (10..=13).map(|number| text(&moved, number)).collect();
    assert_eq!(texts, ["NEW-10", "NEW-11", "NEW-12", "NEW-13"]);
}

pub fn templates_of_the_first_start_stay_and_no_text_is_written_twice(records: &dyn RecordStore) {
    let rules = |text: &str| {
        let pattern = SeriesPattern::from_text("acme-*").expect("a pattern");
        let template = NumberTemplate::from_text(text).expect("a template");
        let rule = NumberRule {
            template,
            ..NumberRule::new("invoice", pattern)
        };
        NumberRules::new(vec![rule]).expect("one rule")
    };
    let acme = series("acme-1");
    let agree = |text: &str| records.agree_on_rules(&rules(text));
    let first = |text: &str| agree(text).expect("it is new").first.form(&acme).text(7);
    assert_eq!(first("A/{series}/{n}"), "A/acme-1/7");
    // While no series has numbers, the template by which numbers are written as text may change
    // freely, because no text was written yet.
    assert_eq!(first("A/{series}/1{n}"), "A/acme-1/7");
    assert_eq!(first("A/{series}/{n}"), "A/acme-1/7");
    give(records, &acme, 20, "a");
    let error = agree("A/{series}/1{n}").expect_err("A/acme-1/11 would be number 1 and 11");
    assert_eq!(error.failure_kind(), FailureKind::Disagrees);
    assert!(error.to_string().contains("numbers.invoice"), "{error}");
    let agreed = agree("B/{series}/{n}").expect("no text is equal");
    assert_eq!(agreed.first.form(&acme).text(7), "A/acme-1/7");
    let changes: Vec<String> = agreed.changes.iter().map(ToString::to_string).collect();
    assert!(
        matches!(&changes[..], [one] if one.contains("as B/{series}/{n}: acme-1 from 21 on;")),
        "{changes:?}"
    );
    assert_eq!(agree("B/{series}/{n}").expect("it is the same").changes, []);
    agree("A/{series}/1{n}").expect_err("the earlier template counts for ever");
}

pub fn a_changed_text_is_compared_with_the_numbers_that_were_written(records: &dyn RecordStore) {
    let rules = |pattern: &str, text: &str, check| {
        let template = NumberTemplate::from_text(text).expect("a template");
        let pattern = SeriesPattern::from_text(pattern).expect("a pattern");
        let rule = NumberRule {
            template,
            check,
            ..NumberRule::new("invoice", pattern)
        };
        NumberRules::new(vec![rule]).expect("one rule")
    };
    let acme = series("acme");
    let luhn = rules("acme*", "{series}-{n}", Some(NumberCheck::Luhn));
    let write = |count, key: &str, rules: &NumberRules| {
        let plan = given_plan(&acme, count, key, head_of(records, &acme));
        let plan = in_form(plan, rules.form(&acme));
        let plans = std::slice::from_ref(&plan);
        records.write(plans).expect("nothing was written meanwhile");
    };
    let plain = rules("acme*", "{series}-{n}", None);
    let other = rules("acme*", "B-{series}-{n}", None);
    records.agree_on_rules(&plain).expect("the first start");
    write(9, "a", &plain);
    // The text acme-10 can mean the number 1 followed by its check digit 0, or the number 10
    // without a check digit. In a fleet, another node may still use the earlier rules and write the
    // number 10, so the fleet refuses the change.
    let agreed = records.agree_on_rules(&luhn);
    assert_eq!(agreed.is_ok(), !records.is_shared(), "{agreed:?}");
    records.agree_on_rules(&other).expect("no text is equal");
    records.agree_on_rules(&luhn).expect("10 was never written");
    records.agree_on_rules(&other).expect("no text is equal");
    records
        .agree_on_rules(&plain)
        .expect("no number has a check");
    write(1, "b", &plain);
    let error = records.agree_on_rules(&luhn).expect_err("10 is written");
    assert_eq!(error.failure_kind(), FailureKind::Disagrees);
    let text = error.to_string();
    assert!(
        text.contains("\"acme-10\" would be number 10 of acme"),
        "{text}"
    );
    // The rule `alone` is only for acme, which continues with number 11. With a check digit, its
    // later texts have three or more digits, so they repeat no earlier text, such as acme-10.
    let alone = rules("acme", "acme-{n}", Some(NumberCheck::Luhn));
    records.agree_on_rules(&other).expect("no text is equal");
    records.agree_on_rules(&alone).expect("no text is equal");
}

pub fn a_series_does_not_repeat_its_own_plain_digits(records: &dyn RecordStore) {
    let rules = |name: &str, text: &str, check| {
        let pattern = SeriesPattern::from_text(name).expect("a pattern");
        let rule = NumberRule {
            template: NumberTemplate::from_text(text).expect("a template"),
            check,
            ..NumberRule::new("order", pattern)
        };
        NumberRules::new(vec![rule]).expect("one rule")
    };
    let write = |name: &str, count, rules: &NumberRules| {
        let name = series(name);
        let head = head_of(records, &name);
        let key = format!("after {}", head.as_ref().map_or(0, |head| head.last));
        let plan = in_form(given_plan(&name, count, &key, head), rules.form(&name));
        let plans = std::slice::from_ref(&plan);
        records.write(plans).expect("nothing was written meanwhile");
    };
    let refused = |rules: &NumberRules, expected: [&str; 2]| {
        let error = records.agree_on_rules(rules).expect_err(expected[0]);
        assert_eq!(error.failure_kind(), FailureKind::Disagrees);
        let text = error.to_string();
        assert!(expected.iter().all(|part| text.contains(part)), "{text}");
    };
    let agree = |rules: &NumberRules| records.agree_on_rules(rules).expect("no text is equal");
    let [luhn, mod97] = [NumberCheck::Luhn, NumberCheck::Mod97].map(Some);

    // The series `orders` writes its numbers 1 to 12 as 1001 to 1012. With plain digits, the
    // numbers 1001 to 1012 would repeat these texts. A series has plain digits with the rule `{n}`,
    // or without a rule.
    let one = rules("orders", "1{n:03}", None);
    agree(&one);
    write("orders", 12, &one);
    let example = "of orders and number 10";
    refused(
        &rules("orders", "{n}", None),
        ["numbers.order.text", example],
    );
    refused(&NumberRules::default(), ["without a rule", example]);
    let none = rules("other", "C{n}", None);
    refused(&none, ["without a rule", example]);
    agree(&rules("orders", "B{n}", None));
    let close = close_plan(&series("orders"), head_of(records, &series("orders")));
    records.write(&[close]).expect("nothing was written since");
    agree(&none);

    // The rule for the series `tills` adds a check digit, and then tries to remove it again. In a
    // fleet, adding a check digit is refused as long as another node may still write later numbers
    // without one. Removing it is refused, because a later number could repeat a text.
    let [plain, checked] = [None, luhn].map(|check| rules("tills", "{n}", check));
    agree(&plain);
    write("tills", 9, &plain);
    let agreed = records.agree_on_rules(&checked);
    assert_eq!(agreed.is_ok(), !records.is_shared(), "{agreed:?}");
    agree(&rules("tills", "T{n}", None));
    agree(&checked);
    write("tills", 9, &checked);
    refused(&plain, ["numbers.order.text", "of tills and number"]);

    // Going back from two check digits to one is refused, because earlier texts could be repeated.
    agree(&rules("tills", "T{n}", None));
    let two = rules("tills", "{n}", mod97);
    agree(&two);
    write("tills", 50, &two);
    refused(&checked, ["numbers.order.text", "of tills and number"]);
}

pub fn a_higher_start_does_not_hide_texts_that_a_begun_series_repeats(records: &dyn RecordStore) {
    let rules = |name: &str, text: &str, check, start| {
        let pattern = SeriesPattern::from_text(name).expect("a pattern");
        let bounds = NumberBounds {
            start,
            ..NumberBounds::default()
        };
        let rule = NumberRule {
            template: NumberTemplate::from_text(text).expect("a template"),
            check,
            bounds,
            ..NumberRule::new("order", pattern)
        };
        NumberRules::new(vec![rule]).expect("one rule")
    };
    // The first nine numbers of each series have a check digit, so the number 1 of `tills` is
    // written `18`. The rule `plain` writes no check digit, so the number 18 would have the same
    // text. The series continues with 10 even if the rule's `start` is 1000, and would reach 18.
    for (name, text) in [
        ("tills", "{n}"),
        ("desks", "A{n}"),
        ("shop*", "{series}-{n}"),
    ] {
        let luhn = rules(name, text, Some(NumberCheck::Luhn), 1);
        records.agree_on_rules(&luhn).expect("nothing is written");
        let series = series(&name.replace('*', ""));
        let plan = given_plan(&series, 9, name, head_of(records, &series));
        let plan = in_form(plan, luhn.form(&series));
        records.write(&[plan]).expect("nothing was written before");
        for start in [1, 1_000] {
            let plain = rules(name, text, None, start);
            let error = records.agree_on_rules(&plain).expect_err(name);
            assert_eq!(error.failure_kind(), FailureKind::Disagrees, "{name}");
            let (error, repeated) = (error.to_string(), luhn.form(&series).text(1));
            let repeated = format!("{repeated:?} would be number 1 of {series}");
            assert!(error.contains(&repeated), "{start}: {error}");
        }
        let close = close_plan(&series, head_of(records, &series));
        records.write(&[close]).expect("nothing was written since");
    }
}

pub fn the_series_whose_texts_change_are_named_with_their_next_numbers(records: &dyn RecordStore) {
    let rule = |name: &str, pattern: &str, text: &str| NumberRule {
        template: NumberTemplate::from_text(text).expect("a template"),
        ..NumberRule::new(name, SeriesPattern::from_text(pattern).expect("a pattern"))
    };
    let agree = |rules: &[NumberRule]| -> Vec<String> {
        let rules = NumberRules::new(rules.to_vec()).expect("no text is equal");
        let agreed = records.agree_on_rules(&rules).expect("no text is equal");
        agreed.changes.iter().map(ToString::to_string).collect()
    };
    let all = rule("all", "a*", "{series}/{n}");
    assert_eq!(agree(std::slice::from_ref(&all)), [""; 0]);
    for at in 1..=7 {
        give(records, &series(&format!("a{at}")), at, "a");
    }
    let closed = series("a2");
    let close = close_plan(&closed, head_of(records, &closed));
    records
        .write(&[close])
        .expect("nothing was written meanwhile");
    // A more specific rule now applies to the series a7.
    let one = rule("one", "a7", "B{n}");
    assert_eq!(
        agree(&[all, one.clone()]),
        [
            "numbers.one now writes new numbers as B{n}: a7 from 8 on; earlier numbers keep their texts"
        ]
    );
    assert_eq!(
        agree(&[one]),
        [
            "without a rule in [numbers], new numbers are plain digits: a1 from 2 on, a3 from 4 on, a4 from 5 on, a5 from \
          6 on, a6 from 7 on; earlier numbers keep their texts"
        ]
    );
    assert_eq!(
        agree(&[rule("all", "a*", "C/{series}/{n}")]),
        [
            "numbers.all now writes new numbers as C/{series}/{n}: a1 from 2 on, a3 from 4 on, a4 from 5 on, a5 from 6 on, \
          a6 from 7 on, and 1 more series; earlier numbers keep their texts"
        ]
    );
}

pub fn a_closed_series_gives_no_number_and_keeps_those_it_has(records: &dyn RecordStore) {
    let numbers: &dyn NumberStore = records;
    let (acme, unbegun) = (series("acme"), series("unbegun"));
    let closed_of = |name: &SeriesName| numbers.series_state(name).expect("reads").closed;
    let given = give(records, &acme, 3, "a");
    let early = close_plan(&acme, None);
    assert_stale(records, &[early]);
    assert_eq!(closed_of(&acme), None);

    let close = close_plan(&acme, Some(given.head()));
    let late = given_plan(&acme, 1, "late", Some(given.head()));
    assert_stale(records, &[close.clone(), late.clone()]);
    assert_stale(records, &[close.clone(), close.clone()]);
    let last = given_plan(&acme, 1, "last", Some(given.head()));
    let RecordPlan::Number(NumberPlan {
        given: last_given, ..
    }) = &last
    else {
        unreachable!("made")
    };
    assert_stale(records, &[last.clone(), close.clone()]);
    let after_last = close_plan(&acme, Some(last_given.head()));
    records
        .write(&[last.clone(), after_last.clone()])
        .expect("the number comes first");
    let RecordPlan::Close(plan) = &after_last else {
        unreachable!("made")
    };
    assert_eq!(closed_of(&acme).as_ref(), Some(&plan.closed));
    assert_eq!(plan.closed.last, Some(4));
    for stale in [
        late,
        close,
        after_last,
        given_plan(&acme, 1, "b", Some(last_given.head())),
    ] {
        assert_stale(records, &[stale]);
    }
    assert_eq!(head_of(numbers, &acme).map(|head| head.last), Some(4));
    assert_eq!(given_to(numbers, &acme, "a"), Some(given));
    records
        .write(&[void_plan(records, &acme, 2, "cancelled")])
        .expect("a number of a closed series can be void");

    let close = close_plan(&unbegun, None);
    records
        .write(std::slice::from_ref(&close))
        .expect("nothing was given");
    assert_stale(records, &[given_plan(&unbegun, 1, "a", None)]);
    assert_stale(records, &[close]);
    assert_eq!(head_of(numbers, &unbegun), None);
    let is_closed = |closed: Option<&ClosedSeries>| closed.map(|closed| closed.last);
    let open = give(records, &series("between"), 1, "a");
    let listed = numbers.series(None, 9).expect("reads");
    let listed: Vec<_> = listed
        .iter()
        .map(|it| {
            (
                it.series.as_str(),
                it.first,
                it.last,
                is_closed(it.closed.as_ref()),
            )
        })
        .collect();
    assert_eq!(
        listed,
        [
            ("acme", 1, 4, Some(Some(4))),
            (open.series.as_str(), 1, 1, None),
            ("unbegun", 1, 0, Some(None)),
        ]
    );
    let behind = numbers.series(Some(&open.series), 1).expect("reads");
    assert_eq!(
        behind.len(),
        1,
        "the list goes on with a series without numbers"
    );
}

pub fn of_a_number_and_a_close_at_once_one_comes_first(records: &dyn RecordStore) {
    for round in 0..ROUNDS {
        let name = series(&format!("acme-{round}"));
        let head = Some(give(records, &name, 1, "first").head());
        let plans = [
            given_plan(&name, 1, "second", head),
            close_plan(&name, head),
        ];
        let is_closed = written_of(records, &plans) == 1;
        let state = records.series_state(&name).expect("reads");
        let last = state.head.map(|head| head.last);
        assert_eq!(
            (state.closed.is_some(), last),
            (is_closed, Some(2 - u64::from(is_closed)))
        );
    }
}

#[cfg(test)]
mod reopened {
    use super::*;
    use crate::conformance::starts::on_every_engine;
    use crate::samples::ready;
    use idmint_core::time::UnixNanos;

    #[test]
    fn a_store_that_is_opened_again_has_all_numbers_and_no_key_is_ever_forgotten() {
        on_every_engine(|engine| {
            let (acme, horizon) = (series("acme"), UnixNanos::new(500));
            let store = ready(engine.open(), horizon, &[]);
            let records = store.records().expect("the store works");
            let given = give(&*records, &acme, 3, "a");
            records
                .write(&[void_plan(&*records, &acme, 2, "cancelled")])
                .expect("it is not void");
            let wrong = begin(&*records, &series("moved"), 12, "wrong");
            records
                .write(&[correction_plan(&wrong, 10, "right")])
                .expect("12 is the only number");
            let moved = give(&*records, &series("moved"), 5, "next");
            let first = in_form(given_plan(&series("done"), 1, "a", None), form("DONE-"));
            records.write(&[first]).expect("it begins");
            let head = head_of(&*records, &series("done"));
            records
                .write(&[close_plan(&series("done"), head)])
                .expect("it is open");
            drop((records, store));

            let store = ready(engine.open(), horizon, &[]);
            let records = store.records().expect("the store works");
            for reopened in [false, true] {
                if reopened {
                    records.reopen().expect("a sound store can be opened again");
                }
                let numbers = &*records;
                assert_eq!(given_to(numbers, &acme, "a"), Some(given.clone()));
                assert_eq!(
                    given_to(numbers, &moved.series, "next"),
                    Some(moved.clone())
                );
                assert_eq!(given_to(numbers, &moved.series, "wrong"), None);
                assert_eq!(numbers.voids(&acme, 0..=9).expect("reads").len(), 1);
                let text = numbers.form_at(&series("done"), 1).expect("reads");
                assert_eq!(text.map(|form| form.text(1)).as_deref(), Some("DONE-1"));
                let closed = numbers.series_state(&series("done")).expect("reads").closed;
                assert_eq!(closed.map(|closed| closed.last), Some(Some(1)));
                // The idempotency keys of requests for numbers are never removed, however late.
                while records.forget_requests(at(NOW * 4), 1_000).expect("works") {}
            }
            assert_stale(&*records, &[given_plan(&acme, 1, "b", None)]);
            assert_eq!(give(&*records, &acme, 1, "b").first, 4);
        });
    }
}
