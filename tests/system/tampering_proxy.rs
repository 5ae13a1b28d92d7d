//! A proxy that changes responses, to verify that a checker notices the change.

use std::io::{BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde_json::Value;

use idmint_testing::http1::{Answer, Client, read_request};

/// A proxy on a free port. It forwards one request per connection, and changes the response.
pub(crate) struct TamperingProxy {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TamperingProxy {
    pub(crate) fn through(service: SocketAddr, change: fn(Answer) -> Answer) -> TamperingProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                // Relaxed is sufficient. The connection that wakes this thread is opened after the
                // flag was stored.
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                let stream = stream.unwrap();
                std::thread::spawn(move || answer_one(stream, service, change));
            }
        });
        TamperingProxy {
            address,
            is_over,
            thread: Some(thread),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for TamperingProxy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
        let _ = self.thread.take().expect("ended once").join();
    }
}

fn answer_one(mut stream: TcpStream, service: SocketAddr, change: fn(Answer) -> Answer) {
    let Some(request) = read_request(&mut BufReader::new(&stream)) else {
        return;
    };
    let Answer { head, body, .. } = change(Client::connect(service).exchange(request));
    let kept = head.lines().filter(|line| {
        let name = line.split(':').next().unwrap_or_default();
        !name.eq_ignore_ascii_case("content-length")
            && !name.eq_ignore_ascii_case("connection")
            && !line.is_empty()
    });
    let mut head: String = kept.flat_map(|line| [line, "\r\n"]).collect();
    head += &format!(
        "content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // Ignore an error, because the client may have closed the connection.
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(&body));
    let _ = stream.shutdown(Shutdown::Write);
}

/// The changes that this proxy can make to a response.
pub(crate) trait Tamper {
    /// Returns the response without the member `name`, at every level of its JSON.
    fn without_member(self, name: &str) -> Answer;
    /// Returns the response with the status `to` if its status is `from`.
    fn with_status(self, from: u16, to: u16) -> Answer;
    fn without_header(self, name: &str) -> Answer;
    fn with_media_type(self, media_type: &str) -> Answer;
}

impl Tamper for Answer {
    fn without_member(self, name: &str) -> Answer {
        let Ok(mut json) = serde_json::from_slice::<Value>(&self.body) else {
            return self;
        };
        remove(&mut json, name);
        Answer {
            body: json.to_string().into_bytes(),
            ..self
        }
    }

    fn with_status(self, from: u16, to: u16) -> Answer {
        let head = self
            .head
            .replacen(&format!(" {from} "), &format!(" {to} "), 1);
        Answer { head, ..self }
    }

    fn without_header(self, name: &str) -> Answer {
        let kept = self
            .head
            .lines()
            .filter(|line| !line.to_lowercase().starts_with(&format!("{name}:")));
        Answer {
            head: kept.flat_map(|line| [line, "\r\n"]).collect(),
            ..self
        }
    }

    fn with_media_type(self, media_type: &str) -> Answer {
        let mut answer = self.without_header("content-type");
        answer.head.truncate(answer.head.trim_end().len());
        answer.head += &format!("\r\ncontent-type: {media_type}\r\n\r\n");
        answer
    }
}

fn remove(json: &mut Value, name: &str) {
    match json {
        Value::Array(items) => items.iter_mut().for_each(|item| remove(item, name)),
        Value::Object(members) => {
            members.remove(name);
            members.values_mut().for_each(|member| remove(member, name));
        }
        _ => {}
    }
}
