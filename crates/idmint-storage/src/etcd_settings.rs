//! The settings for a connection to etcd.

use std::fmt;
use std::path::PathBuf;

/// The settings for an etcd cluster, and the namespace in it that belongs to this fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdSettings {
    /// The endpoints of the cluster's members. Never empty.
    pub endpoints: Vec<EtcdEndpoint>,
    /// The namespace of the fleet.
    pub namespace: Namespace,
    /// The user name and password, if etcd requires authentication.
    pub access: Option<EtcdAccess>,
    /// The storage quota in bytes to assume for an etcd member that does not report its quota. A
    /// member refuses writes once its database reaches the quota.
    pub quota: u64,
    /// The files for TLS, or `None` to connect without TLS.
    pub tls: Option<EtcdTls>,
}

/// The credentials of an etcd user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdAccess {
    /// The user name.
    pub user: String,
    /// The file whose first line is the password.
    pub password_file: PathBuf,
}

/// The files for TLS, all in PEM format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdTls {
    /// The certificate authorities that may sign etcd's certificate.
    pub ca: PathBuf,
    /// The client certificate and its private key, if etcd requires them.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// The URL of an etcd member, such as `http://127.0.0.1:2379`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdEndpoint(String);

impl EtcdEndpoint {
    /// Parses `http://host:port` or `https://host:port`. Returns `None` for any other text.
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

    /// Returns the URL exactly as it was configured.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `true` if the endpoint uses TLS.
    pub fn is_tls(&self) -> bool {
        self.0.starts_with("https://")
    }
}

impl fmt::Display for EtcdEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The namespace in etcd, which is also the name of a fleet. Nodes in one namespace of one etcd
/// never mint the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace(String);

impl Namespace {
    /// Parses a name of 1 to 63 characters from `a-z`, `0-9` and `-` that does not start with `-`.
    /// Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Namespace> {
        let is_letter =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_namespace =
            (1..=63).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(is_letter);
        is_namespace.then(|| Namespace(text.to_owned()))
    }

    /// Returns the prefix of all etcd keys that belong to the fleet.
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
