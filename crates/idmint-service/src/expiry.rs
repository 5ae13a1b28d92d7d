//! The expiry times of the certificates, certificate revocation lists and tokens that this node
//! uses.

use std::sync::PoisonError;
use std::time::Duration;

use super::service::Service;
use idmint_core::named;
use idmint_core::time::{UnixNanos, UnixTime};

const DAY_SECONDS: i128 = 86_400;

/// Warnings about a credential begin this long before the credential expires.
const WARNED: Duration = Duration::from_hours(30 * 24);

named! {
    fn label;
    /// A kind of credential that expires.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ExpiryKind {
        /// The certificate of this node, or a certificate in the chain from it up to its
        /// certificate authority.
        Certificate = "certificate",
        /// The certificate of an authority that this node trusts.
        Authority = "authority",
        /// A certificate revocation list.
        RevocationList = "revocation_list",
        /// A token with which a caller authenticates.
        Token = "token",
    }
}

impl ExpiryKind {
    fn noun(self) -> &'static str {
        match self {
            ExpiryKind::Certificate => "the certificate in",
            ExpiryKind::Authority => "an authority in",
            ExpiryKind::RevocationList => "the revocation list in",
            ExpiryKind::Token => "the token",
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            ExpiryKind::Certificate => "replace it and its key",
            ExpiryKind::Authority => {
                "add its successor, replace the certificates that it signed, and remove it"
            }
            ExpiryKind::RevocationList => "replace it (an outdated list is still applied)",
            ExpiryKind::Token => "replace it with `idmint token new`, or remove its entry",
        }
    }
}

/// The expiry of one credential.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expiry {
    /// The kind of the credential.
    pub kind: ExpiryKind,
    /// The configuration key that names the credential's file, or the name of the token.
    pub name: String,
    /// The first instant at which the credential is no longer valid.
    pub at: UnixTime,
}

impl Expiry {
    /// Returns the time of expiry as text, to the second.
    pub fn end_text(&self) -> String {
        self.at.to_text(0).unwrap_or_else(|| self.at.to_string())
    }

    /// `true` if the credential has expired at `now`.
    pub fn has_passed(&self, now: UnixNanos) -> bool {
        self.at <= now.into()
    }

    /// `true` if the credential is a certificate that has expired at `now`. Connections that use an
    /// expired certificate fail.
    pub fn is_expired_certificate(&self, now: UnixNanos) -> bool {
        let is_certificate = matches!(self.kind, ExpiryKind::Certificate | ExpiryKind::Authority);
        is_certificate && self.has_passed(now)
    }

    /// `true` if the credential expires within 30 days of `now`, or has expired.
    pub(super) fn is_near(&self, now: UnixNanos) -> bool {
        self.at <= now.after(WARNED).into()
    }

    /// Returns a warning, including the remedy, if the credential expires within 30 days of `now`
    /// or has expired. Otherwise returns `None`.
    pub fn warning(&self, now: UnixNanos) -> Option<String> {
        if !self.is_near(now) {
            return None;
        }
        let end = match (self.at.seconds() - UnixTime::from(now).seconds()) / DAY_SECONDS {
            _ if self.has_passed(now) => "expired".to_owned(),
            0 => "expires within a day,".to_owned(),
            1 => "expires in 1 day,".to_owned(),
            days => format!("expires in {days} days,"),
        };
        let (noun, name, remedy) = (self.kind.noun(), &self.name, self.kind.remedy());
        let at = self.end_text();
        // A renewed file for etcd takes effect without a reload, because each new connection to
        // etcd reads the file again.
        let reload = match name.starts_with("etcd.") {
            true => "",
            false => ", then send SIGHUP",
        };
        Some(format!("{noun} {name} {end} at {at}: {remedy}{reload}"))
    }
}

impl Service {
    /// Replaces the known expiry times of all credentials whose files are named in one section of
    /// the configuration, such as `etcd`.
    pub fn set_expiries(&self, section: &'static str, mut expiries: Vec<Expiry>) {
        // Keep only the earliest expiry of each kind and name, because a metric has only one value
        // for them. The list is sorted by kind, name and time, so the earliest expiry comes first.
        expiries.sort();
        expiries.dedup_by(|later, first| (later.kind, &later.name) == (first.kind, &first.name));
        let mut all = self.expiries.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(section, expiries);
    }

    /// Returns the expiry of every credential. If several credentials have the same kind and name,
    /// returns only the one that expires first.
    pub fn expiries(&self) -> Vec<Expiry> {
        let all = self.expiries.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().flatten().cloned().collect()
    }
}
