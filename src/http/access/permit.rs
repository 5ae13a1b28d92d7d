//! What the bearer of a token, or of a certificate, may do.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::Extensions;

use super::rate::Allowance;
use super::scope::Scope;
use crate::http::answer::{Problem, Slug};
use crate::ledger::LedgerId;
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
    /// From then on it permits nothing.
    pub(super) expires: Option<UnixTime>,
    /// What its bearer has used of the rate, where there is one.
    pub(super) allowance: Arc<Allowance>,
}

/// The permit of a request, if it is confined to some formats or ledgers, or the request has a body.
pub(in crate::http) fn permit_of(extensions: &Extensions) -> Option<&Permit> {
    extensions.get::<Arc<Permit>>().map(AsRef::as_ref)
}

impl Permit {
    /// That of a certificate for this name.
    pub(super) fn of_certificate(name: &str, scopes: BTreeSet<Scope>) -> Permit {
        let shown_by = format!("the certificate of `{name}`");
        Permit { shown_by, scopes, formats: None, ledgers: None, expires: None, allowance: Arc::default() }
    }

    /// What either of two permits of one certificate permits. Requests count for the first name.
    pub(super) fn joined_with(&self, other: &Permit) -> Permit {
        let scopes = self.scopes.union(&other.scopes).copied().collect();
        let (shown_by, allowance) = (self.shown_by.clone(), Arc::clone(&self.allowance));
        Permit { shown_by, scopes, formats: None, ledgers: None, expires: None, allowance }
    }

    /// What it is shown by, such as "the token `billing`".
    pub(in crate::http) fn shown_by(&self) -> &str {
        &self.shown_by
    }

    /// Whether it leaves out formats or ledgers.
    pub(super) fn is_confined(&self) -> bool {
        self.formats.is_some() || self.ledgers.is_some()
    }

    /// Only formats of these names; `None` for all.
    pub(in crate::http) fn formats(&self) -> Option<&BTreeSet<String>> {
        self.formats.as_ref()
    }

    /// Whether it is for this ledger, too.
    pub(in crate::http) fn has_ledger(&self, ledger: LedgerId) -> bool {
        self.ledgers.as_ref().is_none_or(|ledgers| ledgers.contains(&ledger))
    }

    /// # Errors
    /// 403 `forbidden`.
    pub(super) fn check_scope(&self, scope: Scope) -> Result<(), Problem> {
        if self.scopes.contains(&scope) {
            return Ok(());
        }
        let has: Vec<_> = self.scopes.iter().map(|scope| scope.name()).collect();
        let detail = format!("{} has the scopes {}; this needs {scope}", self.shown_by, has.join(", "));
        Err(Problem::new(Slug::Forbidden, detail).reason("scope").limit(scope.name()))
    }

    /// # Errors
    /// 403 `forbidden`, the same for a format that there is and for one that there is not.
    pub(in crate::http) fn check_format(&self, name: &str) -> Result<(), Problem> {
        match &self.formats {
            Some(formats) if !formats.contains(name) => {
                let formats: Vec<_> = formats.iter().map(String::as_str).collect();
                Err(self.confined("format", name, &formats.join(", ")))
            }
            _ => Ok(()),
        }
    }

    /// # Errors
    /// 403 `forbidden`, the same for a ledger that there is and for one that there is not.
    pub(in crate::http) fn check_ledger(&self, ledger: LedgerId) -> Result<(), Problem> {
        if self.has_ledger(ledger) {
            Ok(())
        } else {
            Err(self.confined("ledger", &ledger.to_string(), &self.known_ledgers()))
        }
    }

    /// # Errors
    /// 403 `forbidden`.
    pub(super) fn check_any_ledger(&self) -> Result<(), Problem> {
        if self.ledgers.is_none() { Ok(()) } else { Err(self.confined("ledger", "a new one", &self.known_ledgers())) }
    }

    fn known_ledgers(&self) -> String {
        let ledgers: Vec<_> = self.ledgers.iter().flatten().map(LedgerId::to_string).collect();
        ledgers.join(", ")
    }

    fn confined(&self, what: &str, named: &str, known: &str) -> Problem {
        let detail = format!("{} is for the {what}s {known}; this is for {named}", self.shown_by);
        Problem::new(Slug::Forbidden, detail).reason(what).limit(known)
    }
}
