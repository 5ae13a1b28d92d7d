//! Finds the address of a caller: the peer of its connection, or the client address that a trusted
//! proxy reports.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::http::HeaderMap;
use ipnet::IpNet;

use idmint_service::{BudgetOwner, Load, MemoryReservation, Shed};

const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// The resource limits of all callers, and the proxies that are trusted to report the addresses of
/// their clients.
#[derive(Clone, Default)]
pub struct Callers {
    load: Load,
    trusted_proxies: Arc<[IpNet]>,
    is_test: bool,
}

impl Callers {
    /// Returns the settings of all callers: their resource limits, and the networks of the trusted
    /// proxies. `X-Forwarded-For` is read only in requests from these networks.
    pub fn new(load: Load, trusted_proxies: impl IntoIterator<Item = IpNet>) -> Self {
        Self {
            load,
            trusted_proxies: trusted_proxies.into_iter().collect(),
            is_test: false,
        }
    }

    /// Sets whether refusals of connections have the header `Idmint-Test`, which marks the responses
    /// of a test service.
    #[must_use]
    pub fn of_test(self, is_test: bool) -> Self {
        Self { is_test, ..self }
    }

    pub(super) fn is_test(&self) -> bool {
        self.is_test
    }

    /// Returns the resource limits of all callers.
    pub(super) fn load(&self) -> &Load {
        &self.load
    }

    /// Returns the owner of the memory budget for a request, or `None` if the owner is the
    /// connection's peer. A health probe uses a separate budget. A request through a trusted proxy
    /// uses the budget of the client that the proxy reports.
    pub(super) fn other_owner(
        &self,
        peer: IpAddr,
        is_probe: bool,
        headers: &HeaderMap,
    ) -> Option<BudgetOwner> {
        let forwarded = if self.is_trusted(peer) {
            self.forwarded(headers)
        } else {
            None
        };
        if is_probe {
            return Some(self.load.reserve.owner(forwarded.unwrap_or(peer)));
        }
        forwarded.map(|caller| self.load.memory.owner(caller))
    }

    /// Returns the address of a request's caller: the peer of its connection, or the client address
    /// that a trusted proxy reports.
    pub(super) fn address_of(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let forwarded = if self.is_trusted(peer) {
            self.forwarded(headers)
        } else {
            None
        };
        forwarded.unwrap_or(peer)
    }

    /// Reserves memory for a connection. If too little of the main budget is free, uses the memory
    /// that is set aside for new connections.
    ///
    /// # Errors
    /// Returns [`Shed::Memory`] if too little memory is free. No memory is reserved then.
    pub(super) fn pay_for_connection(
        &self,
        peer: IpAddr,
        owner: &BudgetOwner,
        bytes: usize,
    ) -> Result<MemoryReservation, Shed> {
        owner
            .try_reserve(bytes)
            .map_or_else(|| self.load.door.owner(peer).reserve_now(bytes), Ok)
    }

    /// `true` if the limit of connections per peer does not apply to this address, because it is a
    /// trusted proxy or a loopback address.
    pub(super) fn is_exempt(&self, address: IpAddr) -> bool {
        address.to_canonical().is_loopback() || self.is_trusted(address)
    }

    /// `true` if this address is a trusted proxy, so that its `X-Forwarded-For` is read.
    fn is_trusted(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted_proxies
            .iter()
            .any(|network| network.contains(&address))
    }

    /// Returns the caller that the proxies report: the last address in `X-Forwarded-For` that is
    /// not a trusted proxy. Earlier addresses are ignored, because they may be forged.
    ///
    /// Returns `None` if all addresses are trusted proxies. Also returns `None` if an entry that is
    /// not an address comes after the caller's address.
    fn forwarded(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let fields = headers.get_all(X_FORWARDED_FOR).iter().rev();
        let names = fields.flat_map(|field| field.as_bytes().rsplit(|byte| *byte == b','));
        let mut addresses = names.map_while(|name| address_in(str::from_utf8(name).ok()?.trim()));
        addresses.find(|address| !self.is_trusted(*address))
    }
}

/// Returns the address in an entry of `X-Forwarded-For`. Some proxies, such as Azure's gateway, add
/// a port or brackets to the address.
fn address_in(name: &str) -> Option<IpAddr> {
    let bracketed = || name.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let with_port = || Some(name.parse::<SocketAddr>().ok()?.ip());
    let bare = name.parse().ok();
    bare.or_else(with_port).or_else(bracketed)
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
                HeaderValue::from_bytes(field.as_bytes()).expect("no control characters"),
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
            (&["198.51.100.7, 192.0.2.1:1234"], Some("192.0.2.1")),
            (&["[2001:db8::1]:1234, 10.1.1.1:80"], Some("2001:db8::1")),
            (&["[2001:db8::1]"], Some("2001:db8::1")),
            (&["192.0.2.1, 10.1.1.1:port"], None),
            (&["192.0.2.1, [10.1.1.1"], None),
            (&["10.1.1.1"], None),
            // A caller can forge entries, but cannot hide its real address, which the proxy
            // appends.
            (&["ÿ, 192.0.2.1"], Some("192.0.2.1")),
            (&["198.51.100.7", "ÿ, 192.0.2.1"], Some("192.0.2.1")),
            (&["198.51.100.7", "ÿ"], None),
        ] {
            assert_eq!(forwarded(fields).as_deref(), caller, "{fields:?}");
        }
    }

    #[test]
    fn who_comes_new_has_a_connection_when_all_else_is_sold() {
        const LEN: usize = 8 * 1024;
        let callers = Callers::default();
        let (others, mut sold) = ((1..9).map(|host| [10, 0, 0, host].into()), Vec::new());
        for owner in others.map(|other: IpAddr| callers.load.memory.owner(other)) {
            sold.extend(std::iter::from_fn(|| owner.try_reserve(LEN)));
        }
        for newcomer in [[192, 0, 2, 1], [192, 0, 2, 2]].map(IpAddr::from) {
            let owner = callers.load.memory.owner(newcomer);
            assert!(owner.try_reserve(LEN).is_none(), "all is sold");
            let reserved =
                std::iter::from_fn(|| callers.pay_for_connection(newcomer, &owner, LEN).ok());
            sold.extend(reserved.take(1_000));
        }
        assert_eq!(
            sold.len(),
            (112 * 1024 * 1024) / LEN + 2 * 64,
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
        let owner = callers
            .other_owner([10, 0, 0, 1].into(), false, &headers)
            .expect("a trusted proxy");
        let _paid = [28, 4].map(|mib| owner.reserve_now(mib * 1024 * 1024).expect("its share"));
        assert!(
            callers
                .load()
                .memory
                .owner([192, 0, 2, 1].into())
                .reserve_now(1)
                .is_err(),
            "that is the caller"
        );
        assert!(
            callers
                .other_owner([192, 0, 2, 9].into(), false, &headers)
                .is_none(),
            "nobody believes this one"
        );
        let probe = callers.other_owner([192, 0, 2, 1].into(), true, &HeaderMap::new());
        assert!(
            probe.expect("the reserve").reserve_now(1).is_ok(),
            "it has nothing left of its share, and may ask"
        );
    }
}
