//! One request on a connection of its own, for answers that are looked into.

use std::net::SocketAddr;

use crate::harness::http1::{Client, request};

/// The body of an answer that must be 200. `method_and_target` is `POST /path`, `headers` are whole lines.
///
/// # Errors
/// Says what else came.
pub(crate) fn fetch(
    address: SocketAddr,
    method_and_target: &str,
    headers: &str,
) -> Result<Vec<u8>, String> {
    let failed = |cause: &dyn std::fmt::Display| format!("{method_and_target}: {cause}");
    let mut client = Client::try_connect(address).map_err(|error| failed(&error))?;
    let answer = client
        .try_exchange(request(method_and_target, headers, ""))
        .map_err(|error| failed(&error))?;
    if answer.status == 200 {
        Ok(answer.body)
    } else {
        Err(failed(&answer.head))
    }
}

/// A request for so many ids of a format.
pub(crate) fn batch(format: &str, count: u32) -> String {
    format!("POST /ids/{format}?count={count}")
}
