//! A proxy between a command and the service. The test decides for each request whether it reaches
//! the service, and whether its response reaches the command.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use idmint_testing::http1::{Client, read_request};

/// The port of the proxy. Its thread runs until the test process ends.
pub(crate) struct FaultyProxy {
    address: SocketAddr,
}

/// A function that handles a request, given the number of the request (from 1) and its bytes.
/// Returns the response, or `None` to break the connection.
pub(crate) trait Fate: FnMut(usize, &[u8]) -> Option<Vec<u8>> + Send + 'static {}
impl<F: FnMut(usize, &[u8]) -> Option<Vec<u8>> + Send + 'static> Fate for F {}

impl FaultyProxy {
    pub(crate) fn start(fate: impl Fate) -> FaultyProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let fate = Arc::new(Mutex::new((0, fate)));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, fate) = (stream.unwrap(), Arc::clone(&fate));
                std::thread::spawn(move || serve(&stream, &fate));
            }
        });
        FaultyProxy { address }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

fn serve(mut stream: &TcpStream, fate: &Mutex<(usize, impl Fate)>) {
    let mut input = BufReader::new(stream);
    while let Some(request) = read_request(&mut input) {
        let answer = {
            let (number, fate) = &mut *fate.lock().unwrap();
            *number += 1;
            fate(*number, &request)
        };
        let Some(answer) = answer else { return };
        if stream.write_all(&answer).is_err() {
            return;
        }
    }
}

/// Sends a request to the service at `address`, and returns its response.
pub(crate) fn forward(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    Client::connect(address).exchange(request).to_bytes()
}

/// Returns a response that asks the client to retry after this number of milliseconds.
pub(crate) fn retry_later(status: u16, retry_after_ms: u64) -> Vec<u8> {
    let body = format!(
        r#"{{"type":"/problems/overloaded","detail":"the proxy says {status}","retry_after_ms":{retry_after_ms}}}"#
    );
    format!(
        "HTTP/1.1 {status} Not Now\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
