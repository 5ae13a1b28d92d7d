//! What the bearer of a token may do.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::Extensions;

use super::scope::Scope;
use crate::http::answer::{Problem, Slug};
use crate::ledger::LedgerId;
use crate::time::UnixTime;

/// What the bearer of a token may do. A request of a bearer who may not do everything within its scopes carries it.
#[derive(Debug)]
pub(in crate::http) struct Permit {
    /// Whose it is.
    pub(super) name: String,
    pub(super) scopes: BTreeSet<Scope>,
    /// Only these; `None` for all.
    pub(super) formats: Option<BTreeSet<String>>,
    /// Only these; `None` for all.
    pub(super) ledgers: Option<BTreeSet<LedgerId>>,
    /// From then on it permits nothing.
    pub(super) expires: Option<UnixTime>,
}

/// The permit of a request, if it is confined to some formats or ledgers.
pub(in crate::http) fn permit_of(extensions: &Extensions) -> Option<&Permit> {
    extensions.get::<Arc<Permit>>().map(AsRef::as_ref)
}

impl Permit {
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
        let detail = format!("the token `{}` has the scopes {}; this needs {scope}", self.name, has.join(", "));
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
        let detail = format!("the token `{}` is for the {what}s {known}; this is for {named}", self.name);
        Problem::new(Slug::Forbidden, detail).reason(what).limit(known)
    }
}
