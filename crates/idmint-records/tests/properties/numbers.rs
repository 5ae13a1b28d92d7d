//! Checks with random templates that no two numbers have the same text.
//!
//! `NUMBER_TEMPLATES` sets the number of configurations (default 300; `make torture`: 1 000 000).

use std::collections::BTreeMap;

use idmint_records::ledger::{
    FormerTemplate, NumberBounds, NumberCheck, NumberForm, NumberRule, NumberRules, NumberTemplate,
    SeriesName, SeriesPattern, TextConflict, Years,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Parts of a pattern with some of their values. The values are similar, so that ambiguous texts
/// are frequent.
const PARTS: [(&str, &[&str]); 7] = [
    ("{year}", &["2026", "2027", "2111", "1111"]),
    ("{month}", &["01", "11", "12"]),
    ("{a}", &["a", "1", "11", "a1", "01", "a.", "2026"]),
    ("{b}", &["b", "1", "11", "1b", "0"]),
    ("{c:1|11|x1}", &["1", "11", "x1"]),
    ("{d:#|a#}", &["0", "1", "a1"]),
    ("{period:##-#}", &["11-1", "01-0"]),
];
const LITERALS: [&str; 9] = ["-", "-", "1", "a", "a-", "20", ".", "0", "11"];
const TEXTS: [&str; 9] = ["-", "/", "1", "a", "INV-", "20", "№ ", "0", "11"];
const NUMBERS: [u64; 14] = [
    1, 2, 9, 10, 11, 12, 100, 101, 111, 112, 1_111, 2_026, 11_111, 1_111_111,
];

/// A random rule, and some series that its pattern matches.
#[derive(Debug, Clone)]
struct Sample {
    rule: NumberRule,
    names: Vec<SeriesName>,
}

fn pick<'a, T: ?Sized>(random: &mut StdRng, from: &[&'a T]) -> &'a T {
    from[random.random_range(0..from.len())]
}

/// Returns these pieces in random order, mixed with random literals.
fn mixed(random: &mut StdRng, mut pieces: Vec<String>, literals: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        if random.random_bool(0.5) {
            all.push(pick(random, literals).to_owned());
        }
        if pieces.is_empty() {
            return all;
        }
        all.push(pieces.swap_remove(random.random_range(0..pieces.len())));
    }
}

/// Returns a random pattern with the names of its parts, and matching names.
fn pattern(random: &mut StdRng) -> (String, Vec<String>, Vec<String>) {
    let prefix = pick(random, &LITERALS);
    match random.random_range(0..8) {
        0 => (format!("{prefix}1"), Vec::new(), vec![format!("{prefix}1")]),
        1 | 2 => {
            let rests = ["", "1", "11", "a", "a-1", "-1", "2026"];
            let names = rests.map(|rest| format!("{prefix}{rest}"));
            (format!("{prefix}*"), Vec::new(), names.to_vec())
        }
        _ => {
            let count = random.random_range(1..=3);
            let mut parts: Vec<_> = PARTS.iter().map(|(part, _)| (*part).to_owned()).collect();
            while parts.len() > count {
                parts.swap_remove(random.random_range(0..parts.len()));
            }
            let pieces = mixed(random, parts.clone(), &LITERALS);
            let names = (0..12).map(|_| {
                let values = pieces.iter().map(|piece| {
                    let part = PARTS.iter().find(|(part, _)| part == piece);
                    part.map_or(piece.as_str(), |(_, values)| pick(random, values))
                });
                values.collect()
            });
            let names = names.collect();
            (pieces.concat(), parts, names)
        }
    }
}

/// Returns the literals for the texts of one configuration. There are only a few of them, so that
/// conflicts are frequent.
fn literals(random: &mut StdRng) -> &'static [&'static str] {
    [&["1"][..], &["-"], &["1", "-"], &TEXTS][random.random_range(0..4)]
}

