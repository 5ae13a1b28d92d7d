//! The permissions of the bearer of a token or certificate.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;

use axum::http::Extensions;

use super::rate::Allowance;
use super::scope::Scope;
use crate::answer::{Problem, Slug};
use idmint_core::id::FormatAlias;
use idmint_core::time::UnixTime;
use idmint_records::ledger::{LedgerId, SeriesName, SeriesPattern};

/// The permissions of the bearer of a token or certificate. A request carries its permit if a
/// handler needs it: see [`permit_of`].
#[derive(Debug)]
pub(crate) struct Permit {
    /// The credential, for messages: "the token `billing`".
    pub(super) shown_by: String,
    pub(super) scopes: BTreeSet<Scope>,
    /// The permitted formats, or `None` for all.
    pub(super) formats: Option<BTreeSet<String>>,
    /// The permitted ledgers, or `None` for all.
    pub(super) ledgers: Option<BTreeSet<LedgerId>>,
    /// Patterns of the permitted series, or `None` for all.
    pub(super) series: Option<Vec<SeriesPattern>>,
    /// The time from which the permit is no longer valid.
    pub(super) expires: Option<UnixTime>,
    /// The part of the rate limit that the bearer has used.
    pub(super) allowance: Arc<Allowance>,
}

/// Returns the permit that the guard attached to a request. The guard attaches no permit to short
/// `POST` requests without a body and a query, such as a mint of one id. There are two exceptions:
/// requests for a series of numbers, and permits with restrictions that a handler must check. An
/// example of such a restriction is the scope `ledger` without `import`.
pub(crate) fn permit_of(extensions: &Extensions) -> Option<&Permit> {
    extensions.get::<Arc<Permit>>().map(AsRef::as_ref)
}

impl Permit {
    /// Returns the permit of certificates with this name.
    pub(super) fn of_certificate(name: &str, scopes: BTreeSet<Scope>) -> Permit {
        let shown_by = format!("the certificate of `{name}`");
        Permit::unconfined(shown_by, scopes, Arc::default())
    }

    /// Returns a permit with the scopes of both permits, which belong to two names in one
    /// certificate. Requests count towards the rate limit of the first name, `self`.
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

    /// Returns the name of the credential, such as "the token `billing`".
    pub(crate) fn shown_by(&self) -> &str {
        &self.shown_by
    }

    /// `true` if the permit is restricted to some formats, ledgers or series.
    pub(super) fn is_confined(&self) -> bool {
        self.formats.is_some() || self.ledgers.is_some() || self.series.is_some()
    }

    /// `true` if the handler of a request must check the permit again after the guard. This is the
    /// case if the permit is restricted to some formats, ledgers or series, or has the scope
    /// `ledger` without the scope `import`.
    pub(super) fn is_asked_later(&self) -> bool {
        self.is_confined() || self.scopes.contains(&Scope::Ledger) && !self.begins_imports()
    }

    /// `true` if the bearer may begin an import into a ledger. During an import, the service
    /// refuses appends of other callers to the ledger.
    pub(crate) fn begins_imports(&self) -> bool {
        self.scopes.contains(&Scope::Import)
    }

    /// Returns the permitted formats, or `None` for all.
    pub(crate) fn formats(&self) -> Option<&BTreeSet<String>> {
        self.formats.as_ref()
    }

    /// `true` if the format with this current or former name is permitted.
    pub(crate) fn has_format(&self, name: &str) -> bool {
        self.formats
            .as_ref()
            .is_none_or(|formats| formats.contains(FormatAlias::current_name(name)))
    }

    /// Returns the permitted ledgers, or `None` for all.
    pub(crate) fn ledgers(&self) -> Option<&BTreeSet<LedgerId>> {
        self.ledgers.as_ref()
    }

    /// Returns patterns of the permitted series, or `None` for all.
    pub(crate) fn series(&self) -> Option<&[SeriesPattern]> {
        self.series.as_deref()
    }

    /// `true` if the series of this name is permitted.
    pub(crate) fn has_series(&self, name: &str) -> bool {
        self.series
            .as_ref()
            .is_none_or(|patterns| patterns.iter().any(|pattern| pattern.matches(name)))
    }

    /// `true` if the bearer may see numbers of this series. `None` stands for an unknown series,
    /// for which the bearer must be permitted to see all series.
    pub(crate) fn reads_number(&self, series: Option<&SeriesName>) -> bool {
        self.series.is_none() || series.is_some_and(|series| self.has_series(series.as_str()))
    }

