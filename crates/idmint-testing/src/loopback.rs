//! Loopback addresses for processes that do not report their port, or that are restarted at the
//! same address.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Returns an address on loopback whose port is free.
///
/// The IP address is random (127.0.0.0/8), so the port stays free while the process that listens on
/// it is down. On 127.0.0.1, another test could take the port meanwhile.
///
/// # Panics
/// Panics if the port cannot be bound.
pub fn address_of_its_own() -> SocketAddr {
    let [b, c, d] = rand::random::<[u8; 3]>().map(|byte| byte.clamp(1, 254));
    TcpListener::bind((Ipv4Addr::new(127, b, c, d), 0))
        .and_then(|free| free.local_addr())
        .unwrap()
}
