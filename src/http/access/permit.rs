//! What the bearer of a token, or of a certificate, may do.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::Extensions;

use super::rate::Allowance;
use super::scope::Scope;
use crate::http::answer::{Problem, Slug};
use crate::ledger::{LedgerId, SeriesName, SeriesPattern};
use crate::time::UnixTime;

/// What the bearer of a token, or of a certificate, may do. A request carries it where that matters later on: [`permit_of`].
#[derive(Debug)]
pub(in crate::http) struct Permit {
    /// What it is shown by, for messages: "the token `billing`".
    pub(super) shown_by: String,
    pub(super) scopes: BTreeSet<Scope>,
    /// Only these; `None` for all.
    pub(super) formats: Option<BTreeSet<String>>,
    /// Only these; `None` for all.
    pub(super) ledgers: Option<BTreeSet<LedgerId>>,
    /// Only series that one of these names; `None` for all.
    pub(super) series: Option<Vec<SeriesPattern>>,
    /// From then on it permits nothing.
    pub(super) expires: Option<UnixTime>,
    /// What its bearer has used of the rate, where there is one.
    pub(super) allowance: Arc<Allowance>,
}

/// The permit of a request whose bearer may not do everything within its scopes, or that has a body.
pub(in crate::http) fn permit_of(extensions: &Extensions) -> Option<&Permit> {
    extensions.get::<Arc<Permit>>().map(AsRef::as_ref)
}

impl Permit {
    /// That of a certificate for this name.
    pub(super) fn of_certificate(name: &str, scopes: BTreeSet<Scope>) -> Permit {
        let shown_by = format!("the certificate of `{name}`");
        Permit::unconfined(shown_by, scopes, Arc::default())
    }

    /// What either of two permits of one certificate permits. Requests count for the first name.
    pub(super) fn joined_with(&self, other: &Permit) -> Permit {
        let scopes = self.scopes.union(&other.scopes).copied().collect();
        let (shown_by, allowance) = (self.shown_by.clone(), Arc::clone(&self.allowance));
        Permit::unconfined(shown_by, scopes, allowance)
    }

    fn unconfined(shown_by: String, scopes: BTreeSet<Scope>, allowance: Arc<Allowance>) -> Permit {
        Permit {
            shown_by,
            scopes,
            formats: None,
            ledgers: None,
            series: None,
            expires: None,
            allowance,
        }
    }

    /// What it is shown by, such as "the token `billing`".
    pub(in crate::http) fn shown_by(&self) -> &str {
        &self.shown_by
    }

    /// Whether it leaves out formats, ledgers or series.
    pub(super) fn is_confined(&self) -> bool {
        self.formats.is_some() || self.ledgers.is_some() || self.series.is_some()
    }

    /// Whether a handler has to know of it: its bearer may not do everything within its scopes.
    pub(super) fn is_asked_later(&self) -> bool {
        self.is_confined() || self.scopes.contains(&Scope::Ledger) && !self.begins_imports()
    }

    /// Whether its bearer may begin an import into a ledger that others append to.
    pub(in crate::http) fn begins_imports(&self) -> bool {
        self.scopes.contains(&Scope::Import)
    }

    /// Only formats of these names; `None` for all.
    pub(in crate::http) fn formats(&self) -> Option<&BTreeSet<String>> {
        self.formats.as_ref()
    }

    /// Whether it is for the format of this name, too.
    pub(in crate::http) fn has_format(&self, name: &str) -> bool {
        self.formats
            .as_ref()
            .is_none_or(|formats| formats.contains(name))
    }

    /// Only these ledgers; `None` for all.
    pub(in crate::http) fn ledgers(&self) -> Option<&BTreeSet<LedgerId>> {
        self.ledgers.as_ref()
    }

    /// Only series that one of these names; `None` for all.
    pub(in crate::http) fn series(&self) -> Option<&[SeriesPattern]> {
        self.series.as_deref()
    }

    /// Whether it is for the series of this name, too.
    pub(in crate::http) fn has_series(&self, name: &str) -> bool {
        self.series
            .as_ref()
            .is_none_or(|patterns| patterns.iter().any(|pattern| pattern.matches(name)))
    }

    /// Whether its bearer is told of a number of this series, or of one that is not known.
    pub(in crate::http) fn reads_number(&self, series: Option<&SeriesName>) -> bool {
        self.series.is_none() || series.is_some_and(|series| self.has_series(series.as_str()))
    }