    /// Returns the kinds of requests that are refused although the bearer has their scope, with the
    /// reason for each. `event_formats` are the formats whose ids belong to ledger events.
    pub(super) fn refusals(&self, event_formats: &[String]) -> Vec<&'static str> {
        let has = |scope| self.scopes.contains(&scope);
        let has_ledgers = self.check_events(event_formats).is_ok();
        let refusals = [
            (
                has(Scope::Ledger) && !has_ledgers,
                "no ledgers, since none of its formats is minted from events",
            ),
            (
                has(Scope::Ledger) && self.ledgers.is_some(),
                "no conjunctions, since it is limited to some ledgers",
            ),
            (
                has(Scope::Ledger) && has_ledgers && !has(Scope::Import),
                "no import=more to a ledger in use, which needs the scope import",
            ),
            (
                has(Scope::Number) && !has(Scope::Import),
                "no numbers with ?first=, which need the scope import",
            ),
            (
                has(Scope::Metrics) && self.is_confined(),
                "no metrics, because they cover all formats, ledgers and series",
            ),
        ];
        refusals
            .into_iter()
            .filter_map(|(applies, refusal)| applies.then_some(refusal))
            .collect()
    }

    /// Checks that the bearer has a scope.
    ///
    /// # Errors
    /// Returns 403 `forbidden` if the bearer does not have the scope.
    pub(crate) fn check_scope(&self, scope: Scope) -> Result<(), Problem> {
        if self.scopes.contains(&scope) {
            return Ok(());
        }
        let has = joined(self.scopes.iter());
        let detail = format!(
            "{} has only the scopes {has}, but this request needs {scope}",
            self.shown_by
        );
        Err(Problem::new(Slug::Forbidden, detail)
            .reason("scope")
            .limit(scope.name()))
    }

    /// Checks that the bearer may use a format.
    ///
    /// # Errors
    /// Returns 403 `forbidden` if the format is not permitted. The error does not reveal whether
    /// the format exists.
    pub(crate) fn check_format(&self, name: &str) -> Result<(), Problem> {
        self.check("format", self.has_format(name), &name)
    }

    /// Checks that the bearer may use at least one of the formats in `event_formats`.
    ///
    /// # Errors
    /// Returns 403 `forbidden` if no permitted format is one of `event_formats`.
    pub(super) fn check_events(&self, event_formats: &[String]) -> Result<(), Problem> {
        let has_one =
            self.formats.is_none() || event_formats.iter().any(|name| self.has_format(name));
        self.check("format", has_one, &"ledgers")
    }

    /// Checks that the permit is not restricted to some formats, ledgers or series.
    ///
    /// # Errors
    /// Returns 403 `forbidden` if the permit has such a restriction.
    pub(super) fn check_everything(&self) -> Result<(), Problem> {
        let what = "all of them";
        self.check("format", self.formats.is_none(), &what)?;
        self.check("ledger", self.ledgers.is_none(), &what)?;
        self.check("series", self.series.is_none(), &what)
    }

    /// Checks that the bearer may use a ledger.
    ///
    /// # Errors
    /// Returns 403 `forbidden` if the ledger is not permitted. The error does not reveal whether
    /// the ledger exists.
    pub(crate) fn check_ledger(&self, ledger: LedgerId) -> Result<(), Problem> {
        let ledgers = self.ledgers.as_ref();
        let has_it = ledgers.is_none_or(|ledgers| ledgers.contains(&ledger));
        self.check("ledger", has_it, &ledger)
    }

    /// Checks that the bearer may use a series of numbers.
    ///
    /// # Errors
    /// Returns 403 `forbidden` if the series is not permitted. The error does not reveal whether
    /// the series exists.
    pub(super) fn check_series(&self, name: &str) -> Result<(), Problem> {
        self.check("series", self.has_series(name), &name)
    }

    /// Checks that the permit is not restricted to some ledgers. `what` names the requested
    /// resource, such as `conjunctions`, which belongs to no ledger.
    ///
    /// # Errors
    /// Returns 403 `forbidden` if the permit has such a restriction.
    pub(super) fn check_beside_ledgers(&self, what: &str) -> Result<(), Problem> {
        self.check("ledger", self.ledgers.is_none(), &what)
    }

    /// Returns 403 `forbidden` unless `is_met`. `what` is the kind of restriction: `format`,
    /// `ledger` or `series`. `named` is the resource that the caller requested.
    fn check(&self, what: &str, is_met: bool, named: &dyn Display) -> Result<(), Problem> {
        if is_met {
            return Ok(());
        }
        let (several, known) = match what {
            "format" => ("formats", joined(self.formats.iter().flatten())),
            "ledger" => ("ledgers", joined(self.ledgers.iter().flatten())),
            _ => ("series", joined(self.series.iter().flatten())),
        };
        let detail = format!(
            "{} is limited to the {several} {known}, but this request is for {named}",
            self.shown_by
        );
        Err(Problem::new(Slug::Forbidden, detail)
            .reason(what)
            .limit(known))
    }
}

fn joined(names: impl Iterator<Item = impl ToString>) -> String {
    let names: Vec<_> = names.map(|name| name.to_string()).collect();
    names.join(", ")
}
