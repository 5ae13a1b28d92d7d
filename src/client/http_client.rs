//! A client of one service.

use std::time::Duration;

use reqwest::RequestBuilder;
use reqwest::header::{AUTHORIZATION, HeaderValue};

use super::error::ClientError;
use super::request::Request;
use super::retry::Retry;
use super::tls::Trust;

/// How long a service may take for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A client of one service. Asks once, unless [`Client::retrying`] says otherwise.
pub struct Client {
    http: reqwest::Client,
    url: String,
    retry: Retry,
    /// What it shows with each request, if anything.
    authorization: Option<HeaderValue>,
}

impl Client {
    /// A client of the service at `url`, such as `http://127.0.0.1:8080`, or `127.0.0.1:8080`, which says the same; of `https`
    /// it trusts whom the system trusts. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ClientError::NotBuilt`].
    pub fn new(url: impl Into<String>) -> Result<Client, ClientError> {
        Client::trusting(Trust::default(), url)
    }

    /// The same, for a service that speaks TLS: whom to trust, and what to show.
    ///
    /// # Errors
    /// [`ClientError::NotBuilt`], [`ClientError::Tls`].
    pub fn trusting(trust: Trust, url: impl Into<String>) -> Result<Client, ClientError> {
        let url = base_of(url.into());
        let http = reqwest::Client::builder().tls_backend_preconfigured(trust.config(&url)?);
        let http = http.timeout(ANSWER_TIMEOUT).no_proxy().build().map_err(ClientError::NotBuilt)?;
        Ok(Client { http, url, retry: Retry::never(), authorization: None })
    }

    /// The same client, with a token.
    ///
    /// # Errors
    /// [`ClientError::NoToken`] if that is none.
    pub fn with_token(self, token: &str) -> Result<Client, ClientError> {
        let is_good = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        let field = is_good.then(|| HeaderValue::try_from(format!("Bearer {token}")).ok()).flatten();
        let mut authorization = field.ok_or(ClientError::NoToken)?;
        authorization.set_sensitive(true);
        Ok(Client { authorization: Some(authorization), ..self })
    }

    /// The same client, asking again as `retry` says whatever can be asked twice.
    #[must_use]
    pub fn retrying(self, retry: Retry) -> Client {
        Client { retry, ..self }
    }

    pub(super) fn get(&self, path: &str) -> Request<'_> {
        Request::repeatable(self.authorized(self.http.get(format!("{}{path}", self.url))), &self.retry)
    }

    pub(super) fn post(&self, path: &str) -> Request<'_> {
        Request::once(self.authorized(self.http.post(format!("{}{path}", self.url))), &self.retry)
    }

    fn authorized(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.authorization {
            Some(authorization) => request.header(AUTHORIZATION, authorization),
            None => request,
        }
    }
}

/// An address without a scheme is one of `http`, and what ends in a slash is the same without: paths begin with one.
fn base_of(mut url: String) -> String {
    if !url.contains("://") {
        url.insert_str(0, "http://");
    }
    url.truncate(url.trim_end_matches('/').len());
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_scheme_and_may_end_in_a_slash() {
        for url in ["http://127.0.0.1:8080", "127.0.0.1:8080", "http://127.0.0.1:8080/", "127.0.0.1:8080//"] {
            assert_eq!(base_of(url.to_owned()), "http://127.0.0.1:8080");
        }
        assert_eq!(base_of("https://ids.example.com/below/".to_owned()), "https://ids.example.com/below");
    }
}
