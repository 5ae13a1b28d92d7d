//! The guard, which checks every request before any work is done. It admits callers whose token or
//! certificate permits the request, within their rate limit.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, header};

use super::caller::Caller;
use super::client_certificates::ClientCertificates;
use super::permit::Permit;
use super::rate::Rate;
use super::scope::Need;
use super::scope::Scope;
use super::token_digest::TokenDigest;
use super::tokens::Tokens;
use crate::answer::{Problem, Slug};
use crate::request::{ledger_id, path_params};
use crate::{Admission, is_probe};
use idmint_core::time::{Clock, UnixTime};

/// The maximum length of a token, in bytes.
const TOKEN_LEN_MAX: usize = 512;

/// Checks tokens and certificates, and counts requests towards rate limits. The accepted tokens and
/// certificates can be replaced at any time.
#[derive(Debug)]
pub struct Guard {
    /// The accepted tokens, or `None` if the service accepts no tokens.
    tokens: Option<ArcSwap<Tokens>>,
    /// The accepted certificates, or `None` if the service accepts no certificates.
    certificates: Option<ArcSwap<ClientCertificates>>,
    /// The rate limit, or `None` if callers have no limit.
    rate: Option<Rate>,
    /// The names of the formats whose ids belong to events in a ledger.
    event_formats: Vec<String>,
    clock: Arc<Clock>,
}

impl Guard {
    /// Returns a guard. If `tokens` or `certificates` are given, callers must present one of them.
    /// If `rate` is given, it limits the requests of each caller. `event_formats` are the names of
    /// the formats whose ids belong to events in a ledger.
    pub fn new(
        tokens: Option<Tokens>,
        certificates: Option<ClientCertificates>,
        rate: Option<Rate>,
        event_formats: Vec<String>,
        clock: Arc<Clock>,
    ) -> Guard {
        Guard {
            tokens: tokens.map(ArcSwap::from_pointee),
            certificates: certificates.map(ArcSwap::from_pointee),
            rate,
            event_formats,
            clock,
        }
    }

    /// Returns the number of accepted bearer tokens, or `None` if tokens are not accepted.
    pub fn tokens(&self) -> Option<usize> {
        self.tokens.as_ref().map(|tokens| tokens.load().count())
    }

    /// Returns the number of accepted certificate names, or `None` if certificates are not
    /// accepted.
    pub fn certificates(&self) -> Option<usize> {
        self.certificates
            .as_ref()
            .map(|certificates| certificates.load().count())
    }

    /// `true` if callers have a rate limit.
    pub fn counts_requests(&self) -> bool {
        self.rate.is_some()
    }

    /// Replaces the accepted tokens. Does nothing if this guard does not accept tokens.
    pub fn accept_tokens(&self, tokens: Tokens) {
        if let Some(known) = &self.tokens {
            known.store(Arc::new(tokens));
        }
    }

    /// Replaces the accepted certificates. The client certificates of open connections are checked
    /// again with the new settings. Does nothing if this guard does not accept certificates.
    pub fn accept_certificates(&self, certificates: ClientCertificates) {
        if let Some(known) = &self.certificates {
            known.store(Arc::new(certificates));
        }
    }

    /// Returns a warning for each token or certificate that has a scope but may not send some of
    /// the requests that need this scope. An example is a token with the scope `metrics` that is
    /// limited to some formats. The warning lists the refused requests.
    pub fn refusals(&self) -> Vec<String> {
        let tokens = self
            .tokens
            .as_ref()
            .map(|tokens| tokens.load().permits().cloned().collect::<Vec<_>>());
        let certificates = self.certificates.as_ref();
        let certificates = certificates
            .map(|certificates| certificates.load().permits().cloned().collect::<Vec<_>>());
        let permits = tokens.into_iter().chain(certificates).flatten();
        let lines = permits.map(|permit| {
            (
                permit.shown_by.clone(),
                permit.refusals(&self.event_formats).join("; "),
            )
        });
        lines
            .filter(|(_, refused)| !refused.is_empty())
            .map(|(shown, refused)| format!("{shown}: {refused}"))
            .collect()
    }

    /// Returns the [`Admission`] function that applies this guard to every request.
    pub fn admission(self: Arc<Self>) -> Admission {
        Arc::new(move |route, request| self.admit(route.need, route.template, request))
    }