fn sample(random: &mut StdRng, name: &str, literals: &[&str]) -> Option<Sample> {
    let (pattern, parts, names) = pattern(random);
    let mut pieces = vec![pick(random, &["{n}", "{n}", "{n:02}", "{n:04}"]).to_owned()];
    if parts.is_empty() || random.random_bool(0.2) {
        pieces.extend(random.random_bool(0.9).then(|| "{series}".to_owned()));
    } else {
        pieces.extend(parts.iter().map(|part| match part.split_once(':') {
            Some((name, _)) => format!("{name}}}"),
            None if part == "{year}" && random.random_bool(0.3) => "{year:last2}".to_owned(),
            None => part.clone(),
        }));
        if random.random_bool(0.05) {
            pieces.pop();
        }
    }
    let years = [None, Years::new(2000, 2099), Years::new(2026, 2125)];
    let has_year = parts.iter().any(|part| part == "{year}");
    let rule = NumberRule {
        template: NumberTemplate::from_text(&mixed(random, pieces, literals).concat()).ok()?,
        check: [
            None,
            None,
            Some(NumberCheck::Luhn),
            Some(NumberCheck::Mod97),
        ][random.random_range(0..4)],
        bounds: NumberBounds {
            start: [1, 1, 2, 100][random.random_range(0..4)],
            max: [NumberBounds::default().max, 9_999, 111, 1_200][random.random_range(0..4)],
        },
        years: years[random.random_range(0..3)].filter(|_| has_year),
        ..NumberRule::new(name, SeriesPattern::from_text(&pattern)?)
    };
    let names = names
        .iter()
        .filter_map(|name| SeriesName::from_text(name).ok());
    Some(Sample {
        names: names.collect(),
        rule,
    })
}

fn former(rule: &NumberRule) -> FormerTemplate {
    FormerTemplate {
        pattern: rule.pattern.clone(),
        template: rule.template.clone(),
        check: rule.check,
        years: rule.years,
        bounds: rule.bounds,
    }
}

/// Asserts that the text of a conflict was written by one of the rules for each of its readings.
fn assert_real(conflict: &TextConflict, rules: [&[&NumberRule]; 2]) {
    let [one, other] = &conflict.readings;
    assert!(
        one != other || one.0.starts_with("any series "),
        "{conflict}"
    );
    for (name, number) in &conflict.readings {
        let is_written = |rule: &&NumberRule| {
            let name = match name.strip_prefix("any series ") {
                Some(pattern) => pattern.replace('*', "a"),
                None => name.clone(),
            };
            let series = SeriesName::from_text(&name).unwrap();
            let is_within = (rule.bounds.start..=rule.bounds.max).contains(number);
            is_within && former(rule).text(&series, *number).as_ref() == Some(&conflict.text)
        };
        let rules = if (name, number) == (&one.0, &one.1) {
            rules[0]
        } else {
            rules[1]
        };
        assert!(rules.iter().any(is_written), "{conflict}: {rules:#?}");
    }
}

/// The number of times that each outcome occurred.
#[derive(Debug, Default)]
struct Counts {
    accepted: usize,
    conflicts: usize,
    other_refusals: usize,
    texts: usize,
}

fn wanted() -> usize {
    let wanted = std::env::var("NUMBER_TEMPLATES");
    wanted.map_or(300, |wanted| wanted.parse().unwrap())
}

const PLAIN: [&str; 3] = ["{n}", "{n:02}", "{n:04}"];

/// `true` if the texts of a rule are plain digits, which are not compared between different series.
fn is_plain(rule: &NumberRule) -> bool {
    PLAIN.contains(&rule.template.to_string().as_str())
}

/// Returns the number that this form writes as `text`.
fn number_of(form: &NumberForm, text: &str) -> Option<u64> {
    let body = &text[..text
        .len()
        .checked_sub(form.check.map_or(0, NumberCheck::width))?];
    let digits = body.strip_prefix(&form.before)?.strip_suffix(&form.after)?;
    let number = digits.parse().ok()?;
    (form.text(number) == text).then_some(number)
}

