//! The guard: it stands at the edge, and lets in whoever has a token for what is asked.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, header};

use super::need::Need;
use super::permit::Permit;
use super::scope::Scope;
use super::token_digest::TokenDigest;
use super::tokens::Tokens;
use crate::http::answer::{Problem, Slug};
use crate::http::request::{ledger_id, path_params};
use crate::time::{Clock, UnixTime};

/// No token is longer, in bytes.
const TOKEN_LEN_MAX: usize = 512;

/// Asks for tokens. Which ones are accepted can be replaced at any time.
#[derive(Debug)]
pub struct Guard {
    tokens: ArcSwap<Tokens>,
    /// The formats whose ids are made of events.
    event_formats: Vec<String>,
    clock: Arc<Clock>,
}

impl Guard {
    /// A guard that accepts these tokens, in a service whose formats of these names are made of events.
    pub fn new(tokens: Tokens, event_formats: Vec<String>, clock: Arc<Clock>) -> Guard {
        Guard { tokens: ArcSwap::from_pointee(tokens), event_formats, clock }
    }

    /// How many tokens are accepted.
    pub fn count(&self) -> usize {
        self.tokens.load().count()
    }

    /// From now on these are accepted, and no others.
    pub fn accept(&self, tokens: Tokens) {
        self.tokens.store(Arc::new(tokens));
    }

    /// Lets a request in that needs this, on a path of this template. Whoever is confined to some formats or ledgers has that
    /// written on the request.
    ///
    /// # Errors
    /// 401 `unauthorized`, 403 `forbidden`.
    pub(in crate::http) fn admit(&self, need: Need, template: &str, request: &mut Request) -> Result<(), Problem> {
        // Browsers ask without a token whether they may send one.
        if need == Need::Nothing || *request.method() == Method::OPTIONS {
            return Ok(());
        }
        let permit = self.permit(request.headers())?;
        self.check(&permit, need, template, request)?;
        if permit.is_confined() {
            request.extensions_mut().insert(permit);
        }
        Ok(())
    }

    fn permit(&self, headers: &HeaderMap) -> Result<Arc<Permit>, Problem> {
        let token = bearer(headers)?;
        let tokens = self.tokens.load();
        let permit = tokens.permit(&TokenDigest::of(token));
        let permit = permit.ok_or_else(|| refuse("invalid_token", "the token is unknown, or has been withdrawn"))?;
        match permit.expires {
            Some(expires) if UnixTime::from(self.clock.now()) >= expires => Err(refuse(
                "expired_token",
                format!("the token `{}` has expired: it was good until {expires}", permit.name),
            )),
            _ => Ok(Arc::clone(permit)),
        }
    }

    fn check(&self, permit: &Permit, need: Need, template: &str, request: &Request) -> Result<(), Problem> {
        let named = || path_params(template, request.uri()).map(|[named]| named);
        match need {
            Need::Nothing | Need::Token => Ok(()),
            Need::Scope(scope) => permit.check_scope(scope),
            Need::Format(scope) => permit.check_scope(scope).and_then(|()| permit.check_format(&named()?)),
            Need::MintFormat => {
                let name = named()?;
                let is_of_events = self.event_formats.iter().any(|format| *format == name);
                permit.check_scope(if is_of_events { Scope::Ledger } else { Scope::Mint })?;
                permit.check_format(&name)
            }
            Need::Ledger => permit.check_scope(Scope::Ledger).and_then(|()| permit.check_ledger(ledger_id(&named()?)?)),
            Need::AnyLedger => permit.check_scope(Scope::Ledger).and_then(|()| permit.check_any_ledger()),
        }
    }
}

/// The token of a request. Source: RFC 6750, section 2.1.
fn bearer(headers: &HeaderMap) -> Result<&[u8], Problem> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (given, more) = (given.next(), given.next());
    let Some(given) = given else {
        return Err(refuse("missing_token", "there is no token: send `Authorization: Bearer <token>`"));
    };
    let malformed = || {
        refuse(
            "malformed_token",
            format!(
                "Authorization must be given once, as `Bearer <token>`, the token at most {TOKEN_LEN_MAX} bytes long"
            ),
        )
    };
    let (scheme, token) = given.as_bytes().split_at_checked("Bearer ".len()).ok_or_else(malformed)?;
    let is_good =
        more.is_none() && scheme.eq_ignore_ascii_case(b"Bearer ") && (1..=TOKEN_LEN_MAX).contains(&token.len());
    if is_good { Ok(token) } else { Err(malformed()) }
}

fn refuse(reason: &'static str, detail: impl Into<String>) -> Problem {
    Problem::new(Slug::Unauthorized, detail).reason(reason)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn token_of(fields: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(header::AUTHORIZATION, HeaderValue::from_str(field).expect("visible ASCII"));
        }
        bearer(&headers).ok().map(|token| String::from_utf8_lossy(token).into_owned())
    }

    #[test]
    fn a_token_is_given_once_and_as_a_bearer_has_it() {
        assert_eq!(token_of(&["Bearer abc"]).as_deref(), Some("abc"));
        assert_eq!(token_of(&["bearer abc"]).as_deref(), Some("abc"));
        let long = format!("Bearer {}", "a".repeat(TOKEN_LEN_MAX));
        assert_eq!(token_of(&[&long]).map(|token| token.len()), Some(TOKEN_LEN_MAX));
        let too_long = format!("{long}a");
        for refused in [
            &[][..],
            &[""],
            &["Bearer"],
            &["Bearer "],
            &["Basic abc"],
            &["abc"],
            &["Bearer a", "Bearer a"],
            &[&too_long],
        ] {
            assert_eq!(token_of(refused), None, "{refused:?}");
        }
    }
}