    /// Checks that the caller may use the route `template`, which needs the permission `need`.
    /// Attaches the permit to the request if the handler, or the wait for the body, needs it later.
    ///
    /// # Errors
    /// Returns 401 `unauthorized`, 403 `forbidden` or 429 `rate-limited` if the request is not
    /// admitted.
    fn admit(&self, need: Need, template: &str, request: &mut Request) -> Result<(), Problem> {
        let asks = self.tokens.is_some() || self.certificates.is_some();
        let is_free = is_probe(request.uri());
        // Admit `OPTIONS` requests, because browsers send preflight requests without a token.
        if !asks || need == Need::Nothing || *request.method() == Method::OPTIONS {
            return if is_free {
                Ok(())
            } else {
                self.count(None, request)
            };
        }
        let permit = self.permit(request);
        if let (Ok(permit), Some(caller)) = (&permit, Caller::of(request.extensions())) {
            caller.note.has_shown(permit);
        }
        let permit = permit.and_then(|permit| self.check_expiry(permit));
        // A health or metrics probe with a valid token or certificate does not count towards the
        // rate limit. Other probes count, because an attacker could use them to try many tokens.
        if !is_free || permit.is_err() {
            self.count(permit.as_ref().ok(), request)?;
        }
        let permit = permit?;
        self.check(&permit, need, template, request)?;
        let is_asked_later =
            matches!(need, Need::Series | Need::ResumedSeries) || permit.is_asked_later();
        if is_asked_later || may_wait(request) {
            request.extensions_mut().insert(permit);
        }
        Ok(())
    }

    /// Counts a request towards the rate limit of its permit, or of its address if it has no
    /// permit.
    fn count(&self, permit: Option<&Arc<Permit>>, request: &Request) -> Result<(), Problem> {
        let Some(rate) = &self.rate else {
            return Ok(());
        };
        let caller = Caller::of(request.extensions());
        let taken = match (permit, caller) {
            (Some(permit), _) => rate.take(&permit.allowance),
            (None, Some(caller)) => rate.take_of_peer(caller.address),
            (None, None) => return Ok(()),
        };
        caller
            .into_iter()
            .for_each(|caller| caller.note.fill_rate(rate, taken.as_ref().ok().copied()));
        taken.map(drop)
    }

    /// Returns the permit of the request's token, even if the token has expired. Without a token,
    /// returns the permit of the connection's certificate.
    fn permit(&self, request: &Request) -> Result<Arc<Permit>, Problem> {
        let shown =
            Caller::of(request.extensions()).and_then(|caller| caller.certificate.as_deref());
        match (&self.tokens, &self.certificates, shown) {
            (tokens, Some(certificates), Some(shown))
                if tokens.is_none() || !request.headers().contains_key(header::AUTHORIZATION) =>
            {
                certificates.load().permit(shown, self.since_1970())
            }
            (Some(tokens), ..) => permit_of_token(&tokens.load(), request.headers()),
            (None, ..) => Err(refuse(
                "missing_certificate",
                "the connection has no client certificate; present one in the TLS handshake",
            )),
        }
    }

    /// Returns the permit, unless its token has expired.
    fn check_expiry(&self, permit: Arc<Permit>) -> Result<Arc<Permit>, Problem> {
        match permit.expires {
            Some(expires) if UnixTime::from(self.clock.now()) >= expires => Err(refuse(
                "expired_token",
                format!(
                    "{} has expired: it was valid until {expires}",
                    permit.shown_by
                ),
            )),
            _ => Ok(permit),
        }
    }

    fn since_1970(&self) -> Duration {
        u64::try_from(UnixTime::from(self.clock.now()).nanos())
            .map(Duration::from_nanos)
            .unwrap_or_default()
    }

    fn check(
        &self,
        permit: &Permit,
        need: Need,
        template: &str,
        request: &Request,
    ) -> Result<(), Problem> {
        let named = || path_params(template, request.uri()).map(|[named]| named);
        match need {
            Need::Nothing | Need::Token => Ok(()),
            Need::Scope(scope) => permit.check_scope(scope),
            Need::Format(scope) => permit
                .check_scope(scope)
                .and_then(|()| permit.check_format(&named()?)),
            Need::MintFormat => {
                let name = named()?;
                let is_of_events = self.event_formats.iter().any(|format| *format == name);
                permit.check_scope(if is_of_events {
                    Scope::Ledger
                } else {
                    Scope::Mint
                })?;
                permit.check_format(&name)
            }
            Need::Everything(scope) => permit
                .check_scope(scope)
                .and_then(|()| permit.check_everything()),
            Need::Ledgers => self.check_ledgers(permit),
            Need::Ledger => self
                .check_ledgers(permit)
                .and_then(|()| permit.check_ledger(ledger_id(&named()?)?)),
            Need::Series => permit
                .check_scope(Scope::Number)
                .and_then(|()| permit.check_series(&named()?)),
            Need::ResumedSeries => {
                permit.check_scope(Scope::Number)?;
                permit.check_scope(Scope::Import)?;
                match &*named()? {
                    "*" => permit.check_everything(),
                    series => permit.check_series(series),
                }
            }
            Need::AnyLedger => self
                .check_ledgers(permit)
                .and_then(|()| permit.check_beside_ledgers("a new one")),
            Need::Conjunctions => permit
                .check_scope(Scope::Ledger)
                .and_then(|()| permit.check_beside_ledgers("conjunctions")),
        }
    }

    fn check_ledgers(&self, permit: &Permit) -> Result<(), Problem> {
        permit
            .check_scope(Scope::Ledger)
            .and_then(|()| permit.check_events(&self.event_formats))
    }
}

