//! The templates, such as `INV-{n}`, that were configured at each start of the service. A store
//! keeps this history, so that the oldest numbers keep their texts and no new template repeats an
//! old text.

use std::collections::BTreeMap;

use super::former_template::FormerTemplate;
use super::number_form::NumberForm;
use super::number_rules::{NumberKind, NumberRules};
use super::series_name::SeriesName;

/// The templates of all rules for series without gaps, as configured at one start of the service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptTemplates(Vec<FormerTemplate>);

/// The templates of the service's starts, oldest first. A start without changes adds no entry.
///
/// The first entry determines the form of the numbers that were given before the store kept a form
/// for each number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TemplateHistory(Vec<KeptTemplates>);

impl KeptTemplates {
    /// Returns the templates of the rules for series without gaps.
    pub fn of_rules(rules: &NumberRules) -> KeptTemplates {
        let by_line = |template: &FormerTemplate| template.to_string();
        let gapless = rules
            .rules()
            .filter(|rule| rule.kind == NumberKind::Gapless);
        let template = gapless.map(|rule| FormerTemplate {
            pattern: rule.pattern.clone(),
            template: rule.template.clone(),
            check: rule.check,
            years: rule.years,
            bounds: rule.bounds,
        });
        let mut templates: Vec<FormerTemplate> = template.collect();
        templates.sort_by_cached_key(by_line);
        KeptTemplates(templates)
    }

    /// Returns the templates.
    pub fn templates(&self) -> &[FormerTemplate] {
        &self.0
    }

    /// Returns the form that the most specific matching template gives, or else plain digits.
    pub fn form(&self, series: &SeriesName) -> NumberForm {
        let matching = self
            .0
            .iter()
            .filter(|it| it.pattern.matches(series.as_str()));
        let template = matching.max_by_key(|it| it.pattern.weight());
        let form = template.and_then(|it| it.form()?.of(series.as_str()));
        form.unwrap_or_default()
    }

    fn to_text(&self) -> String {
        self.0.iter().map(|it| format!("{it}\n")).collect()
    }

    fn from_text(text: &str) -> Option<KeptTemplates> {
        let templates = text.lines().map(FormerTemplate::from_line);
        Some(KeptTemplates(templates.collect::<Option<_>>()?))
    }
}

impl TemplateHistory {
    /// Parses the texts that [`to_texts`](TemplateHistory::to_texts) returns. Returns `None` if a
    /// line is not a template, for example because a later version of idmint wrote it. A store must
    /// refuse such a history, because without this template the texts of earlier numbers could
    /// change.
    pub fn from_texts(texts: &BTreeMap<String, String>) -> Option<TemplateHistory> {
        let entries = texts.values().map(|text| KeptTemplates::from_text(text));
        Some(TemplateHistory(entries.collect::<Option<_>>()?))
    }

    /// Returns the templates of each start as a text with one line for each template. The keys of
    /// the map are ascending numbers, in the order of the starts.
    pub fn to_texts(&self) -> BTreeMap<String, String> {
        let entries = self.0.iter().enumerate();
        entries
            .map(|(at, entry)| (format!("{at:010}"), entry.to_text()))
            .collect()
    }

    /// Returns the templates of the earliest start in the history, or `None` if it is empty.
    pub fn first(&self) -> Option<&KeptTemplates> {
        self.0.first()
    }

    /// Returns the templates of the latest start in the history, or `None` if it is empty.
    pub fn last(&self) -> Option<&KeptTemplates> {
        self.0.last()
    }

    /// Returns all templates of the history, without duplicates.
    pub fn all(&self) -> impl Iterator<Item = &FormerTemplate> {
        let all = self.0.iter().flat_map(|kept| &kept.0);
        let by_line: BTreeMap<_, _> = all
            .map(|template| (template.to_string(), template))
            .collect();
        by_line.into_values()
    }

