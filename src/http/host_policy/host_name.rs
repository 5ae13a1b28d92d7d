//! The names that this service may be called by.

use super::authority::{Authority, Host};

/// A host without a port, `ids.example.com`: a name or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(Host<String>);

impl HostName {
    /// Reads a host; `None` for what is none, or has a port.
    pub fn parse(text: &str) -> Option<Self> {
        // A port would stand behind a colon, and an address of many colons stands in brackets.
        let has_port = text.contains(':') && !text.ends_with(']');
        let host = Authority::parse(text)
            .filter(|_| text != "*" && !has_port)?
            .host();
        Some(Self(host.to_owned()))
    }

    /// The host itself.
    pub(super) fn host(&self) -> &Host<String> {
        &self.0
    }
}

/// Which hosts a service answers for, besides those it always does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRule {
    /// `*`: whatever callers name.
    Any,
    /// One more.
    Name(HostName),
}

impl HostRule {
    /// Reads a host or `*`.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            Some(Self::Any)
        } else {
            HostName::parse(text).map(Self::Name)
        }
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
}
