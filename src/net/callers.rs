//! Who calls: the other end of a connection, or whom a trusted proxy names.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, Uri};
use ipnet::IpNet;

use crate::http::{Auditor, is_probe};
use crate::service::{Charge, Load, Payer, Shed};

const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// What callers may take together, and who is believed to speak for others.
#[derive(Clone, Default)]
pub struct Callers {
    load: Load,
    trusted_proxies: Arc<[IpNet]>,
    auditor: Option<Auditor>,
    is_test: bool,
}

impl Callers {
    /// These bounds; `X-Forwarded-For` is believed from these networks.
    pub fn new(load: Load, trusted_proxies: impl IntoIterator<Item = IpNet>) -> Self {
        Self {
            load,
            trusted_proxies: trusted_proxies.into_iter().collect(),
            auditor: None,
            is_test: false,
        }
    }

    /// The same; what they do is told to this auditor.
    #[must_use]
    pub fn audited_by(self, auditor: Option<Auditor>) -> Self {
        Self { auditor, ..self }
    }

    /// The same; those who are turned away are told whether the service is one to test against.
    #[must_use]
    pub fn of_test(self, is_test: bool) -> Self {
        Self { is_test, ..self }
    }

    /// Whether the service is one to test against.
    pub(super) fn is_test(&self) -> bool {
        self.is_test
    }

    /// Whom to tell what callers do.
    pub(super) fn auditor(&self) -> Option<&Auditor> {
        self.auditor.as_ref()
    }

    /// What callers may take.
    pub(super) fn load(&self) -> &Load {
        &self.load
    }

    /// Who pays for a request, if it is not the other end of its connection: the caller whom a trusted proxy names, or the
    /// reserve for those who ask how the service is.
    pub(super) fn other_payer(
        &self,
        peer: IpAddr,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<Payer> {
        let forwarded = if self.is_trusted(peer) {
            self.forwarded(headers)
        } else {
            None
        };
        if is_probe(uri) {
            return Some(self.load.reserve.payer(forwarded.unwrap_or(peer)));
        }
        forwarded.map(|caller| self.load.memory.payer(caller))
    }

    /// Where a request comes from: the other end of its connection, or whom a trusted proxy names.
    pub(super) fn address_of(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let forwarded = if self.is_trusted(peer) {
            self.forwarded(headers)
        } else {
            None
        };
        forwarded.unwrap_or(peer)
    }

    /// Pays for a connection: out of what is kept for newcomers, if the peer finds too little of all other memory.
    ///
    /// # Errors
    /// [`Shed::Memory`]: nothing was paid.
    pub(super) fn pay_for_connection(
        &self,
        peer: IpAddr,
        payer: &Payer,
        bytes: usize,
    ) -> Result<Charge, Shed> {
        payer
            .try_pay(bytes)
            .map_or_else(|| self.load.door.payer(peer).pay_now(bytes), Ok)
    }

    /// Whether this address may have any number of connections: it is this machine, or speaks for many.
    pub(super) fn is_exempt(&self, address: IpAddr) -> bool {
        address.to_canonical().is_loopback() || self.is_trusted(address)
    }

    /// Whether connections from this address may speak for others.
    fn is_trusted(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted_proxies
            .iter()
            .any(|network| network.contains(&address))
    }

    /// The caller that proxies name: the last one that is none of them. What stands before it, anybody may have written.
    fn forwarded(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let fields = headers.get_all(X_FORWARDED_FOR).iter().rev();
        let names = fields
            .filter_map(|field| field.to_str().ok())
            .flat_map(|field| field.rsplit(','));
        let mut addresses = names.map_while(|name| name.trim().parse().ok());
        addresses.find(|address| !self.is_trusted(*address))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn forwarded(fields: &[&str]) -> Option<String> {
        let trusted =
            ["10.0.0.0/8", "127.0.0.1/32"].map(|network| network.parse().expect("a network"));
        let callers = Callers::new(Load::default(), trusted);
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(
                X_FORWARDED_FOR,
                HeaderValue::from_str(field).expect("visible ASCII"),
            );
        }
        callers
            .forwarded(&headers)
            .map(|address| address.to_string())
    }

    #[test]
    fn the_last_address_that_is_no_proxy_is_the_caller() {
        for (fields, caller) in [
            ([].as_slice(), None),
            (&["192.0.2.1"], Some("192.0.2.1")),
            (&["198.51.100.7, 192.0.2.1, 10.1.1.1"], Some("192.0.2.1")),
            (
                &["198.51.100.7", "192.0.2.1,10.1.1.1", "10.2.2.2"],
                Some("192.0.2.1"),
            ),
            (&["2001:db8::1"], Some("2001:db8::1")),
            (&["192.0.2.1, unknown"], None),
            (&["10.1.1.1"], None),
        ] {
            assert_eq!(forwarded(fields).as_deref(), caller, "{fields:?}");
        }
    }

    #[test]
    fn who_comes_new_has_a_connection_when_all_else_is_sold() {
        const LEN: usize = 8 * 1024;
        let callers = Callers::default();
        let (others, mut sold) = ((1..9).map(|host| [10, 0, 0, host].into()), Vec::new());
        for payer in others.map(|other: IpAddr| callers.load.memory.payer(other)) {
            sold.extend(std::iter::from_fn(|| payer.try_pay(LEN)));
        }
        for newcomer in [[192, 0, 2, 1], [192, 0, 2, 2]].map(IpAddr::from) {
            let payer = callers.load.memory.payer(newcomer);
            assert!(payer.try_pay(LEN).is_none(), "all is sold");
            let paid =
                std::iter::from_fn(|| callers.pay_for_connection(newcomer, &payer, LEN).ok());
            sold.extend(paid.take(1_000));
        }
        assert_eq!(
            sold.len(),
            (112 * 1024 * 1024) / LEN + 2 * 32,
            "a few for each"
        );
        assert_eq!(callers.load.counts.of(Shed::Memory), 2);
    }

    #[test]
    fn only_a_trusted_proxy_speaks_for_others() {
        let callers = Callers::new(Load::default(), ["10.0.0.0/8".parse().expect("a network")]);
        let headers = HeaderMap::from_iter([(
            X_FORWARDED_FOR.parse().expect("a name"),
            HeaderValue::from_static("192.0.2.1"),
        )]);
        let payer = callers
            .other_payer([10, 0, 0, 1].into(), &Uri::from_static("/decode"), &headers)
            .expect("a trusted proxy");
        let _paid = [28, 4].map(|mib| payer.pay_now(mib * 1024 * 1024).expect("its share"));
        assert!(
            callers
                .load()
                .memory
                .payer([192, 0, 2, 1].into())
                .pay_now(1)
                .is_err(),
            "that is the caller"
        );
        assert!(
            callers
                .other_payer(
                    [192, 0, 2, 9].into(),
                    &Uri::from_static("/decode"),
                    &headers
                )
                .is_none(),
            "nobody believes this one"
        );
        let probe = callers.other_payer(
            [192, 0, 2, 1].into(),
            &Uri::from_static("/metrics"),
            &HeaderMap::new(),
        );
        assert!(
            probe.expect("the reserve").pay_now(1).is_ok(),
            "it has nothing left of its share, and may ask"
        );
    }
}