    /// Returns the forms of a series' numbers, such as `INV-{n}`, under all configurations in the
    /// history. The list has no duplicates.
    pub fn forms(&self, series: &SeriesName) -> Vec<NumberForm> {
        let mut forms = Vec::new();
        for form in self.0.iter().map(|kept| kept.form(series)) {
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
        forms
    }

    /// Returns the history after one more start of the service, with these templates. Returns
    /// `None` if the last start had the same templates. Earlier entries with the same templates are
    /// removed, except for the first entry. So a configuration that changes back and forth does not
    /// fill the store.
    pub fn after_start(&self, templates: &KeptTemplates) -> Option<TemplateHistory> {
        if self.last() == Some(templates) {
            return None;
        }
        let first = self.0.iter().take(1);
        let others = self.0.iter().skip(1).filter(|entry| *entry != templates);
        let all = first.chain(others).chain([templates]);
        Some(TemplateHistory(all.cloned().collect()))
    }

    /// Returns this history with the new entries of `other`, the history of a taken-over store.
    /// They are inserted before the last entry, which has the current templates. The first entry
    /// stays first, because it determines the form of the oldest numbers.
    #[must_use]
    pub fn with_taken_over(&self, other: &TemplateHistory) -> TemplateHistory {
        let Some((last, earlier)) = self.0.split_last() else {
            return other.clone();
        };
        let mut all = match earlier {
            [] => vec![last.clone()],
            earlier => earlier.to_vec(),
        };
        let is_new = |entry: &&KeptTemplates| !self.0.contains(entry);
        all.extend(other.0.iter().filter(is_new).cloned());
        if all.last() != Some(last) {
            all.push(last.clone());
        }
        TemplateHistory(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::numbers::{NumberCheck, NumberRule, NumberTemplate, SeriesPattern};

    fn templates(rules: &[(&str, &str, Option<NumberCheck>)]) -> KeptTemplates {
        let rule = |(pattern, template, check): &(&str, &str, Option<NumberCheck>)| {
            let pattern = SeriesPattern::from_text(pattern).expect("a pattern");
            NumberRule {
                template: NumberTemplate::from_text(template).expect("a template"),
                check: *check,
                ..NumberRule::new("any", pattern)
            }
        };
        let rules = NumberRules::new(rules.iter().map(rule).collect());
        KeptTemplates::of_rules(&rules.expect("no two are alike"))
    }

    #[test]
    fn templates_are_kept_as_they_were_and_the_first_ones_stay_first() {
        let series = SeriesName::from_text("acme-2026").expect("a name");
        let text = |kept: Option<&KeptTemplates>| kept.map(|kept| kept.form(&series).text(7));
        let one = templates(&[
            ("acme-*", "INV-{series}-{n:05}", Some(NumberCheck::Luhn)),
            ("*", "{n}", None),
            // All series `ticket-*` write the same texts. If they already have numbers, the service
            // starts and logs a warning, so a history can contain such a template.
            ("ticket-*", "T-{n}", None),
        ]);
        let two = templates(&[("acme-*", "{n:03}/{series}", Some(NumberCheck::Mod97))]);
        let mut history = TemplateHistory::default();
        assert_eq!((text(history.first()), text(history.last())), (None, None));
        for (kept, len) in [(&one, 1), (&two, 2), (&one, 3), (&two, 3), (&one, 3)] {
            history = history.after_start(kept).expect("the templates differ");
            assert_eq!(history.after_start(kept), None);
            assert_eq!(history.0.len(), len);
            assert_eq!(text(history.first()), text(Some(&one)));
            assert_eq!(text(history.last()), text(Some(kept)));
            let texts = history.to_texts();
            assert_eq!(TemplateHistory::from_texts(&texts).as_ref(), Some(&history));
        }
        let mut texts = history.to_texts();
        texts.insert("9".to_owned(), "acme-*\t{later}\n".to_owned());
        assert_eq!(TemplateHistory::from_texts(&texts), None);
        let none = history.after_start(&templates(&[])).expect("they differ");
        assert_eq!(text(none.last()).as_deref(), Some("7"));
    }

    #[test]
    fn taking_over_another_history_keeps_its_own_first_and_last_templates() {
        let [a, b, c] = ["A-{n}", "B-{n}", "C-{n}"].map(|text| templates(&[("acme", text, None)]));
        let history = |entries: &[&KeptTemplates]| {
            TemplateHistory(entries.iter().map(|&entry| entry.clone()).collect())
        };
        for (own, other, both) in [
            (history(&[]), history(&[&a, &b]), history(&[&a, &b])),
            (history(&[&a, &b]), history(&[]), history(&[&a, &b])),
            (history(&[&b]), history(&[&b]), history(&[&b])),
            (history(&[&b]), history(&[&a, &b]), history(&[&b, &a, &b])),
            (
                history(&[&a, &b]),
                history(&[&c, &b]),
                history(&[&a, &c, &b]),
            ),
        ] {
            assert_eq!(own.with_taken_over(&other), both);
            assert_eq!(both.with_taken_over(&other), both);
        }
    }
}
