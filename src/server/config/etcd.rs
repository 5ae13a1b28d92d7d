//! Settings of the etcd that the nodes of a fleet share, and of the slots that this etcd assigns to
//! nodes.

use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer};

use super::value::{self, mebibytes};
use idmint_storage::{
    EtcdAccess, EtcdEndpoint, EtcdSettings, EtcdTls, Namespace, SlotRange, SlotShare,
};

/// The section `etcd`. It has no effect unless `storage.engine` is `"etcd"`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EtcdConfig {
    /// The client addresses of the etcd members. Default: none.
    #[serde(deserialize_with = "endpoints")]
    pub endpoints: Vec<EtcdEndpoint>,
    /// The namespace of the fleet. Nodes in one namespace never mint the same id. Default:
    /// `default`.
    #[serde(deserialize_with = "namespace")]
    pub namespace: Namespace,
    /// The user name with which to authenticate. Default: none.
    pub user: Option<String>,
    /// The file whose first line is the user's password. Default: none.
    pub password_file: Option<PathBuf>,
    /// The PEM file of the certificate authorities that sign etcd's certificates. Default: none,
    /// which means that connections to etcd are not encrypted.
    pub ca: Option<PathBuf>,
    /// The PEM file of the client certificate that this node presents to etcd. Default: none.
    pub certificate: Option<PathBuf>,
    /// The PEM file of the private key that belongs to `certificate`. Default: none.
    pub key: Option<PathBuf>,
    /// The value of `--quota-backend-bytes` of the etcd members, in bytes: 16 MiB to 1 TiB. A
    /// member accepts no more writes when its database has reached this size. Default: 2 GiB, which
    /// is also the default of etcd.
    #[serde(deserialize_with = "mebibytes::<_, 16, 1_048_576>")]
    pub quota: usize,
}

impl Default for EtcdConfig {
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            namespace: Namespace::default(),
            user: None,
            password_file: None,
            ca: None,
            certificate: None,
            key: None,
            quota: 2048 * 1024 * 1024,
        }
    }
}

impl EtcdConfig {
    /// Checks that the etcd settings are consistent. An error consists of the setting to change and
    /// the reason.
    pub(super) fn check(&self, is_fleet: bool) -> Result<(), (&'static str, &'static str)> {
        self.settings(is_fleet).map(drop)
    }

    /// Returns the settings for connections to etcd, which were already checked when the
    /// configuration was loaded.
    ///
    /// # Panics
    /// Panics if the configuration was not loaded, or `storage.engine` is not `"etcd"`.
    #[must_use]
    pub fn checked(&self) -> EtcdSettings {
        let settings = self
            .settings(true)
            .expect("checked when the configuration was loaded");
        settings.expect("there are endpoints in a fleet, checked when the configuration was loaded")
    }

    /// Returns the settings for connections to etcd. Returns `None` if no endpoints are configured
    /// and the node is not part of a fleet.
    fn settings(
        &self,
        is_fleet: bool,
    ) -> Result<Option<EtcdSettings>, (&'static str, &'static str)> {
        let access = match (&self.user, &self.password_file) {
            (None, None) => None,
            (Some(user), Some(password_file)) => Some(EtcdAccess {
                user: user.clone(),
                password_file: password_file.clone(),
            }),
            (Some(_), None) => {
                return Err(("etcd.password_file", "must be set if etcd.user is set"));
            }
            (None, Some(_)) => {
                return Err(("etcd.user", "must be set if etcd.password_file is set"));
            }
        };
        let identity = match (&self.certificate, &self.key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
            (Some(_), None) => return Err(("etcd.key", "must be set if etcd.certificate is set")),
            (None, Some(_)) => return Err(("etcd.certificate", "must be set if etcd.key is set")),
        };
        let tls = match (&self.ca, identity) {
            (None, None) => None,
            (Some(ca), identity) => Some(EtcdTls {
                ca: ca.clone(),
                identity,
            }),
            (None, Some(_)) => return Err(("etcd.ca", "must be set if etcd.certificate is set")),
        };
        if self.endpoints.is_empty() {
            let missing = "must have at least one member of etcd, such as \"http://127.0.0.1:2379\", if \
                storage.engine = \"etcd\"";
            return if is_fleet {
                Err(("etcd.endpoints", missing))
            } else {
                Ok(None)
            };
        }
        if self
            .endpoints
            .iter()
            .any(|endpoint| endpoint.is_tls() != tls.is_some())
        {
            let problem = "must all begin with https:// if etcd.ca is set, else all with http://";
            return Err(("etcd.endpoints", problem));
        }
        let endpoints = self.endpoints.clone();
        let quota = u64::try_from(self.quota).expect("at most 1 TiB");
        Ok(Some(EtcdSettings {
            endpoints,
            namespace: self.namespace.clone(),
            access,
            quota,
            tls,
        }))
    }
}

/// The section `cluster`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClusterConfig {
    /// The range of slots that this etcd assigns to nodes, such as `0-15`. Needed if several
    /// regions share a namespace and each region has its own etcd. All slots are below
    /// `worker.slots`. Default: all slots.
    #[serde(deserialize_with = "some_slots")]
    pub slots: Option<SlotRange>,
}