/// Asserts that a change from `old` to `new` is refused for a series if and only if the series could
/// repeat one of the texts of its first numbers. Returns `true` if the change is refused.
fn assert_refused_if_repeated(old: &NumberRules, new: &NumberRules, series: &SeriesName) -> bool {
    let (former, current, bounds) = (old.form(series), new.form(series), new.bounds(series));
    let NumberBounds { start, max } = old.bounds(series);
    let written = NumberBounds {
        start,
        max: max.min(1_200),
    };
    let next = written.max + 1;
    let later = next..=bounds.max;
    let repeated = (written.start..=written.max).find(|number| {
        let again = number_of(&current, &former.text(*number));
        again.is_some_and(|again| later.contains(&again))
    });
    let found = new.conflict_in_series(series, &former, written, next);
    assert_eq!(
        found.is_some(),
        repeated.is_some(),
        "{series} {repeated:?} {found:?} {former:?} {current:?}"
    );
    let Some(found) = found else { return false };
    let TextConflict { text, readings } = found.conflict.expect("the search is short");
    let [one, other] = readings.map(|(_, number)| number);
    assert!((written.start..=written.max).contains(&one) && later.contains(&other));
    assert_eq!([former.text(one), current.text(other)], [&*text; 2]);
    true
}

/// Returns those of [`NUMBERS`] that are within the bounds of the rule.
fn numbers(rule: &NumberRule) -> impl Iterator<Item = u64> {
    let NumberBounds { start, max } = rule.bounds;
    NUMBERS
        .into_iter()
        .filter(move |number| (start..=max).contains(number))
}

#[test]
fn every_text_of_accepted_rules_is_read_as_the_number_that_it_was_written_for() {
    let (mut random, mut counts) = (StdRng::seed_from_u64(58), Counts::default());
    for _ in 0..wanted() {
        let count = random.random_range(1..=3);
        let names = ["one", "two", "three"];
        let literals = literals(&mut random);
        let samples: Option<Vec<_>> = names[..count]
            .iter()
            .map(|name| sample(&mut random, name, literals))
            .collect();
        let Some(samples) = samples else { continue };
        let of_samples: Vec<_> = samples.iter().map(|sample| &sample.rule).collect();
        let rules = match NumberRules::new(of_samples.iter().map(|rule| (*rule).clone()).collect())
        {
            Ok(rules) => rules,
            Err(error) => {
                match &error.conflict {
                    Some(conflict) => assert_real(conflict, [&of_samples, &of_samples]),
                    None => counts.other_refusals += 1,
                }
                counts.conflicts += usize::from(error.conflict.is_some());
                continue;
            }
        };
        counts.accepted += 1;
        let plain = of_samples.iter().copied().filter(|rule| is_plain(rule));
        let exempt = plain.chain(rules.with_equal_texts()).map(|rule| &rule.name);
        let exempt: Vec<_> = exempt.collect();
        let mut written = BTreeMap::new();
        for (sample, series) in samples
            .iter()
            .flat_map(|it| it.names.iter().map(move |name| (it, name)))
        {
            let rule = &sample.rule;
            let is_written = rules.of(series.as_str()) == Some(rule) && rules.admit(series).is_ok();
            if !is_written || exempt.contains(&&rule.name) {
                continue;
            }
            for number in numbers(rule) {
                let text = rules.text(series, number);
                let earlier = written.insert(text.clone(), (series, number));
                assert!(
                    earlier.is_none_or(|it| it == (series, number)),
                    "{text} {earlier:?} {of_samples:#?}"
                );
                let readings = rules.read(&text).into_iter();
                let readings: Vec<_> = readings
                    .filter(|reading| !exempt.contains(&&reading.rule))
                    .map(|it| (it.series, it.number))
                    .collect();
                assert_eq!(
                    readings,
                    [(Some(series.clone()), number)],
                    "{text} {of_samples:#?}"
                );
                counts.texts += 1;
            }
        }
    }
    println!("{counts:?}");
    let Counts {
        accepted,
        conflicts,
        other_refusals,
        texts,
    } = counts;
    let least = wanted() / 20;
    assert!(
        [accepted, conflicts, other_refusals, texts]
            .iter()
            .all(|count| *count > least),
        "{counts:?}"
    );
}

