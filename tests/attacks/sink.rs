//! The control of the attacks: another process that accepts all connections and bytes. It either
//! discards the bytes, or sends the same response to every request, in the protocol of the
//! attackers.

use std::convert::Infallible;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::aim::Protocol;
use crate::handshakes::server_config;
use idmint_testing::http1::{Client, post_json, request};

/// The environment variable that turns this test program into the control (a process that is
/// attacked for comparison). Its value contains the lengths of a request and a response.
const LENGTHS: &str = "IDMINT_TEST_SINK_LENGTHS";

/// The environment variable that is set if the control (the process that is attacked for
/// comparison) uses HTTP/2. The variable `CERTIFICATE_DIR` below is set if the control uses TLS.
const SPEAKS_HTTP2: &str = "IDMINT_TEST_SINK_HTTP2";
const CERTIFICATE_DIR: &str = "IDMINT_TEST_SINK_CERTIFICATE_DIR";

const LISTENS_ON: &str = "the sink listens on ";

/// The size of the read buffer of each connection, in bytes.
const READ_LEN: usize = 16 * 1024;

/// A running control process, which is attacked for comparison. It ends when this value is dropped.
pub(crate) struct Sink {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Sink {
    /// Starts a control that sends `answer_len` bytes for every `request_len` bytes that it
    /// receives. If `answer_len` is 0, the control sends nothing.
    ///
    /// With TLS, the control uses the certificate in the given folder. `program` runs this test
    /// program on the CPU core for servers.
    pub(crate) fn start(
        mut program: Command,
        request_len: usize,
        answer_len: usize,
        protocol: Protocol,
        certificate_dir: PathBuf,
    ) -> Sink {
        let command = program.args([
            "--exact",
            "sink::a_sink_takes_all_and_says_nothing",
            "--nocapture",
        ]);
        command.env(LENGTHS, format!("{request_len} {answer_len}"));
        match protocol {
            Protocol::Http1 => {}
            Protocol::Http2 => drop(command.env(SPEAKS_HTTP2, "1")),
            Protocol::Tls => drop(command.env(CERTIFICATE_DIR, certificate_dir)),
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this program");
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let told = lines.find_map(|line| line.strip_prefix(LISTENS_ON).map(str::to_owned));
        Sink {
            child,
            address: told.expect("it says where it listens").parse().unwrap(),
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Accepts all connections and bytes until the parent process has ended.
async fn take_all(request_len: usize, answer_len: usize) {
    let speaks_http2 = std::env::var_os(SPEAKS_HTTP2).is_some();
    let tls = std::env::var_os(CERTIFICATE_DIR)
        .map(|dir| TlsAcceptor::from(Arc::new(server_config(Path::new(&dir)))));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("\n{LISTENS_ON}{}", listener.local_addr().unwrap());
    std::io::stdout().flush().unwrap();
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        match (answer_len, tls.clone()) {
            // Attackers that expect no response do not use TLS with the control.
            (0, _) => tokio::spawn(take(stream)),
            (len, None) if speaks_http2 => tokio::spawn(answer_streams(stream, len)),
            (len, None) => tokio::spawn(answer(stream, request_len, len)),
            (len, Some(tls)) => tokio::spawn(async move {
                if let Ok(stream) = tls.accept(stream).await {
                    answer(stream, request_len, len).await;
                }
            }),
        };
    }
}

async fn take(mut stream: TcpStream) {
    let mut buffer = vec![0; READ_LEN];
    while let Ok(1..) = stream.read(&mut buffer).await {}
}

/// Sends a response for every `request_len` bytes received.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, request_len: usize, len: usize) {
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {len}\r\n\r\n{}",
        " ".repeat(len)
    );
    let (mut buffer, mut unanswered) = (vec![0; READ_LEN], 0);
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        unanswered += read;
        while unanswered >= request_len {
            unanswered -= request_len;
            if stream.write_all(answer.as_bytes()).await.is_err() || stream.flush().await.is_err() {
                return;
            }
        }
    }
}

/// Sends a response to every HTTP/2 request.
async fn answer_streams(stream: TcpStream, len: usize) {
    let answer = Bytes::from(vec![b' '; len]);
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
        let answer = answer.clone();
        async move {
            let _ = request.into_body().collect().await;
            Ok::<_, Infallible>(hyper::Response::new(Full::new(answer)))
        }
    });
    let _ = http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn start_in_the_clear(request_len: usize, answer_len: usize) -> Sink {
    let program = Command::new(std::env::current_exe().unwrap());
    Sink::start(
        program,
        request_len,
        answer_len,
        Protocol::Http1,
        PathBuf::new(),
    )
}

#[test]
fn a_sink_takes_all_and_says_nothing() {
    if let Ok(lengths) = std::env::var(LENGTHS) {
        let (request_len, answer_len) = lengths.split_once(' ').unwrap();
        let all = take_all(request_len.parse().unwrap(), answer_len.parse().unwrap());
        return tokio::runtime::Runtime::new().unwrap().block_on(all);
    }
    let sink = start_in_the_clear(0, 0);
    let mut stream = std::net::TcpStream::connect(sink.address).unwrap();
    stream.write_all(&[0; 1 << 20]).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    assert!(
        stream.read(&mut [0]).is_err(),
        "it says nothing and keeps the connection"
    );
    drop(sink);
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
}

#[test]
fn a_sink_with_an_answer_gives_it_to_every_request() {
    for ask in [
        request("GET /ledgers", "", ""),
        post_json("/decode", "", &"x".repeat(100_000)),
    ] {
        let sink = start_in_the_clear(ask.len(), 70_000);
        let mut client = Client::connect(sink.address);
        client.send(ask.repeat(3));
        for _ in 0..3 {
            let answer = client.receive();
            assert_eq!((answer.status, answer.body.len()), (200, 70_000));
        }
    }
}
