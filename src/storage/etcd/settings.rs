//! What it takes to connect to an etcd.

use std::fmt;
use std::path::PathBuf;

/// An etcd, and what of it belongs to this fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdSettings {
    /// Where its members answer, at least one.
    pub endpoints: Vec<EtcdEndpoint>,
    /// The fleet.
    pub namespace: Namespace,
    /// Who asks, if etcd wants to know that.
    pub access: Option<EtcdAccess>,
    /// The bytes at which a member takes no more, unless it tells that itself.
    pub quota: u64,
    /// How the connection is kept from others; `None` in the clear.
    pub tls: Option<EtcdTls>,
}

/// A user of etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdAccess {
    /// The name.
    pub user: String,
    /// The file whose first line is the password.
    pub password_file: PathBuf,
}

/// The files of TLS, as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdTls {
    /// The authorities whose certificates etcd may show.
    pub ca: PathBuf,
    /// The certificate to show, and its private key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Where a member of etcd answers: `http://127.0.0.1:2379`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdEndpoint(String);

impl EtcdEndpoint {
    /// Reads `http://host:port` or `https://host:port`; `None` for anything else.
    pub fn parse(text: &str) -> Option<EtcdEndpoint> {
        let authority = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"))?;
        let (host, port) = authority.rsplit_once(':')?;
        let name = host
            .strip_prefix('[')
            .map_or(Some(host), |address| address.strip_suffix(']'))?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_address = |byte: u8| byte.is_ascii_hexdigit() || byte == b':' || byte == b'.';
        let is_host = !name.is_empty()
            && name.bytes().all(|byte| {
                if name == host {
                    is_name(byte)
                } else {
                    is_address(byte)
                }
            });
        let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
        (is_host && is_port).then(|| EtcdEndpoint(text.to_owned()))
    }

    /// The endpoint as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it speaks TLS.
    pub fn is_tls(&self) -> bool {
        self.0.starts_with("https://")
    }
}

impl fmt::Display for EtcdEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a fleet: nodes of one namespace of one etcd never mint the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace(String);

impl Namespace {
    /// Reads 1 to 63 of a-z, 0-9 and -, the first of them no -; `None` for anything else.
    pub fn parse(text: &str) -> Option<Namespace> {
        let is_letter =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_namespace =
            (1..=63).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(is_letter);
        is_namespace.then(|| Namespace(text.to_owned()))
    }

    /// What all keys of the fleet begin with.
    pub fn key_prefix(&self) -> String {
        format!("/idmint/v1/{}/", self.0)
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Namespace("default".to_owned())
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
