//! Settings of the HTTP server.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::value::{self, between, mebibytes, some_between, some_whole, whole};
use idmint_http::{CorsOrigin, HostRule, Scope};
use idmint_net::Limits;

/// The section `http`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpConfig {
    /// The address at which the service listens. With port 0 the system chooses a port. Default:
    /// 127.0.0.1:8080.
    #[serde(deserialize_with = "address")]
    pub listen: SocketAddr,
    /// A second address, at which the service answers only requests for metrics and health checks.
    /// Default: none.
    #[serde(deserialize_with = "some_address")]
    pub admin_listen: Option<SocketAddr>,
    /// The maximum number of open connections: 1 to 1 000 000. Default: derived from `memory_max`.
    #[serde(deserialize_with = "some_whole::<_, _, 1, 1_000_000>")]
    pub connections_max: Option<usize>,
    /// The maximum number of open connections of one peer: 1 to 1 000 000. Loopback addresses and
    /// trusted proxies are exempt. Default: half of `connections_max`.
    #[serde(deserialize_with = "some_whole::<_, _, 1, 1_000_000>")]
    pub connections_per_peer: Option<usize>,
    /// The maximum age of a connection: 1 s to 30 days, randomly varied by up to a tenth. An older
    /// connection is closed after its next response. Default: no limit.
    #[serde(deserialize_with = "some_between::<_, 1_000, 2_592_000_000>")]
    pub connection_age_max: Option<Duration>,
    /// The maximum number of requests in flight: 2 to 1 000 000. At most half of them may be
    /// requests that need long work. Default: 4 096.
    #[serde(deserialize_with = "whole::<_, _, 2, 1_000_000>")]
    pub in_flight_max: usize,
    /// The maximum memory for the connections, requests and responses of all callers, in bytes: 32
    /// MiB to 1 TiB. Default: 128 MiB.
    #[serde(deserialize_with = "mebibytes::<_, 32, 1_048_576>")]
    pub memory_max: usize,
    /// The trusted proxies. A request through such a proxy names its caller in `X-Forwarded-For`.
    /// An item is an address, or a network such as `10.0.0.0/8`. Default: none.
    #[serde(deserialize_with = "networks")]
    pub trusted_proxies: Vec<IpNet>,
    /// The timeout for the head of a request: 1 ms to 1 h. Default: 5 s.
    #[serde(deserialize_with = "between::<_, 1, 3_600_000>")]
    pub header_timeout: Duration,
    /// The timeout for the body of a request: 1 ms to 1 h. Default: 10 s.
    #[serde(deserialize_with = "between::<_, 1, 3_600_000>")]
    pub body_timeout: Duration,
    /// The timeout for a connection without a request in progress: 1 ms to 1 h. Default: 75 s.
    #[serde(deserialize_with = "between::<_, 1, 3_600_000>")]
    pub idle_timeout: Duration,
    /// The time for which the service still accepts requests after the signal to shut down: 0 s to
    /// 1 h. It already reports that it is not ready, so that load balancers stop using it. Default:
    /// 0 s.
    #[serde(deserialize_with = "between::<_, 0, 3_600_000>")]
    pub drain_delay: Duration,
    /// The host names to which requests may be addressed, besides localhost, IP addresses and the
    /// name of the machine. Default: none.
    #[serde(deserialize_with = "hosts")]
    pub hosts: Vec<HostRule>,
    /// The web origins whose pages may call the service from a browser. Default: none.
    #[serde(deserialize_with = "origins")]
    pub cors_origins: Vec<CorsOrigin>,
    /// `true` if the service offers a web page at `/` with which users can decode and mint ids.
    /// Default: `true`.
    pub page: bool,
    /// The file that lists the tokens of callers. Default: none. Without tokens and without
    /// `tls.client_ca`, every caller may do everything.
    pub tokens: Option<PathBuf>,
    /// The maximum number of requests per second for each caller: 1 to 1 000 000. Default: no
    /// limit.
    #[serde(deserialize_with = "rate")]
    pub rate: Option<NonZeroU32>,
    /// The section `http.tls`.
    pub tls: TlsConfig,
}