#[test]
fn a_changed_template_is_accepted_unless_a_text_has_two_readings() {
    let (mut random, mut counts) = (StdRng::seed_from_u64(85), Counts::default());
    let [mut refused, mut repeated_none] = [0; 2];
    for _ in 0..wanted() {
        let literals = literals(&mut random);
        let samples = ["old", "new"].map(|name| sample(&mut random, name, literals));
        let [Some(mut old), Some(mut new)] = samples else {
            continue;
        };
        if random.random_bool(0.7) {
            // Change only the text.
            let (pattern, text) = (old.rule.pattern.clone(), old.rule.template.to_string());
            let changed = match random.random_range(0..3) {
                0 => text.replace("{n", "1{n").replace("11{n", "{n"),
                1 => text.replace("{n}", "{n:02}").replace('-', ""),
                _ => format!("{}1", text.replace("{n:0", "1{n:0")),
            };
            let template = NumberTemplate::from_text(&changed).unwrap();
            new = Sample {
                rule: NumberRule {
                    pattern,
                    template,
                    ..old.rule.clone()
                },
                names: old.names.clone(),
            };
        }
        if random.random_bool(0.3) {
            // Write plain digits before or after the change.
            let plain = if random.random() { &mut old } else { &mut new };
            let template = NumberTemplate::from_text(pick(&mut random, &PLAIN));
            plain.rule.template = template.unwrap();
        }
        let Ok(rules) = NumberRules::new(vec![new.rule.clone()]) else {
            continue;
        };
        let Ok(old_rules) = NumberRules::new(vec![old.rule.clone()]) else {
            continue;
        };
        let earlier = former(&old.rule);
        if let Some(found) = rules
            .conflicts_with(&[(earlier.clone(), earlier.bounds)], &BTreeMap::new())
            .remove(0)
        {
            match found.conflict {
                Some(conflict) => {
                    counts.conflicts += 1;
                    assert_real(&conflict, [&[&old.rule], &[&new.rule]]);
                }
                // The search was too long, so the change is refused without an example.
                None => counts.other_refusals += 1,
            }
            continue;
        }
        counts.accepted += 1;
        if is_plain(&old.rule) || is_plain(&new.rule) {
            for series in old.names.iter().chain(&new.names).take(4) {
                match assert_refused_if_repeated(&old_rules, &rules, series) {
                    true => refused += 1,
                    false => repeated_none += 1,
                }
            }
            continue;
        }
        if rules.with_equal_texts().next().is_some() {
            continue;
        }
        let names = || old.names.iter().chain(&new.names);
        let mut written = BTreeMap::new();
        for series in names().filter(|series| old_rules.admit(series).is_ok()) {
            for number in numbers(&old.rule) {
                if let Some(text) = earlier.text(series, number) {
                    written.insert(text, (series, number));
                }
            }
        }
        for series in names()
            .filter(|series| rules.of(series.as_str()).is_some() && rules.admit(series).is_ok())
        {
            for number in numbers(&new.rule) {
                let text = rules.text(series, number);
                let before = written.get(&text);
                assert!(
                    before.is_none_or(|before| *before == (series, number)),
                    "{text} {before:?} {:#?} {:#?}",
                    old.rule,
                    new.rule
                );
                counts.texts += 1;
            }
        }
    }
    println!("{counts:?}, of series: {refused} refused, {repeated_none} accepted");
    assert!(refused > wanted() / 20 && repeated_none > wanted() / 20);
    assert!(
        counts.accepted > wanted() / 20
            && counts.conflicts > wanted() / 50
            && counts.other_refusals < wanted() / 100
            && counts.texts > wanted(),
        "{counts:?}"
    );
}
