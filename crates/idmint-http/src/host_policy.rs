//! Checks the host that a request names, and the site that it comes from, to keep other sites'
//! pages out.
//!
//! A browser sends requests for any page that it shows, even to services in a private network that
//! the page's author cannot reach. Two things reveal a page of another site. One is the host in the
//! request. It reveals DNS rebinding, in which the author has pointed a domain at this machine. The
//! other is the origin that the browser reports for the page. It reveals cross-site request
//! forgery.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::OnceLock;
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version, header};
use tower::Layer;
use tower_http::cors::{self, AllowOrigin, CorsLayer};

use crate::answer::{Problem, Slug};
use crate::edge::is_probe;

/// The header in which a browser reports how the page that sends a request is related to this
/// service, such as `same-origin` or `cross-site`. Source: Fetch Metadata Request Headers,
/// <https://www.w3.org/TR/fetch-metadata/>.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The host name of the loopback address.
const LOCALHOST: Host<&str> = Host::Name("localhost");

/// The hosts for which this service accepts requests, and the pages that may write to it.
///
/// The service accepts requests for `localhost`, every IP address, the name of this machine and the
/// configured hosts. A page whose author points another domain at this machine is therefore
/// refused. Health and metrics are served under any host.
///
/// GET, HEAD and OPTIONS requests are accepted from any page, because the browser keeps the page
/// from reading the response. Other requests are accepted only from pages of this service and of
/// the configured origins. A caller that is not a browser names no page, and is accepted.
#[derive(Debug, Default)]
pub struct HostPolicy {
    /// The scheme of the service's URLs and the address at which it listens, if they are set.
    pub address: Option<(&'static str, SocketAddr)>,
    /// `true` if the service does not serve its page for browsers.
    pub is_without_page: bool,
    /// The name of this machine, if it has one.
    machine: Option<HostName>,
    /// `true` if the service accepts requests for every host.
    answers_any_host: bool,
    hosts: Vec<HostName>,
    origins: Vec<CorsOrigin>,
    /// The first accepted host, in the spelling of its request. Nearly every request has the same
    /// host. Comparing these bytes is cheaper than parsing the host of every mint.
    usual_host: OnceLock<Box<[u8]>>,
}

impl HostPolicy {
    /// Returns the host policy of a service with these configured hosts and origins. `machine` is
    /// the name of the machine on which the service runs.
    pub fn new(machine: Option<HostName>, hosts: &[HostRule], origins: &[CorsOrigin]) -> Self {
        let name_of = |rule: &HostRule| match rule {
            HostRule::Name(name) => Some(name.clone()),
            HostRule::Any => None,
        };
        Self {
            address: None,
            is_without_page: false,
            machine,
            answers_any_host: hosts.contains(&HostRule::Any),
            hosts: hosts.iter().filter_map(name_of).collect(),
            origins: origins.to_vec(),
            usual_host: OnceLock::new(),
        }
    }

    /// Returns the value of `Access-Control-Allow-Origin` for the response to this request, or
    /// `None` if the page that sent the request may not read the response. Preflight requests have
    /// no value, because [`Cors`] responds to them.
    pub(crate) fn allowed_origin(&self, request: &Request) -> Option<HeaderValue> {
        if self.origins.is_empty() || *request.method() == Method::OPTIONS {
            return None;
        }
        let origin = request.headers().get(header::ORIGIN)?;
        self.allowed(Some(origin))
            .map(|allowed| allowed.value().clone())
    }

    /// Returns the CORS layer, or `None` if no page of another origin may read responses.
    pub(crate) fn cors(&self) -> Option<Cors> {
        (!self.origins.is_empty()).then(|| Cors::new(&self.origins))
    }

    /// Checks that the request names a host of this service. If the request writes, also checks
    /// that no page of another site sent it.
    ///
    /// # Errors
    /// Returns 400 `malformed-request` if the host is missing or malformed. Returns 421
    /// `unknown-host` if the service does not accept requests for the host. Returns 403
    /// `cross-site` if a page of another site sent the request.
    pub(crate) fn check(&self, request: &Request) -> Result<(), Problem> {
        let writes = !matches!(
            *request.method(),
            Method::GET | Method::HEAD | Method::OPTIONS
        );
        let (mut host, mut origin, mut is_foreign) = (None, None, false);
        for (name, value) in request.headers() {
            if name == header::HOST {
                if host.replace(value).is_some() {
                    return Err(malformed_host(
                        "the header Host is given twice; it must be given once",
                    ));
                }
            } else if writes && name == header::ORIGIN {
                // Refuse a request with two origins, because a browser never sends more than one.
                if origin.replace(value).is_some() {
                    return Err(cross_site(Some(value)));
                }
            } else if writes && name == SEC_FETCH_SITE {
                is_foreign |= value != "same-origin" && value != "none";
            }
        }
        let named = named_host(request, host)?;
        if origin.is_none()
            && !is_foreign
            && named.is_some()
            && named == self.usual_host.get().map(AsRef::as_ref)
        {
            return Ok(());
        }
        let authority = named
            .map(|named| self.check_host(named, request.uri()))
            .transpose()?;
        if origin.is_none() && !is_foreign {
            return Ok(());
        }
        let is_own = origin.is_none_or(|origin| self.is_own(origin, authority.as_ref()));
        if (is_own && !is_foreign) || self.allowed(origin).is_some() {
            Ok(())
        } else {
            Err(cross_site(origin))
        }
    }

