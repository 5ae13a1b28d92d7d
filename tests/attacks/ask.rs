//! Sends requests of attackers in each protocol. An attacker either repeats its request as soon as
//! it has a response, or never reads a response.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::aim::{Aim, Protocol};
use super::attacker::{Attacker, COME_AGAIN};
use super::frames::{Field, bodiless};
use idmint_testing::http1::request;

/// A request, in a form that can be encoded for each protocol.
#[derive(Clone)]
pub(crate) struct Ask {
    method: &'static str,
    target: String,
    fields: &'static [(&'static str, &'static str)],
    body: String,
}

impl Ask {
    pub(crate) fn get(target: impl Into<String>) -> Ask {
        Ask {
            method: "GET",
            target: target.into(),
            fields: &[],
            body: String::new(),
        }
    }

    /// Creates a POST request without a body.
    pub(crate) fn post(target: &str) -> Ask {
        Ask {
            method: "POST",
            ..Ask::get(target)
        }
    }

    pub(crate) fn post_json(target: &str, body: String) -> Ask {
        Ask {
            fields: &[("content-type", "application/json")],
            body,
            ..Ask::post(target)
        }
    }

    /// Creates a POST request whose body has one text on each line. The response is requested in
    /// lines, too.
    pub(crate) fn post_lines(target: &str, body: String) -> Ask {
        Ask {
            fields: &[("content-type", "text/plain"), ("accept", "text/plain")],
            body,
            ..Ask::post(target)
        }
    }

    pub(crate) fn http1(&self) -> String {
        let fields: String = self
            .fields
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        request(
            &format!("{} {}", self.method, self.target),
            &fields,
            &self.body,
        )
    }

    fn http2(&self) -> hyper::Request<Full<Bytes>> {
        let mut request = hyper::Request::builder()
            .method(self.method)
            .uri(format!("http://localhost{}", self.target));
        for (name, value) in self.fields {
            request = request.header(*name, *value);
        }
        request
            .body(Full::from(self.body.clone()))
            .expect("a sound request")
    }

    /// Encodes the request as HTTP/2 frames of the stream `stream`.
    fn frames(&self, stream: u32) -> Vec<u8> {
        assert!(
            self.body.is_empty() && self.fields.is_empty(),
            "nothing is written by hand but what is needed"
        );
        bodiless(
            stream,
            if self.method == "GET" {
                Field::Get
            } else {
                Field::Post
            },
            &self.target,
        )
    }
}

/// Starts `callers` attackers. Each attacker sends the request `times` times at once, reads all
/// responses, and then repeats this.
pub(crate) fn again(aim: &Aim, callers: usize, ask: &Ask, times: usize) -> JoinSet<()> {
    match aim.protocol {
        Protocol::Http1 | Protocol::Tls => again_by_http1(aim, callers, ask, times),
        Protocol::Http2 => again_by_http2(aim, callers, ask, times),
    }
}

fn again_by_http1(aim: &Aim, callers: usize, ask: &Ask, times: usize) -> JoinSet<()> {
    let asks: Arc<str> = ask.http1().repeat(times).into();
    aim.attackers(callers, move |aim, number| {
        let asks = Arc::clone(&asks);
        async move {
            loop {
                let mut attacker = Attacker::connect_encrypted(&aim, number).await;
                while attacker.send(asks.as_bytes()).await {
                    attacker.deeds.requests.add(times);
                    for _ in 0..times {
                        if attacker.next_status().await.is_none() {
                            break;
                        }
                    }
                }
            }
        }
    })
}

fn again_by_http2(aim: &Aim, callers: usize, ask: &Ask, times: usize) -> JoinSet<()> {
    let ask = ask.clone();
    aim.attackers(callers, move |aim, number| {
        let ask = ask.clone();
        async move {
            loop {
                let attacker = Attacker::connect(&aim, number).await;
                ask_streams(attacker, &ask, times).await;
                sleep(COME_AGAIN).await;
            }
        }
    })
}

/// Sends the request on `times` streams at once. Repeats this until the server closes the
/// connection.
async fn ask_streams(mut attacker: Attacker, ask: &Ask, times: usize) {
    let stream = std::mem::replace(&mut attacker.stream, Box::new(tokio::io::empty()));
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let Ok((mut sender, connection)) = handshake else {
        return;
    };
    let deeds = Arc::clone(&attacker.deeds);
    let asking = async move {
        loop {
            let mut answers = Vec::with_capacity(times);
            for _ in 0..times {
                if sender.ready().await.is_err() {
                    return;
                }
                deeds.requests.add(1);
                answers.push(sender.send_request(ask.http2()));
            }
            for answer in answers {
                let Ok(answer) = answer.await else { return };
                let (status, mut body) = (answer.status().as_u16(), answer.into_body());
                while let Some(Ok(frame)) = body.frame().await {
                    deeds.received.add(frame.data_ref().map_or(0, Bytes::len));
                }
                deeds.answered(status);
            }
        }
    };
    tokio::select! {
        _ = connection => {}
        () = asking => {}
    }
    attacker.deeds.cut.add(1);
}

/// Starts `callers` attackers that never read. Each sends the request `times` times at once,
/// through a small receive buffer. If the server closes the connection, the attacker reconnects.
pub(crate) fn unread(aim: &Aim, callers: usize, ask: &Ask, times: usize) -> JoinSet<()> {
    /// The size of the kernel's receive buffer in bytes. The buffer is small, so that most of the
    /// response stays on the server.
    const RECEIVE_LEN: u32 = 2_304;
    let asks: Arc<[u8]> = match aim.protocol {
        Protocol::Http1 | Protocol::Tls => ask.http1().repeat(times).into_bytes().into(),
        Protocol::Http2 => (0..times)
            .flat_map(|at| ask.frames(u32::try_from(2 * at + 1).unwrap()))
            .collect(),
    };
    aim.attackers(callers, move |aim, number| {
        let asks = Arc::clone(&asks);
        async move {
            loop {
                let mut attacker =
                    Attacker::connect_encrypted_with(&aim, number, Some(RECEIVE_LEN)).await;
                if aim.protocol == Protocol::Http2 {
                    attacker.begin_http2(65_535).await;
                }
                let is_sent = attacker.send(&asks).await;
                attacker.deeds.requests.add(if is_sent { times } else { 0 });
                // Write something that is not a request, to find out whether the connection is
                // still open.
                while attacker.send_nothing(&aim).await {
                    sleep(COME_AGAIN).await;
                }
            }
        }
    })
}
