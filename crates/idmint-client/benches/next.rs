//! The time of [`Ids::next`] from the stock, beside a version 4 UUID and a counter: the median of 21
//! runs of one thread. `docs/internals/MEASUREMENTS.md` has the figures of all clients.

use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use idmint_client::{Ids, IdsOptions};

const CALLS: u32 = 20_000;
const RUNS: usize = 21;
const COUNT: u32 = 100_000;

fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            thread::spawn(move || serve(&stream));
        }
    });
    let nanos_of_next = |may_be_forked| {
        let options = IdsOptions {
            prefetch_count: COUNT,
            prefetch_count_max: COUNT,
            may_be_forked,
            ..IdsOptions::default()
        };
        let ids = Ids::new(&[&url], "snowflake", options).expect("options");
        ids.next().expect("an id");
        nanos(|| ids.next().expect("an id"))
    };
    let counter = AtomicU64::new(0);
    println!("next() {:.1} ns", nanos_of_next(false));
    println!("next() with may_be_forked {:.1} ns", nanos_of_next(true));
    let uuid4 = nanos(|| rand::random::<u128>() & !(0xf << 76) | 4 << 76);
    println!("a version 4 UUID {uuid4:.1} ns");
    let count = nanos(|| u128::from(counter.fetch_add(1, Ordering::Relaxed)));
    println!("a counter {count:.1} ns");
}

/// Answers each request of a connection with a row of [`COUNT`] numbers.
fn serve(mut stream: &TcpStream) {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    let mut lines = BufReader::new(stream).lines();
    while let Some(Ok(line)) = lines.next() {
        if line.is_empty() {
            let first = NUMBERS.fetch_add(COUNT.into(), Ordering::Relaxed);
            let rows = format!(r#"[{{"first":"{first}","step":"1","count":{COUNT}}}]"#);
            let body = format!(r#"{{"format":"snowflake","count":{COUNT},"rows":{rows}}}"#);
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
            let _ = stream.write_all((head + &body).as_bytes());
        }
    }
}

fn nanos(mut call: impl FnMut() -> u128) -> f64 {
    let mut run = || {
        let begun = Instant::now();
        for _ in 0..CALLS {
            black_box(call());
        }
        begun.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    let mut times: Vec<f64> = (0..RUNS).map(|_| run()).collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}