    /// Parses the host that a request names, and checks that the service accepts requests for this
    /// host. Probes of health and metrics are accepted under any host. A monitoring system may name
    /// a node in any way, and the responses are no secret.
    fn check_host<'a>(&self, named: &'a [u8], uri: &Uri) -> Result<Authority<'a>, Problem> {
        let authority = str::from_utf8(named).ok().and_then(Authority::parse).ok_or_else(|| {
            let named = String::from_utf8_lossy(named);
            malformed_host(format!("the host {named:?} is invalid; it must be a name or an address, optionally with a port"))
        })?;
        if self.answers_for(authority.host()) {
            self.usual_host.get_or_init(|| named.into());
            Ok(authority)
        } else if is_probe(uri) {
            Ok(authority)
        } else {
            Err(unknown_host(&String::from_utf8_lossy(named)))
        }
    }

    fn answers_for(&self, host: Host<&str>) -> bool {
        host.is_address()
            || self.answers_any_host
            || host.is(&LOCALHOST)
            || self
                .machine
                .iter()
                .chain(&self.hosts)
                .any(|name| host.is(name.host()))
    }

    /// `true` if a page of this origin belongs to this service.
    fn is_own(&self, origin: &HeaderValue, authority: Option<&Authority<'_>>) -> bool {
        let Some(origin) = origin.to_str().ok().and_then(Origin::parse) else {
            return false;
        };
        authority.is_some_and(|authority| origin.is_at(authority))
            || self.hosts.iter().any(|name| origin.host().is(name.host()))
    }

    /// Returns the configured CORS origin that matches `origin`, if any. Pages of that origin may
    /// send writes from another site and read the responses.
    fn allowed(&self, origin: Option<&HeaderValue>) -> Option<&CorsOrigin> {
        self.origins
            .iter()
            .find(|allowed| allowed.is_any() || Some(allowed.value()) == origin)
    }
}

/// Returns the host that the request names, or `None` for an HTTP/1.0 request without a host.
fn named_host<'a>(
    request: &'a Request,
    host: Option<&'a HeaderValue>,
) -> Result<Option<&'a [u8]>, Problem> {
    match (request.uri().authority(), host, request.version()) {
        // Refuse a request whose `Host` header differs from its `:authority`. Otherwise, a proxy
        // might check one of them, and this service might use the other.
        (Some(authority), Some(host), Version::HTTP_2)
            if !host
                .as_bytes()
                .eq_ignore_ascii_case(authority.as_str().as_bytes()) =>
        {
            Err(malformed_host(
                "the header Host and :authority differ; they must be the same",
            ))
        }
        (_, None, Version::HTTP_11) => Err(malformed_host(
            "the header Host is missing; HTTP/1.1 needs it",
        )),
        (None, None, Version::HTTP_2) => Err(malformed_host(
            ":authority is missing; it must name the host",
        )),
        (Some(authority), ..) => Ok(Some(authority.as_str().as_bytes())),
        (None, host, _) => Ok(host.map(HeaderValue::as_bytes)),
    }
}

fn malformed_host(detail: impl Into<String>) -> Problem {
    Problem::new(Slug::MalformedRequest, detail).reason("host")
}

fn unknown_host(named: &str) -> Problem {
    let detail = format!(
        "{named} is not a host of this service; it accepts localhost, IP addresses, the name of its machine \
        and http.hosts"
    );
    Problem::new(Slug::UnknownHost, detail).reason("host")
}

fn cross_site(origin: Option<&HeaderValue>) -> Problem {
    let page = match origin {
        Some(origin) => format!("a page of {origin:?}"),
        None => "a page of another site".to_owned(),
    };
    let detail = format!(
        "the request was sent by {page}, which is neither this service's nor in http.cors_origins"
    );
    Problem::new(Slug::CrossSite, detail).reason("origin")
}

/// A host without a port: a name such as `ids.example.com`, or an IP address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(Host<String>);

