//! A host and perhaps a port, as requests and origins name them.

use std::net::{Ipv4Addr, Ipv6Addr};

/// `host[:port]`, checked.
///
/// Source: RFC 9110 section 7.2, RFC 3986 section 3.2; without user information, and never with an empty host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Authority<'a> {
    host: Host<&'a str>,
    port: Option<u16>,
}

/// A host, with its name borrowed or kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host<S> {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    /// Without the dot that may end a full name.
    Name(S),
}

impl<'a> Authority<'a> {
    /// Reads an authority; `None` if it is none.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
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
        // "host:" is allowed, and means no port.
        let port = match port {
            None | Some("") => None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            Some(_) => return None,
        };
        Some(Self { host, port })
    }

    /// The host, whatever the port.
    pub(super) fn host(&self) -> Host<&'a str> {
        self.host
    }

    /// Both are the same place, where `default_port` is meant if no port is named.
    pub(super) fn is(&self, other: &Authority<'_>, default_port: u16) -> bool {
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

    /// It is an address, which no page can have made to lead here.
    pub(super) fn is_address(&self) -> bool {
        !matches!(self, Self::Name(_))
    }

    /// Both are the same name or the same address.
    pub(super) fn is<S: AsRef<str>>(&self, other: &Host<S>) -> bool {
        match (self, other) {
            (Self::V4(one), Host::V4(other)) => one == other,
            (Self::V6(one), Host::V6(other)) => one == other,
            (Self::Name(one), Host::Name(other)) => one.eq_ignore_ascii_case(other.as_ref()),
            _ => false,
        }
    }

    pub(super) fn to_owned(self) -> Host<String> {
        match self {
            Self::V4(address) => Host::V4(address),
            Self::V6(address) => Host::V6(address),
            Self::Name(name) => Host::Name(name.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_a_host_and_perhaps_a_port() {
        for (text, is_address) in [
            ("localhost", false),
            ("LOCALHOST:80", false),
            ("ids.example.com.", false),
            ("a_b~c%20", false),
            ("host:", false),
            ("2130706433", false), // 127.0.0.1 to a browser, a name to everybody else
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
}
