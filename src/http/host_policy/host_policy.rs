//! Which hosts this service answers for, and which pages may write to it.

use std::net::SocketAddr;
use std::sync::OnceLock;

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, Version, header};

use super::authority::{Authority, Host};
use super::cors::Cors;
use super::host_name::{HostName, HostRule};
use super::origin::{CorsOrigin, Origin};
use crate::http::answer::{Problem, Slug};

/// Which page a browser sends a request for, by how far it is from here.
/// Source: Fetch Metadata Request Headers, <https://www.w3.org/TR/fetch-metadata/>.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The name of every machine for itself.
const LOCALHOST: Host<&str> = Host::Name("localhost");

/// Which hosts this service answers for, and which pages may write to it.
///
/// Answered for are `localhost`, every IP address, the name of this machine and what is configured: a page that has its own
/// name point here is refused with it. Health and metrics are told under any name. What changes nothing (GET, HEAD,
/// OPTIONS) is answered to any page, whose browser keeps it from reading the answer; the rest only to pages of this
/// service and of the origins that are configured. A caller that is no browser names no page, and passes.
#[derive(Debug, Default)]
pub struct HostPolicy {
    /// Where the service listens, by which scheme, if it says so.
    address: Option<(&'static str, SocketAddr)>,
    /// The service has no page of its own.
    is_without_page: bool,
    /// The name of this machine, if it has one.
    machine: Option<HostName>,
    /// Every host is answered for.
    answers_any_host: bool,
    hosts: Vec<HostName>,
    origins: Vec<CorsOrigin>,
    /// The first host that was answered for, as it was written. Nearly every caller writes the same, and to compare it costs a
    /// mint less than to read it.
    usual_host: OnceLock<Box<[u8]>>,
}

impl HostPolicy {
    /// The policy of a service on a machine of this name, as the settings say.
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

    /// The same of a service that listens at this address, for URLs of this scheme.
    pub fn at(self, scheme: &'static str, address: SocketAddr) -> Self {
        Self {
            address: Some((scheme, address)),
            ..self
        }
    }

    /// The same of a service that has a page for people with a browser, or none.
    pub fn with_page(self, has_page: bool) -> Self {
        Self {
            is_without_page: !has_page,
            ..self
        }
    }

    pub(in crate::http) fn has_page(&self) -> bool {
        !self.is_without_page
    }

    pub(in crate::http) fn address(&self) -> Option<(&'static str, SocketAddr)> {
        self.address
    }

    /// What tells browsers which pages may read answers; `None` if none may.
    pub(in crate::http) fn cors(&self) -> Option<Cors> {
        (!self.origins.is_empty()).then(|| Cors::new(&self.origins))
    }

    /// Whether the request is for this service, and from no page that may not write.
    ///
    /// # Errors
    /// 400 `malformed-request` without one good host, 421 `unknown-host`, 403 `cross-site`.
    pub(in crate::http) fn check(&self, request: &Request) -> Result<(), Problem> {
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
                // Several are no origin that a browser sends.
                is_foreign |= origin.replace(value).is_some();
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
            .map(|named| self.check_host(named, request.uri().path()))
            .transpose()?;
        if origin.is_none() && !is_foreign {
            return Ok(());
        }
        let is_own = origin.is_none_or(|origin| self.is_own(origin, authority.as_ref()));
        if (is_own && !is_foreign) || self.is_allowed(origin) {
            Ok(())
        } else {
            Err(cross_site(origin))
        }
    }

    /// The host of this text, which must be one of this service, unless anybody may ask for this path.
    fn check_host<'a>(&self, named: &'a [u8], path: &str) -> Result<Authority<'a>, Problem> {
        let authority = str::from_utf8(named).ok().and_then(Authority::parse).ok_or_else(|| {
            let named = String::from_utf8_lossy(named);
            malformed_host(format!("the host {named:?} is none; it must be a name or an address, and perhaps a port"))
        })?;
        if self.answers_for(authority.host()) {
            self.usual_host.get_or_init(|| named.into());
            Ok(authority)
        } else if is_told_to_anybody(path) {
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

    /// Whether a page of this origin is one of this service.
    fn is_own(&self, origin: &HeaderValue, authority: Option<&Authority<'_>>) -> bool {
        let Some(origin) = origin.to_str().ok().and_then(Origin::parse) else {
            return false;
        };
        authority.is_some_and(|authority| origin.is_at(authority))
            || self.hosts.iter().any(|name| origin.host().is(name.host()))
    }

    /// Whether pages of this origin are allowed to write from elsewhere.
    fn is_allowed(&self, origin: Option<&HeaderValue>) -> bool {
        self.origins
            .iter()
            .any(|allowed| allowed.is_any() || Some(allowed.value()) == origin)
    }
}

/// The host that the request names; `None` in HTTP/1.0, which need not name one.
fn named_host<'a>(
    request: &'a Request,
    host: Option<&'a HeaderValue>,
) -> Result<Option<&'a [u8]>, Problem> {
    match (request.uri().authority(), host, request.version()) {
        // Else two proxies on the way could each read another host.
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

/// Probes and scrapers name a node as they found it, and what they are told is no secret.
fn is_told_to_anybody(path: &str) -> bool {
    path == "/metrics" || path.starts_with("/health/")
}

fn malformed_host(detail: impl Into<String>) -> Problem {
    Problem::new(Slug::MalformedRequest, detail).reason("host")
}

fn unknown_host(named: &str) -> Problem {
    let detail = format!(
        "{named} is no host of this service; it answers for localhost, IP addresses, the name of its machine \
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