/// The section `http.tls`. TLS is off by default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsConfig {
    /// The PEM file of the service's certificate, followed by the certificates of its issuers up to
    /// the authority.
    pub certificate: Option<PathBuf>,
    /// The PEM file of the private key of `certificate`.
    pub key: Option<PathBuf>,
    /// The PEM file of the certificate authorities that sign client certificates. The file may also
    /// contain the certificate revocation lists of these authorities.
    pub client_ca: Option<PathBuf>,
    /// The scopes (permissions) of client certificates. The key is a DNS name or URI in the
    /// certificate.
    #[serde(deserialize_with = "client_scopes")]
    pub client_scopes: BTreeMap<String, BTreeSet<Scope>>,
}

impl TlsConfig {
    /// Checks that the TLS settings are complete. An error consists of the setting to change and
    /// the reason.
    pub(in crate::server) fn check(&self) -> Result<(), (&'static str, &'static str)> {
        match (&self.certificate, &self.key, &self.client_ca) {
            (Some(_), None, _) => Err((
                "http.tls",
                "tls.certificate is set without tls.key; set tls.key to the private key of \
                    the certificate",
            )),
            (None, Some(_), _) => Err((
                "http.tls",
                "tls.key is set without tls.certificate; set tls.certificate to the certificate of the key",
            )),
            (None, None, Some(_)) => Err((
                "http.tls",
                "tls.client_ca is set without tls.certificate and tls.key; set both",
            )),
            (.., None) if !self.client_scopes.is_empty() => Err((
                "http.tls",
                "tls.client_scopes is set without tls.client_ca; set tls.client_ca to the authority of the \
                 client certificates",
            )),
            (.., Some(_)) if self.client_scopes.is_empty() => Err((
                "http.tls",
                "tls.client_ca is set without tls.client_scopes, so no certificate would permit anything; \
                 list the names of clients there",
            )),
            _ => Ok(()),
        }
    }
}

impl HttpConfig {
    /// Returns the maximum number of open connections.
    pub fn connections_max(&self) -> usize {
        self.connections_max
            .unwrap_or_else(|| Limits::connections_for(self.memory_max))
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            admin_listen: None,
            connections_max: None,
            connections_per_peer: None,
            connection_age_max: None,
            in_flight_max: 4_096,
            memory_max: 128 * 1024 * 1024,
            trusted_proxies: Vec::new(),
            header_timeout: Duration::from_secs(5),
            body_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            drain_delay: Duration::ZERO,
            hosts: Vec::new(),
            cors_origins: Vec::new(),
            page: true,
            tokens: None,
            rate: None,
            tls: TlsConfig::default(),
        }
    }
}

impl HttpConfig {
    /// Returns the URL scheme of the service.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.tls.certificate.is_some() {
            "https"
        } else {
            "http"
        }
    }

    /// Returns `true` if callers need a token or a certificate.
    #[must_use]
    pub fn asks_callers(&self) -> bool {
        self.tokens.is_some() || self.tls.client_ca.is_some()
    }

    /// Returns `true` if other machines can reach the service.
    #[must_use]
    pub fn is_public(&self) -> bool {
        self.public_address().is_some()
    }

    /// Returns the first of `listen` and `admin_listen` that is not a loopback address, together
    /// with its key. Other machines can reach the service at this address.
    #[must_use]
    pub fn public_address(&self) -> Option<(&'static str, SocketAddr)> {
        // The address `::ffff:127.0.0.1` is a loopback address in IPv6 notation. `is_loopback`
        // recognizes it only in its canonical form `127.0.0.1`.
        let is_public = |address: &SocketAddr| !address.ip().to_canonical().is_loopback();
        let listen = Some(self.listen).filter(is_public);
        let admin_listen = self.admin_listen.filter(is_public);
        let admin_listen = admin_listen.map(|address| ("http.admin_listen", address));
        listen
            .map(|address| ("http.listen", address))
            .or(admin_listen)
    }
}

