//! One request on a connection of its own, for answers that are looked into.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The body of an answer that must be 200.
///
/// # Errors
/// Says what else came.
pub(crate) fn ask(address: SocketAddr, request: &str, headers: &str) -> Result<Vec<u8>, String> {
    let asked = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(stream, "{request} HTTP/1.1\r\nhost: compare\r\nconnection: close\r\n{headers}\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        std::io::Result::Ok(answer)
    };
    let answer = asked().map_err(|error| format!("{request}: {error}"))?;
    let head_len = answer.windows(4).position(|window| window == b"\r\n\r\n").ok_or("an answer without a head")? + 4;
    let head = String::from_utf8_lossy(&answer[..head_len]);
    if !head.starts_with("HTTP/1.1 200") || head.contains("transfer-encoding") {
        return Err(format!("{request}: {head}"));
    }
    Ok(answer[head_len..].to_vec())
}
