//! A client of one service.

use std::error::Error;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::{Method, Request as HttpRequest, Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::error::ClientError;
use super::request::Request;
use super::retry::Retry;
use super::tls::Trust;

/// A client of one service. Asks once, unless [`Client::retrying`] says otherwise. It follows no redirection: who answers with one
/// is not the service.
pub struct Client {
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// What stands before every path.
    url: String,
    pub(super) retry: Retry,
    /// What it shows with each request, if anything.
    authorization: Option<HeaderValue>,
}

impl Client {
    /// A client of the service at `url`, such as `http://127.0.0.1:8080`, or `127.0.0.1:8080`, which says the same; of `https`
    /// it trusts whom the system trusts. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ClientError::NotAnAddress`].
    pub fn new(url: impl Into<String>) -> Result<Client, ClientError> {
        Client::trusting(Trust::default(), url)
    }

    /// The same, for a service that speaks TLS: whom to trust, and what to show.
    ///
    /// # Errors
    /// [`ClientError::NotAnAddress`], [`ClientError::Tls`].
    pub fn trusting(trust: Trust, url: impl Into<String>) -> Result<Client, ClientError> {
        let url = base_of(url.into())?;
        let tls = trust.config(&url)?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(connector.wrap_connector(tcp));
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
        self.request(Method::GET, path).repeatedly()
    }

    pub(super) fn post(&self, path: &str) -> Request<'_> {
        self.request(Method::POST, path)
    }

    fn request(&self, method: Method, path: &str) -> Request<'_> {
        let request = Request::new(self, method, format!("{}{path}", self.url));
        match &self.authorization {
            Some(authorization) => request.header(AUTHORIZATION, authorization.clone()),
            None => request,
        }
    }

    /// Sends a request once, and reads the whole answer.
    pub(super) async fn ask(
        &self,
        request: HttpRequest<Full<Bytes>>,
    ) -> Result<Response<Bytes>, Box<dyn Error + Send + Sync>> {
        let (head, body) = self.http.request(request).await?.into_parts();
        Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
    }
}

/// An address without a scheme is one of `http`, and what ends in a slash is the same without: paths begin with one.
fn base_of(given: String) -> Result<String, ClientError> {
    let mut url = if given.contains("://") { given.clone() } else { format!("http://{given}") };
    url.truncate(url.trim_end_matches('/').len());
    // Its path is followed by others, and a name with a password would be sent to nobody.
    let is_good = |url: &Uri| {
        let authority = url.authority().is_some_and(|authority| !authority.as_str().contains('@'));
        authority && matches!(url.scheme_str(), Some("http" | "https")) && url.query().is_none()
    };
    if url.contains('#') || !url.parse().is_ok_and(|url| is_good(&url)) {
        return Err(ClientError::NotAnAddress(given));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_scheme_and_may_end_in_a_slash() {
        for url in ["http://127.0.0.1:8080", "127.0.0.1:8080", "http://127.0.0.1:8080/", "127.0.0.1:8080//"] {
            assert_eq!(base_of(url.to_owned()).expect("an address"), "http://127.0.0.1:8080");
        }
        let below = base_of("https://ids.example.com/below/".to_owned());
        assert_eq!(below.expect("an address"), "https://ids.example.com/below");
        assert_eq!(base_of("[::1]:8080".to_owned()).expect("an address"), "http://[::1]:8080");
    }

    #[test]
    fn what_is_no_address_is_told_before_anything_is_sent() {
        for none in
            ["no such address", "", "http://", "ftp://127.0.0.1", "a:secret@127.0.0.1", "127.0.0.1/?a=b", "127.0.0.1#a"]
        {
            let refused = Client::new(none).err().expect(none);
            assert!(matches!(&refused, ClientError::NotAnAddress(given) if given == none), "{none}: {refused}");
        }
    }
}
