//! Stands between a command and the service, and decides what becomes of each request and each answer.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::client::Caller;

/// A port at which requests are taken. Its thread ends with the tests.
pub(crate) struct Gate {
    address: SocketAddr,
}

/// What becomes of the request of that number, from 1: the answer, or `None` for a connection that breaks.
pub(crate) trait Fate: FnMut(usize, &[u8]) -> Option<Vec<u8>> + Send + 'static {}
impl<F: FnMut(usize, &[u8]) -> Option<Vec<u8>> + Send + 'static> Fate for F {}

impl Gate {
    pub(crate) fn open(fate: impl Fate) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let fate = Arc::new(Mutex::new((0, fate)));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, fate) = (stream.unwrap(), Arc::clone(&fate));
                std::thread::spawn(move || serve(&stream, &fate));
            }
        });
        Gate { address }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

fn serve(mut stream: &TcpStream, fate: &Mutex<(usize, impl Fate)>) {
    let mut input = BufReader::new(stream);
    while let Some(request) = request(&mut input) {
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

/// A whole request with its body; `None` once the caller has gone.
fn request(input: &mut impl BufRead) -> Option<Vec<u8>> {
    let (mut request, mut body_len) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        request.extend_from_slice(line.as_bytes());
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            body_len = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; body_len];
    input.read_exact(&mut body).ok()?;
    Some([request, body].concat())
}

/// The answer of the service there.
pub(crate) fn forward(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut caller = Caller::connect(address);
    caller.send(request);
    let answer = caller.answer().expect("a whole answer");
    [answer.head.into_bytes(), answer.body].concat()
}

/// A refusal that may pass, after so many milliseconds.
pub(crate) fn not_now(status: u16, retry_after_ms: u64) -> Vec<u8> {
    let body = format!(
        r#"{{"type":"/problems/overloaded","detail":"the gate says {status}","retry_after_ms":{retry_after_ms}}}"#
    );
    format!("HTTP/1.1 {status} Not Now\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
