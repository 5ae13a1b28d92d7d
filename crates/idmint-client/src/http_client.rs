//! An HTTP client of one service.

use reqwest::redirect::Policy;
use reqwest::{Method, Url, retry};

use super::error::ClientError;
use super::request::Request;
use super::retry::Retry;
use super::tls::Trust;

/// An HTTP client of one service.
///
/// Each request is sent once, unless [`Client::retrying`] adds retries. The client follows no
/// redirects, because idmint never sends one.
pub struct Client {
    http: reqwest::Client,
    /// The URL of the service without a trailing slash.
    url: String,
    retry: Retry,
    token: Option<String>,
}

impl Client {
    /// Creates a client of the service at `url`, such as `http://127.0.0.1:8080`.
    ///
    /// The scheme may be omitted: `127.0.0.1:8080` means the same URL. For `https`, the client
    /// trusts the certificate authorities of the system. This function sends no request.
    ///
    /// # Errors
    /// Returns [`ClientError::NotAnAddress`] if `url` is not the address of a service.
    pub fn new(url: impl Into<String>) -> Result<Client, ClientError> {
        Client::trusting(Trust::default(), url)
    }

    /// Creates a client with TLS settings: the trusted authorities and an optional client
    /// certificate.
    ///
    /// # Errors
    /// Returns [`ClientError::NotAnAddress`] if `url` is not the address of a service, and
    /// [`ClientError::Tls`] if the TLS settings are invalid.
    pub fn trusting(trust: Trust, url: impl Into<String>) -> Result<Client, ClientError> {
        let url = base_of(url.into())?;
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(trust.config(&url)?)
            .http1_only()
            .no_proxy()
            .redirect(Policy::none())
            .retry(retry::never())
            .user_agent(concat!("idmint-rust/", env!("CARGO_PKG_VERSION")))
            .build()
            .expect("the TLS configuration is of the rustls version that reqwest uses");
        Ok(Client {
            http,
            url,
            retry: Retry::never(),
            token: None,
        })
    }

    /// Returns this client with a bearer token.
    ///
    /// # Errors
    /// Returns [`ClientError::NoToken`] if the token is empty or not visible ASCII.
    pub fn with_token(self, token: &str) -> Result<Client, ClientError> {
        let is_good = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_good {
            return Err(ClientError::NoToken);
        }
        Ok(Client {
            token: Some(token.to_owned()),
            ..self
        })
    }

    /// Returns this client with retries. Only requests that are safe to repeat are retried.
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
        let http = self.http.request(method, format!("{}{path}", self.url));
        Request::new(&self.retry, self.token.as_deref(), http)
    }
}

/// Parses the base URL of a service.
///
/// An address without a scheme means `http`. A trailing slash is removed, because every path begins
/// with a slash.
fn base_of(given: String) -> Result<String, ClientError> {
    let url = if given.contains("://") {
        Url::parse(&given)
    } else {
        Url::parse(&format!("http://{given}"))
    };
    // Paths are appended to the URL, so it must have no query. A user name and password are
    // refused, too, because reqwest would send them as Basic authentication, which idmint does not
    // support.
    let is_good = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    };
    match url {
        Ok(url) if is_good(&url) => Ok(url.as_str().trim_end_matches('/').to_owned()),
        _ => {
            // The text before the last `@` is hidden, because it may contain a password.
            let host = given.rsplit_once('@').map(|(_, host)| format!("…@{host}"));
            Err(ClientError::NotAnAddress(host.unwrap_or(given)))
        }
    }
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

    #[test]
    fn no_message_repeats_the_password_of_an_address() {
        for address in ["a:secret@127.0.0.1", "ftp://a:se@cret@127.0.0.1"] {
            let refused = Client::new(address).err().expect(address);
            assert!(
                matches!(&refused, ClientError::NotAnAddress(shown) if shown == "…@127.0.0.1"),
                "{refused}"
            );
        }
    }
}
