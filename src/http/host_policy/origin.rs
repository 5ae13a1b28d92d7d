//! Where a web page comes from, as its browser says it.

use axum::http::HeaderValue;

use super::authority::{Authority, Host};

/// The header `Origin` of a request, where it names a place: `https://example.com:8443`. That of a page without an origin,
/// `null`, is none.
pub(super) struct Origin<'a> {
    authority: Authority<'a>,
    default_port: u16,
}

impl<'a> Origin<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let default_port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return None,
        };
        Some(Self {
            authority: Authority::parse(authority)?,
            default_port,
        })
    }

    /// The page comes from where the request goes. The scheme is not compared: a proxy may end TLS.
    pub(super) fn is_at(&self, authority: &Authority<'_>) -> bool {
        self.authority.is(authority, self.default_port)
    }

    /// The host it comes from, whatever the port.
    pub(super) fn host(&self) -> Host<&'a str> {
        self.authority.host()
    }
}

/// An origin as a browser sends it, `https://example.com` or `http://localhost:3000`; or `*`, every origin.
///
/// Shape: scheme `http` or `https`, a lower-case host, perhaps a port; no path, not even a final slash, because a
/// browser never sends one and the origin would match nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorsOrigin(HeaderValue);

impl CorsOrigin {
    /// Reads an origin or `*`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        let is_origin = text == "*" || (is_lower && Origin::parse(text).is_some());
        HeaderValue::from_str(text)
            .ok()
            .filter(|_| is_origin)
            .map(Self)
    }

    /// The origin as it stands in the header `Origin`.
    pub(super) fn value(&self) -> &HeaderValue {
        &self.0
    }

    /// It stands for every origin.
    pub(super) fn is_any(&self) -> bool {
        self.0 == "*"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_perhaps_a_port() {
        for text in [
            "*",
            "https://example.com",
            "http://localhost:3000",
            "http://[::1]:80",
        ] {
            assert!(
                CorsOrigin::parse(text).is_some_and(|origin| origin.value() == text),
                "{text}"
            );
        }
        for text in [
            "",
            "example.com",
            "https://",
            "https://example.com/",
            "https://Example.com",
            "ftp://a",
            "null",
        ] {
            assert_eq!(CorsOrigin::parse(text), None, "{text:?}");
        }
    }
}