impl HostName {
    /// Parses a host. Returns `None` if the text is not a host, or has a port.
    pub fn parse(text: &str) -> Option<Self> {
        // A colon separates a port, except within the brackets of an IPv6 address.
        let has_port = text.contains(':') && !text.ends_with(']');
        let host = Authority::parse(text)
            .filter(|_| text != "*" && !has_port)?
            .host();
        Some(Self(host.to_owned()))
    }

    /// Returns the parsed host.
    fn host(&self) -> &Host<String> {
        &self.0
    }
}

/// A host for which the service accepts requests, in addition to its built-in hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRule {
    /// `*`: any host.
    Any,
    /// This host.
    Name(HostName),
}

impl HostRule {
    /// Parses a host or `*`.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            Some(Self::Any)
        } else {
            HostName::parse(text).map(Self::Name)
        }
    }
}

/// A validated `host[:port]`.
///
/// Source: RFC 9110 section 7.2 and RFC 3986 section 3.2, without user information and with a
/// non-empty host.
#[derive(Debug, Clone, Copy)]
struct Authority<'a> {
    host: Host<&'a str>,
    port: Option<u16>,
}

/// A host: an IP address, or a name whose text is borrowed or owned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Host<S> {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    /// A name, without the final dot of a fully qualified name.
    Name(S),
}

impl<'a> Authority<'a> {
    /// Parses an authority. Returns `None` if the text is not one.
    fn parse(text: &'a str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                let port = if rest.is_empty() {
                    None
                } else {
                    Some(rest.strip_prefix(':')?)
                };
                (Host::V6(address.parse().ok()?), port)
            }
            None => {
                let (host, port) = match text.split_once(':') {
                    Some((host, port)) => (host, Some(port)),
                    None => (text, None),
                };
                (Host::of(host)?, port)
            }
        };
        // A colon without a port, as in "host:", is allowed and counts as no port.
        let port = match port {
            None | Some("") => None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            Some(_) => return None,
        };
        Some(Self { host, port })
    }

    /// Returns the host without the port.
    fn host(&self) -> Host<&'a str> {
        self.host
    }

    /// `true` if both authorities name the same host and port. `default_port` is used for an
    /// authority without a port.
    fn is(&self, other: &Authority<'_>, default_port: u16) -> bool {
        self.port.unwrap_or(default_port) == other.port.unwrap_or(default_port)
            && self.host.is(&other.host)
    }
}

impl<'a> Host<&'a str> {
    fn of(text: &'a str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(Self::V4(address));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let is_letter = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%".contains(&b);
        (!name.is_empty() && name.bytes().all(is_letter)).then_some(Self::Name(name))
    }

    /// `true` if the host is an IP address. DNS rebinding needs a domain, so a request for an IP
    /// address is safe.
    fn is_address(&self) -> bool {
        !matches!(self, Self::Name(_))
    }

    /// `true` if both are the same name or the same address.
    fn is<S: AsRef<str>>(&self, other: &Host<S>) -> bool {
        match (self, other) {
            (Self::V4(one), Host::V4(other)) => one == other,
            (Self::V6(one), Host::V6(other)) => one == other,
            (Self::Name(one), Host::Name(other)) => one.eq_ignore_ascii_case(other.as_ref()),
            _ => false,
        }
    }

    fn to_owned(self) -> Host<String> {
        match self {
            Self::V4(address) => Host::V4(address),
            Self::V6(address) => Host::V6(address),
            Self::Name(name) => Host::Name(name.to_owned()),
        }
    }
}

/// The header `Origin` of a request, such as `https://example.com:8443`. The value `null`, for a
/// page without an origin, does not parse.
struct Origin<'a> {
    authority: Authority<'a>,
    default_port: u16,
}

impl<'a> Origin<'a> {
    fn parse(text: &'a str) -> Option<Self> {
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

    /// `true` if the web page that sends the request was served from the host and port that the
    /// request names. The scheme is not compared, because a proxy may terminate TLS.
    fn is_at(&self, authority: &Authority<'_>) -> bool {
        self.authority.is(authority, self.default_port)
    }

    /// Returns the host that served the page, without the port.
    fn host(&self) -> Host<&'a str> {
        self.authority.host()
    }
}

/// An origin as a browser sends it, such as `https://example.com` or `http://localhost:3000`, or
/// `*` for every origin.
///
/// An origin has the scheme `http` or `https`, a lower-case host and an optional port. It has no
/// path, not even a final slash, and no default port, such as 443 for `https`. Browsers send
/// neither, so an origin with a path or a default port would never match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorsOrigin(HeaderValue);