    /// What is refused to its bearer though it has the scope, and why; ledgers belong to `event_formats`.
    pub(super) fn refusals(&self, event_formats: &[String]) -> Vec<&'static str> {
        let has = |scope| self.scopes.contains(&scope);
        let has_ledgers = self.check_events(event_formats).is_ok();
        let refusals = [
            (
                has(Scope::Ledger) && !has_ledgers,
                "no ledgers, since none of its formats is made of events",
            ),
            (
                has(Scope::Ledger) && self.ledgers.is_some(),
                "no conjunctions, since it is for some ledgers alone",
            ),
            (
                has(Scope::Ledger) && has_ledgers && !has(Scope::Import),
                "no import=more to a ledger in use, which needs the scope import",
            ),
            (
                has(Scope::Metrics) && self.is_confined(),
                "no metrics, since they count what it is not for",
            ),
        ];
        refusals
            .into_iter()
            .filter_map(|(applies, refusal)| applies.then_some(refusal))
            .collect()
    }

    /// # Errors
    /// 403 `forbidden`.
    pub(super) fn check_scope(&self, scope: Scope) -> Result<(), Problem> {
        if self.scopes.contains(&scope) {
            return Ok(());
        }
        let has: Vec<_> = self.scopes.iter().map(|scope| scope.name()).collect();
        let detail = format!(
            "{} has the scopes {}; this needs {scope}",
            self.shown_by,
            has.join(", ")
        );
        Err(Problem::new(Slug::Forbidden, detail)
            .reason("scope")
            .limit(scope.name()))
    }

    /// # Errors
    /// 403 `forbidden`, the same for a format that there is and for one that there is not.
    pub(in crate::http) fn check_format(&self, name: &str) -> Result<(), Problem> {
        if self.has_format(name) {
            Ok(())
        } else {
            Err(self.confined("format", name, &self.known_formats()))
        }
    }

    /// # Errors
    /// 403 `forbidden` if none of its formats is one of these, whose ids are made of events.
    pub(super) fn check_events(&self, event_formats: &[String]) -> Result<(), Problem> {
        let has_one =
            self.formats.is_none() || event_formats.iter().any(|name| self.has_format(name));
        if has_one {
            Ok(())
        } else {
            Err(self.confined("format", "ledgers", &self.known_formats()))
        }
    }

    /// # Errors
    /// 403 `forbidden` if it is confined in any way.
    pub(super) fn check_everything(&self) -> Result<(), Problem> {
        let what = "all of them";
        match (&self.formats, &self.ledgers, &self.series) {
            (Some(_), ..) => Err(self.confined("format", what, &self.known_formats())),
            (None, Some(_), _) => Err(self.confined("ledger", what, &self.known_ledgers())),
            (None, None, Some(_)) => Err(self.confined("series", what, &self.known_series())),
            (None, None, None) => Ok(()),
        }
    }

    /// # Errors
    /// 403 `forbidden`, the same for a ledger that there is and for one that there is not.
    pub(in crate::http) fn check_ledger(&self, ledger: LedgerId) -> Result<(), Problem> {
        if self
            .ledgers
            .as_ref()
            .is_none_or(|ledgers| ledgers.contains(&ledger))
        {
            Ok(())
        } else {
            Err(self.confined("ledger", &ledger.to_string(), &self.known_ledgers()))
        }
    }

    /// # Errors
    /// 403 `forbidden`, the same for a series that there is and for one that there is not.
    pub(super) fn check_series(&self, name: &str) -> Result<(), Problem> {
        if self.has_series(name) {
            Ok(())
        } else {
            Err(self.confined("series", name, &self.known_series()))
        }
    }

    /// # Errors
    /// 403 `forbidden` if it is for some ledgers alone, which `what` is none of.
    pub(super) fn check_beside_ledgers(&self, what: &str) -> Result<(), Problem> {
        if self.ledgers.is_none() {
            Ok(())
        } else {
            Err(self.confined("ledger", what, &self.known_ledgers()))
        }
    }

    fn known_formats(&self) -> String {
        let formats: Vec<_> = self.formats.iter().flatten().map(String::as_str).collect();
        formats.join(", ")
    }

    fn known_ledgers(&self) -> String {
        let ledgers: Vec<_> = self
            .ledgers
            .iter()
            .flatten()
            .map(LedgerId::to_string)
            .collect();
        ledgers.join(", ")
    }

    fn known_series(&self) -> String {
        let series: Vec<_> = self
            .series
            .iter()
            .flatten()
            .map(SeriesPattern::to_string)
            .collect();
        series.join(", ")
    }

    fn confined(&self, what: &str, named: &str, known: &str) -> Problem {
        let several = if what == "series" {
            "series".to_owned()
        } else {
            format!("{what}s")
        };
        let detail = format!(
            "{} is for the {several} {known}; this is for {named}",
            self.shown_by
        );
        Problem::new(Slug::Forbidden, detail)
            .reason(what)
            .limit(known)
    }
}