/// `true` if the service may wait for the body of this request, or if the request may be long work.
/// The permit then identifies the sender. A POST request without a body and a query, such as a mint
/// of one id, is never long.
fn may_wait(request: &Request) -> bool {
    !request.body().is_end_stream()
        || request.uri().query().is_some()
        || *request.method() != Method::POST
}

fn permit_of_token(tokens: &Tokens, headers: &HeaderMap) -> Result<Arc<Permit>, Problem> {
    let permit = tokens.permit(&TokenDigest::of(bearer(headers)?));
    permit.cloned().ok_or_else(|| {
        refuse(
            "invalid_token",
            "the token is unknown, or was revoked; use one that http.tokens lists",
        )
    })
}

/// Returns the bearer token of a request. Source: RFC 6750, section 2.1.
fn bearer(headers: &HeaderMap) -> Result<&[u8], Problem> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (given, more) = (given.next(), given.next());
    let Some(given) = given else {
        return Err(refuse(
            "missing_token",
            "the request has no token; send `Authorization: Bearer <token>`",
        ));
    };
    let malformed = || {
        refuse(
            "malformed_token",
            format!(
                "Authorization must be given once, as `Bearer <token>`, the token at most {TOKEN_LEN_MAX} bytes long"
            ),
        )
    };
    let (scheme, token) = given
        .as_bytes()
        .split_at_checked("Bearer ".len())
        .ok_or_else(malformed)?;
    let is_good = more.is_none()
        && scheme.eq_ignore_ascii_case(b"Bearer ")
        && (1..=TOKEN_LEN_MAX).contains(&token.len());
    if is_good { Ok(token) } else { Err(malformed()) }
}

fn refuse(reason: &'static str, detail: impl Into<String>) -> Problem {
    Problem::new(Slug::Unauthorized, detail).reason(reason)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::HeaderValue;

    use super::*;
    use crate::access::{CallerNote, permit_of};

    #[test]
    fn a_request_that_may_be_long_names_its_token_and_a_single_mint_does_not() {
        let digest = TokenDigest::of(b"secret");
        let text = format!("[[token]]\nname = \"a\"\nsha256 = \"{digest}\"\nscopes = [\"mint\"]\n");
        let tokens = Tokens::parse(&text, "tokens.toml".as_ref(), &[]).expect("a token");
        let guard = Guard::new(Some(tokens), None, None, Vec::new(), Clock::system().into());
        for (method, uri, body, is_named) in [
            (Method::POST, "/ids/flax", "", false),
            (Method::POST, "/ids/flax?count=100000", "", true),
            (Method::POST, "/ids/flax", "{}", true),
            (Method::GET, "/ledgers", "", true),
        ] {
            let request = Request::builder()
                .method(&method)
                .uri(uri)
                .header(header::AUTHORIZATION, "Bearer secret")
                .body(Body::from(body));
            let mut request = request.expect("a request");
            let admitted = guard.admit(Need::Token, "", &mut request);
            assert!(admitted.is_ok(), "{method} {uri}");
            let name = permit_of(request.extensions()).map(Permit::shown_by);
            let expected = is_named.then_some("the token `a`");
            assert_eq!(name, expected, "{method} {uri} {body}");
        }
    }

    #[test]
    fn a_caller_with_an_expired_token_is_refused_by_its_name() {
        let digest = TokenDigest::of(b"secret");
        let text = format!(
            "[[token]]\nname = \"a\"\nsha256 = \"{digest}\"\nscopes = [\"mint\"]\nexpires = \"2020-01-01T00:00:00Z\"\n"
        );
        let tokens = Tokens::parse(&text, "tokens.toml".as_ref(), &[]).expect("a token");
        let guard = Guard::new(Some(tokens), None, None, Vec::new(), Clock::system().into());
        let caller = Caller {
            address: [127, 0, 0, 1].into(),
            certificate: None,
            note: CallerNote::default(),
            auditor: None,
        };
        let note = caller.note.clone();
        let request = Request::post("/ids/flax")
            .header(header::AUTHORIZATION, "Bearer secret")
            .extension(caller)
            .body(Body::empty());
        let refused = guard.admit(Need::Token, "", &mut request.expect("a request"));
        let refused = refused.expect_err("it has expired");
        assert!(refused.detail().contains("expired"), "{refused:?}");
        assert_eq!(note.shown_by(), Some("the token `a`"));
    }

    fn token_of(fields: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(
                header::AUTHORIZATION,
                HeaderValue::from_str(field).expect("visible ASCII"),
            );
        }
        bearer(&headers)
            .ok()
            .map(|token| String::from_utf8_lossy(token).into_owned())
    }

    #[test]
    fn a_token_is_given_once_and_as_a_bearer_has_it() {
        assert_eq!(token_of(&["Bearer abc"]).as_deref(), Some("abc"));
        assert_eq!(token_of(&["bearer abc"]).as_deref(), Some("abc"));
        let long = format!("Bearer {}", "a".repeat(TOKEN_LEN_MAX));
        assert_eq!(
            token_of(&[&long]).map(|token| token.len()),
            Some(TOKEN_LEN_MAX)
        );
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
