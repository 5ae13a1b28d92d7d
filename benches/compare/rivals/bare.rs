//! Servers that do the least possible work of a Rust HTTP server. They use hyper or axum on one
//! thread, and send a constant response.
//!
//! This program can also run as one of these servers:
//! - `compare serve-hyper LENGTH [flush]`
//! - `compare serve-axum LENGTH`

use std::convert::Infallible;
use std::env;
use std::net::Ipv4Addr;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use axum::routing::post;
use axum::serve::ListenerExt;
use bytes::Bytes;
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::process::Signal;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

use super::Target;
use crate::cpu_pinning::{CpuPinning, Side};
use crate::process::Process;

/// A kind of server that this program can run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Hyper,
    /// hyper. The responses to requests that have arrived together are sent with a single write.
    HyperFlush,
    Axum,
}

/// A running server.
pub(crate) struct Bare {
    _process: Process,
    target: Target,
}

impl Bare {
    /// Starts a server whose responses have `body_len` bytes.
    ///
    /// # Errors
    /// Returns the reason if the server does not run.
    pub(crate) fn start(pinning: &CpuPinning, kind: Kind, body_len: usize) -> Result<Self, String> {
        let program = env::current_exe().map_err(|error| error.to_string())?;
        let mut command = pinning.command(Side::Server, program);
        command
            .arg(if matches!(kind, Kind::Axum) {
                "serve-axum"
            } else {
                "serve-hyper"
            })
            .arg(body_len.to_string());
        command.args(matches!(kind, Kind::HyperFlush).then_some("flush"));
        let mut process = Process::start(command, Signal::KILL)?;
        let target = Target {
            address: process.address()?,
            pid: process.pid(),
        };
        Ok(Self {
            _process: process,
            target,
        })
    }

    pub(crate) fn target(&self) -> Target {
        self.target
    }
}

/// Runs a server if the arguments of this program name one. Does not return in that case.
pub(crate) fn serve_if_asked() {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (kind, len) = match words[..] {
        ["serve-hyper", len] => (Kind::Hyper, len),
        ["serve-hyper", len, "flush"] => (Kind::HyperFlush, len),
        ["serve-axum", len] => (Kind::Axum, len),
        _ => return,
    };
    let body = Bytes::from(vec![b'1'; len.parse().expect("a length")]);
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a thread");
    runtime.block_on(async {
        // Accept connections on the worker thread of the runtime, which also handles them.
        let served = tokio::spawn(async move {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
                .await
                .expect("a port");
            println!(
                "{}",
                listener
                    .local_addr()
                    .expect("a bound socket has an address")
            );
            match kind {
                Kind::Axum => axum(listener, body).await,
                Kind::Hyper => hyper(listener, body, false).await,
                Kind::HyperFlush => hyper(listener, body, true).await,
            }
        });
        served.await.expect("it serves until it is ended");
    });
}

async fn hyper(listener: TcpListener, body: Bytes, flush: bool) {
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        let body = body.clone();
        let constant = service_fn(move |_| {
            let answer = Response::builder()
                .header(CONTENT_TYPE, "application/json")
                .body(Full::new(body.clone()));
            async { Ok::<_, Infallible>(answer.expect("a sound header")) }
        });
        let mut http = http1::Builder::new();
        http.pipeline_flush(flush);
        tokio::spawn(http.serve_connection(TokioIo::new(stream), constant));
    }
}

async fn axum(listener: TcpListener, body: Bytes) {
    let constant = || async { ([(CONTENT_TYPE, "application/json")], body) };
    let router = Router::new().route("/ids/snowflake", post(constant));
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).expect("a socket"));
    axum::serve(listener, router)
        .await
        .expect("it serves until it is ended");
}
