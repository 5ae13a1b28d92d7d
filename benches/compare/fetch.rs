//! Sends a single request on a new connection.

use std::net::SocketAddr;

use idmint_testing::http1::{Client, request};

/// Sends a request, and returns the body of the response. The status of the response must be 200.
///
/// `method_and_target` has the form `POST /path`, and `headers` consists of complete lines.
///
/// # Errors
/// Returns a message with the request and the reason if the request fails or the response has
/// another status.
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

/// Returns the request line that mints `count` ids of a format.
pub(crate) fn batch(format: &str, count: u32) -> String {
    format!("POST /ids/{format}?count={count}")
}
