//! A client of one service.

use std::time::Duration;

use reqwest::RequestBuilder;
use reqwest::header::{AUTHORIZATION, HeaderValue};

use super::error::ClientError;
use super::request::Request;
use super::retry::Retry;

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
    /// A client of the service at `url`, such as `http://127.0.0.1:8080`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ClientError::NotBuilt`].
    pub fn new(url: impl Into<String>) -> Result<Client, ClientError> {
        let http = reqwest::Client::builder().timeout(ANSWER_TIMEOUT).no_proxy().build();
        Ok(Client {
            http: http.map_err(ClientError::NotBuilt)?,
            url: url.into(),
            retry: Retry::never(),
            authorization: None,
        })
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