impl CorsOrigin {
    /// Parses an origin or `*`. Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        let is_sent = |origin: Origin<'_>| {
            !text.ends_with(':') && origin.authority.port != Some(origin.default_port)
        };
        let is_origin = text == "*" || (is_lower && Origin::parse(text).is_some_and(is_sent));
        HeaderValue::from_str(text)
            .ok()
            .filter(|_| is_origin)
            .map(Self)
    }

    /// Returns the origin as the value of the header `Origin`.
    fn value(&self) -> &HeaderValue {
        &self.0
    }

    /// `true` if the origin is `*`.
    fn is_any(&self) -> bool {
        self.0 == "*"
    }
}

/// The time for which a browser may cache a preflight response.
const REMEMBERED: Duration = Duration::from_secs(3_600);

/// The request headers of this service that a page of another origin may set only if CORS permits
/// it.
const REQUEST_HEADERS: [HeaderName; 5] = [
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("x-request-id"),
];

/// The response headers that a page of another origin may read only if CORS permits it.
const ANSWER_HEADERS: HeaderValue = HeaderValue::from_static(
    "accept,location,retry-after,idempotency-replayed,idmint-count,idmint-test,idmint-warning,idmint-width,ratelimit,\
     ratelimit-policy,x-request-id",
);

/// Adds the headers with which a page of another origin may read a response. `allowed_origin` is
/// the value for the request: see [`HostPolicy::allowed_origin`].
pub(crate) fn allow_reading(headers: &mut HeaderMap, allowed_origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed_origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, ANSWER_HEADERS);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

/// The CORS layer, which responds to preflight requests.
#[derive(Debug, Clone)]
pub(crate) struct Cors(CorsLayer);

impl Cors {
    fn new(origins: &[CorsOrigin]) -> Self {
        let allowed = match origins.iter().any(CorsOrigin::is_any) {
            true => AllowOrigin::any(),
            false => AllowOrigin::list(origins.iter().map(|origin| origin.value().clone())),
        };
        let layer = CorsLayer::new()
            .allow_origin(allowed)
            .allow_methods([Method::GET, Method::HEAD, Method::POST])
            .allow_headers(REQUEST_HEADERS)
            .max_age(REMEMBERED);
        Self(layer)
    }

    /// Wraps a service with the CORS layer.
    pub(crate) fn around<S>(&self, service: S) -> cors::Cors<S> {
        self.0.layer(service)
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_host_has_neither_scheme_nor_port_nor_path() {
        for text in ["ids.example.com", "idmint", "10.0.0.5", "[::1]"] {
            assert!(HostName::parse(text).is_some(), "{text}");
        }
        for text in [
            "",
            "*",
            "idmint:8080",
            "idmint:",
            "[::1]:8080",
            "::1",
            "http://idmint",
            "idmint/",
            "two words",
        ] {
            assert_eq!(HostName::parse(text), None, "{text:?}");
        }
        assert_eq!(HostRule::parse("*"), Some(HostRule::Any));
    }

    #[test]
    fn an_authority_is_a_host_and_perhaps_a_port() {
        for (text, is_address) in [
            ("localhost", false),
            ("LOCALHOST:80", false),
            ("ids.example.com.", false),
            ("a_b~c%20", false),
            ("host:", false),
            ("2130706433", false), // 127.0.0.1 to a browser, a name to all other parsers
            ("127.0.0.1", true),
            ("127.0.0.1:65535", true),
            ("[::1]", true),
            ("[::ffff:10.0.0.1]:8080", true),
        ] {
            assert_eq!(
                Authority::parse(text).map(|read| read.host().is_address()),
                Some(is_address),
                "{text}"
            );
        }
        for text in [
            "",
            ":80",
            ".",
            "a b",
            "a:b",
            "a:65536",
            "a:+1",
            "a:1:2",
            "::1",
            "[::1",
            "[::1]80",
            "[localhost]",
            "[fe80::1%eth0]",
            "user@host",
            "a/b",
            "http://a",
            "a\"b",
            "é",
        ] {
            assert!(Authority::parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn two_authorities_are_one_place_if_host_and_port_are_the_same() {
        let read = |text| Authority::parse(text).expect("an authority");
        for (one, other, is_same) in [
            ("example.com", "EXAMPLE.com.", true),
            ("example.com", "example.com:80", true),
            ("example.com", "example.com:8080", false),
            ("example.com", "www.example.com", false),
            ("[::1]:80", "[0:0::1]", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("127.0.0.1", "localhost", false),
        ] {
            assert_eq!(read(one).is(&read(other), 80), is_same, "{one} {other}");
        }
    }

    #[test]
    fn an_origin_is_a_scheme_a_host_and_perhaps_a_port() {
        for text in [
            "*",
            "https://example.com",
            "http://localhost:3000",
            "http://[::1]:8080",
            "https://a:80",
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
            "https://a:443",
            "http://[::1]:80",
            "http://a:",
            "ftp://a",
            "null",
        ] {
            assert_eq!(CorsOrigin::parse(text), None, "{text:?}");
        }
    }
}