fn hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<HostRule>, D::Error> {
    let expected = "a host such as \"ids.example.com\" (no port), or \"*\"";
    value::distinct_texts(deserializer, expected, HostRule::parse)
}

fn origins<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<CorsOrigin>, D::Error> {
    let expected = "an origin such as \"https://example.com\" (no path, no default port), or \"*\"";
    value::distinct_texts(deserializer, expected, CorsOrigin::parse)
}

fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroU32>, D::Error> {
    some_whole::<_, u32, 1, 1_000_000>(deserializer).map(|rate| rate.and_then(NonZeroU32::new))
}

fn client_scopes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, BTreeSet<Scope>>, D::Error> {
    let by_name = BTreeMap::<String, BTreeSet<Scope>>::deserialize(deserializer)?;
    let read = |(name, scopes): (String, BTreeSet<Scope>)| {
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            let expected = "a DNS name such as \"billing.example.com\" or a URI such as \"spiffe://example.com/billing\"";
            return Err(D::Error::custom(format_args!(
                "{name:?} must be {expected}"
            )));
        }
        if scopes.is_empty() {
            return Err(D::Error::custom(format_args!(
                "{name:?} must have one of mint, ledger, decode, metrics, import and number"
            )));
        }
        // The name of a client certificate is a URI if it contains a colon. Any other name is a
        // host name, in which upper and lower case do not matter.
        Ok((
            if name.contains(':') {
                name
            } else {
                name.to_ascii_lowercase()
            },
            scopes,
        ))
    };
    by_name.into_iter().map(read).collect()
}

/// Parses the addresses of proxies: networks such as `10.0.0.0/8`, and single addresses such as
/// `10.1.2.3`.
fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let expected = "an address such as \"10.1.2.3\" or a network such as \"10.0.0.0/8\"";
    value::distinct_texts(deserializer, expected, |text| {
        let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
        text.parse().ok().or_else(address)
    })
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let expected = "an IP address and a port such as \"127.0.0.1:8080\" or \"[::1]:8080\"";
    value::read_text(deserializer, expected, |text| text.parse().ok())
}

fn some_address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    address(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listening_on(listen: &str) -> HttpConfig {
        HttpConfig {
            listen: listen.parse().expect("an address"),
            ..HttpConfig::default()
        }
    }

    #[test]
    fn only_loopback_addresses_are_not_public() {
        for address in [
            "127.0.0.1:8080",
            "127.9.9.9:0",
            "[::1]:8080",
            "[::ffff:127.0.0.1]:8080",
        ] {
            assert!(!listening_on(address).is_public(), "{address}");
        }
        for address in [
            "0.0.0.0:8080",
            "[::]:8080",
            "10.0.0.1:80",
            "[::ffff:10.0.0.1]:80",
        ] {
            assert!(listening_on(address).is_public(), "{address}");
        }
    }

    #[test]
    fn a_public_admin_address_makes_the_service_public() {
        let admin_listen: Option<SocketAddr> = "0.0.0.0:9090".parse().ok();
        let http = HttpConfig {
            admin_listen,
            ..HttpConfig::default()
        };
        let named = admin_listen.map(|address| ("http.admin_listen", address));
        assert!(http.is_public() && http.public_address() == named);
    }

    #[test]
    fn a_network_contains_its_addresses() {
        let network = |text: &str| {
            let networks = networks(toml::Value::from(vec![text])).ok()?;
            networks.into_iter().next()
        };
        let contains = |text: &str, address: [u8; 4]| {
            network(text).is_some_and(|network| network.contains(&IpAddr::from(address)))
        };
        assert!(contains("10.0.0.0/8", [10, 255, 0, 1]));
        assert!(contains("10.1.2.3", [10, 1, 2, 3]) && !contains("10.1.2.3", [10, 1, 2, 4]));
        assert!(network("2001:db8::/32").is_some() && !contains("2001:db8::/32", [10, 0, 0, 1]));
        for text in ["", "10.0.0.0/33", "proxy.example.com", "10.0.0"] {
            assert_eq!(network(text), None, "{text:?}");
        }
    }
}