impl ClusterConfig {
    /// Checks that all slots in the configured range are below `worker.slots`, and that the node is
    /// part of a fleet.
    pub(super) fn check(&self, slots: u32, is_fleet: bool) -> Result<(), String> {
        let Some(range) = self.slots else {
            return Ok(());
        };
        if !is_fleet {
            return Err("is only for storage.engine = \"etcd\": set that engine, or leave cluster.slots out".to_owned());
        }
        match NonZeroU32::new(slots).and_then(|slots| SlotShare::part(slots, range)) {
            Some(_) => Ok(()),
            None => Err(format!(
                "{range} goes beyond worker.slots = {slots}: slots count from 0, and worker.slots is how many all regions \
                 have together"
            )),
        }
    }
}

fn some_slots<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SlotRange>, D::Error> {
    let expected = "the first and the last slot such as \"0-15\", the first not above the last";
    value::read_text(deserializer, expected, SlotRange::parse).map(Some)
}

fn endpoints<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<EtcdEndpoint>, D::Error> {
    let expected =
        "scheme, host and port such as \"http://127.0.0.1:2379\" or \"https://etcd-0.etcd:2379\"";
    value::distinct_texts(deserializer, expected, EtcdEndpoint::parse)
}

fn namespace<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Namespace, D::Error> {
    value::read_text(
        deserializer,
        "1 to 63 of a-z, 0-9 and -, first a letter or a digit",
        Namespace::parse,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, is_fleet: bool) -> Result<(), &'static str> {
        let config: EtcdConfig = toml::from_str(text).expect("each setting is sound");
        config.check(is_fleet).map_err(|(key, _)| key)
    }

    #[test]
    fn settings_that_do_not_go_together_are_refused() {
        for (text, key) in [
            ("", "etcd.endpoints"),
            (
                "endpoints = ['http://a:1', 'https://b:1']",
                "etcd.endpoints",
            ),
            ("endpoints = ['https://a:1']", "etcd.endpoints"),
            (
                "endpoints = ['http://a:1']\nca = 'ca.pem'",
                "etcd.endpoints",
            ),
            (
                "endpoints = ['https://a:1']\nca = 'ca.pem'\ncertificate = 'c.pem'",
                "etcd.key",
            ),
            (
                "endpoints = ['https://a:1']\nca = 'ca.pem'\nkey = 'c.key'",
                "etcd.certificate",
            ),
            (
                "endpoints = ['https://a:1']\ncertificate = 'c.pem'\nkey = 'c.key'",
                "etcd.ca",
            ),
            (
                "endpoints = ['http://a:1']\nuser = 'idmint'",
                "etcd.password_file",
            ),
            (
                "endpoints = ['http://a:1']\npassword_file = 'password'",
                "etcd.user",
            ),
        ] {
            assert_eq!(check(text, true), Err(key), "{text}");
        }
        for text in [
            "endpoints = ['http://127.0.0.1:2379', 'http://[::1]:2379']",
            "endpoints = ['https://etcd-0.etcd:2379']\nca = 'ca.pem'",
            "endpoints = ['https://a:1']\nca = 'ca.pem'\ncertificate = 'c.pem'\nkey = 'c.key'\nuser = 'u'\npassword_file = 'p'",
        ] {
            assert_eq!(check(text, true), Ok(()), "{text}");
        }
        assert_eq!(check("", false), Ok(()));
        assert_eq!(
            check("user = 'idmint'", false),
            Err("etcd.password_file"),
            "a slip, with or without effect"
        );
    }

    #[test]
    fn a_share_of_slots_lies_within_them_and_is_that_of_an_etcd() {
        let check = |text: &str, slots, is_fleet| {
            let config: ClusterConfig = toml::from_str(text).expect("a range");
            config.check(slots, is_fleet)
        };
        for (share, slots) in [
            ("", 1),
            ("slots = '0-15'", 32),
            ("slots = '16-31'", 32),
            ("slots = '0-0'", 1),
        ] {
            assert_eq!(check(share, slots, true), Ok(()), "{share}");
        }
        let beyond = check("slots = '16-32'", 32, true).expect_err("there is no slot 32");
        assert!(
            beyond.contains("16-32 goes beyond worker.slots = 32"),
            "{beyond}"
        );
        let alone = check("slots = '0-15'", 32, false).expect_err("nobody leases");
        assert!(alone.contains("storage.engine = \"etcd\""), "{alone}");
        assert_eq!(check("", 1, false), Ok(()));
        for wrong in ["''", "'15-0'", "'3'", "'0-15,20-31'", "3"] {
            let refused = toml::from_str::<ClusterConfig>(&format!("slots = {wrong}"))
                .expect_err("no range")
                .to_string();
            assert!(
                refused.contains("such as \"0-15\", the first not above the last"),
                "{refused}"
            );
        }
    }

    #[test]
    fn what_is_no_endpoint_or_namespace_is_refused_where_it_is_read() {
        for text in [
            "endpoints = ['127.0.0.1:2379']",
            "endpoints = ['http://127.0.0.1']",
            "endpoints = ['http://127.0.0.1:2379/']",
            "endpoints = ['http://user@a:2379']",
            "endpoints = ['http://:2379']",
            "endpoints = ['http://a:0']",
            "endpoints = ['http://a:2379', 'http://a:2379']",
            "namespace = ''",
            "namespace = 'Fleet'",
            "namespace = 'a/b'",
            "namespace = '-a'",
        ] {
            assert!(toml::from_str::<EtcdConfig>(text).is_err(), "{text}");
        }
    }
}
