//! A client of one service.

use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::{Method, Uri};

use super::error::ClientError;
use super::request::Request;
use super::retry::Retry;
use super::tls::Trust;
use super::transport::Transport;

/// A client of one service. Asks once, unless [`Client::retrying`] says otherwise. It follows no redirection: who answers with one
/// is not the service.
pub struct Client {
    transport: Transport,
    /// What stands before every path.
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
        let transport = Transport::new(trust.config(&url)?);
        Ok(Client {
            transport,
            url,
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
        let field = is_good
            .then(|| HeaderValue::try_from(format!("Bearer {token}")).ok())
            .flatten();
        let mut authorization = field.ok_or(ClientError::NoToken)?;
        authorization.set_sensitive(true);
        Ok(Client {
            authorization: Some(authorization),
            ..self
        })
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
        let request = Request::new(
            &self.transport,
            &self.retry,
            method,
            format!("{}{path}", self.url),
        );
        match &self.authorization {
            Some(authorization) => request.header(AUTHORIZATION, authorization.clone()),
            None => request,
        }
    }
}

/// An address without a scheme is one of `http`, and what ends in a slash is the same without: paths begin with one.
fn base_of(given: String) -> Result<String, ClientError> {
    let mut url = if given.contains("://") {
        given.clone()
    } else {
        format!("http://{given}")
    };
    url.truncate(url.trim_end_matches('/').len());
    // Its path is followed by others, and a name with a password would be sent to nobody.
    let is_good = |url: &Uri| {
        let authority = url
            .authority()
            .is_some_and(|authority| !authority.as_str().contains('@'));
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
        for url in [
            "http://127.0.0.1:8080",
            "127.0.0.1:8080",
            "http://127.0.0.1:8080/",
            "127.0.0.1:8080//",
        ] {
            assert_eq!(
                base_of(url.to_owned()).expect("an address"),
                "http://127.0.0.1:8080"
            );
        }
        let below = base_of("https://ids.example.com/below/".to_owned());
        assert_eq!(below.expect("an address"), "https://ids.example.com/below");
        assert_eq!(
            base_of("[::1]:8080".to_owned()).expect("an address"),
            "http://[::1]:8080"
        );
    }

    #[test]
    fn what_is_no_address_is_told_before_anything_is_sent() {
        for none in [
            "no such address",
            "",
            "http://",
            "ftp://127.0.0.1",
            "a:secret@127.0.0.1",
            "127.0.0.1/?a=b",
            "127.0.0.1#a",
        ] {
            let refused = Client::new(none).err().expect(none);
            assert!(
                matches!(&refused, ClientError::NotAnAddress(given) if given == none),
                "{none}: {refused}"
            );
        }
    }
}
