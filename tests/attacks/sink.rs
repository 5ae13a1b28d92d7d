//! The control: another process, which takes all connections and all bytes, and does nothing with them, or gives every
//! request the same answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::http1::{Client, post_json, request};

/// Set for the process that is the sink: this same program, running the test below. How long requests and answers are.
const LENGTHS: &str = "IDMINT_TEST_SINK_LENGTHS";

const LISTENS_ON: &str = "the sink listens on ";

/// How much of one connection is read at once.
const READ_LEN: usize = 16 * 1024;

/// A sink at work; it ends with this value.
pub(crate) struct Sink {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Sink {
    /// One that takes so many bytes for a request, and answers each with so many; with 0, none.
    pub(crate) fn start(request_len: usize, answer_len: usize) -> Sink {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "sink::a_sink_takes_all_and_says_nothing", "--nocapture"]);
        command.env(LENGTHS, format!("{request_len} {answer_len}"));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("this program");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let told = lines.find_map(|line| line.strip_prefix(LISTENS_ON).map(str::to_owned));
        Sink { child, address: told.expect("it says where it listens").parse().unwrap() }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Takes everything until the process that started this one is gone.
async fn take_all(request_len: usize, answer_len: usize) {
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
        match answer_len {
            0 => tokio::spawn(take(stream)),
            len => tokio::spawn(answer(stream, request_len, len)),
        };
    }
}

async fn take(mut stream: TcpStream) {
    let mut buffer = vec![0; READ_LEN];
    while let Ok(1..) = stream.read(&mut buffer).await {}
}

/// Answers each request, told by its length.
async fn answer(mut stream: TcpStream, request_len: usize, len: usize) {
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {len}\r\n\r\n{}", " ".repeat(len));
    let (mut buffer, mut unanswered) = (vec![0; READ_LEN], 0);
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        unanswered += read;
        while unanswered >= request_len {
            unanswered -= request_len;
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

#[test]
fn a_sink_takes_all_and_says_nothing() {
    if let Ok(lengths) = std::env::var(LENGTHS) {
        let (request_len, answer_len) = lengths.split_once(' ').unwrap();
        let all = take_all(request_len.parse().unwrap(), answer_len.parse().unwrap());
        return tokio::runtime::Runtime::new().unwrap().block_on(all);
    }
    let sink = Sink::start(0, 0);
    let mut stream = std::net::TcpStream::connect(sink.address).unwrap();
    stream.write_all(&[0; 1 << 20]).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(stream.read(&mut [0]).is_err(), "it says nothing and keeps the connection");
    drop(sink);
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
}

#[test]
fn a_sink_with_an_answer_gives_it_to_every_request() {
    for ask in [request("GET /ledgers", "", ""), post_json("/decode", "", &"x".repeat(100_000))] {
        let sink = Sink::start(ask.len(), 70_000);
        let mut client = Client::connect(sink.address);
        client.send(ask.repeat(3));
        for _ in 0..3 {
            let answer = client.receive();
            assert_eq!((answer.status, answer.body.len()), (200, 70_000));
        }
    }
}
