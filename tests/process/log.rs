//! Checks that the service keeps working when nobody reads its log.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use idmint_testing::http1::{Client, request};
use idmint_testing::loopback::address_of_its_own;
use idmint_testing::service::{Home, LONG, idmint, until};

/// A service whose standard output and standard error are pipes that nobody reads.
struct Unread {
    child: Child,
    address: SocketAddr,
}

impl Unread {
    fn start(home: &Home, level: &str) -> Unread {
        // Choose a free port here, because the test cannot read the port from the banner.
        let address = address_of_its_own();
        let mut command = idmint(&["serve", "--listen", &address.to_string(), "--data-dir"]);
        command.arg(home.data_dir()).env("IDMINT_LOG__LEVEL", level);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until("an answer", || {
            assert!(child.try_wait().unwrap().is_none(), "the service ended");
            let ready = Client::try_connect(address)
                .ok()?
                .try_exchange(request("GET /health/ready", "", ""))
                .ok()?;
            (ready.status == 200).then_some(())
        });
        Unread { child, address }
    }

    fn exchange(&self, method_and_target: &str) -> String {
        let answer = Client::connect(self.address).exchange(request(method_and_target, "", ""));
        assert_eq!(answer.status, 200, "{method_and_target}: {}", answer.text());
        answer.text()
    }

    /// Sends this number of requests over HTTP/2, which logs a line for each frame. Each of these
    /// lines names its stream. Equal lines would be combined into one, but these lines all differ.
    fn have_frames_traced(&self, requests: u32) {
        const END_STREAM: u8 = 1;
        const END_HEADERS: u8 = 4;
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
        // The header block has the method GET and the scheme http by their index, and the path and
        // the authority as literals.
        let head = b"\x82\x86\x04\x0c/health/live\x01\x09localhost";
        for request in 0..requests {
            sent.extend([
                0,
                0,
                u8::try_from(head.len()).unwrap(),
                1,
                END_STREAM | END_HEADERS,
            ]);
            sent.extend((2 * request + 1).to_be_bytes());
            sent.extend(head);
        }
        stream.write_all(&sent).unwrap();
        let mut answered = 0;
        while answered < requests {
            let mut frame = [0; 9];
            stream.read_exact(&mut frame).unwrap();
            let len = u64::from(u32::from_be_bytes([0, frame[0], frame[1], frame[2]]));
            std::io::copy(
                &mut Read::by_ref(&mut stream).take(len),
                &mut std::io::sink(),
            )
            .unwrap();
            let (kind, flags) = (frame[3], frame[4]);
            answered += u32::from(kind <= 1 && flags & END_STREAM != 0);
        }
    }

    fn lines_dropped(&self) -> u64 {
        let metrics = self.exchange("GET /metrics");
        let value = metrics
            .lines()
            .find_map(|line| line.strip_prefix("idmint_log_lines_dropped_total "));
        value.expect("the metric is there").parse().unwrap()
    }

    /// Sends SIGTERM. Returns the exit code, and the time until the service has ended.
    fn end(mut self) -> (Option<i32>, Duration) {
        let told = Instant::now();
        kill_process(
            Pid::from_raw(self.child.id().try_into().unwrap()).unwrap(),
            Signal::TERM,
        )
        .unwrap();
        let status = until("the service ends", || self.child.try_wait().unwrap());
        (status.code(), told.elapsed())
    }
}

#[test]
fn a_log_pipe_that_nobody_reads_stops_neither_mints_nor_the_end() {
    let home = Home::new();
    let service = Unread::start(&home, "trace");
    let mut frames = 0;
    while service.lines_dropped() == 0 {
        assert!(
            frames < 100_000,
            "{frames} requests were traced, and the queue is not full yet"
        );
        service.have_frames_traced(50);
        frames += 50;
        service.exchange("POST /ids/flax");
    }
    println!("{frames} requests were traced until the first line was dropped");
    let dropped = service.lines_dropped();
    service.have_frames_traced(50);
    assert!(
        service.lines_dropped() > dropped + 50,
        "each line that is dropped is counted"
    );
    // Retry, because a request is refused if the disk responds late. The disk may be busy with
    // other tests.
    until(
        "a sequenced id, for which a thread of its own writes",
        || {
            let answer =
                Client::connect(service.address).exchange(request("POST /ids/snowflake", "", ""));
            assert!(matches!(answer.status, 200 | 503), "{}", answer.text());
            (answer.status == 200).then_some(())
        },
    );
    let (code, took) = service.end();
    assert_eq!(code, Some(0));
    assert!(
        took < Duration::from_secs(20),
        "it took {took:?}, with nothing to drain"
    );
}

#[test]
fn a_service_that_fails_ends_though_nobody_reads_why() {
    let home = Home::new();
    let service = Unread::start(&home, "info");
    // The first service has locked the folder, so the second one must exit with the code 75.
    let mut command = home.serve();
    let mut second = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = until("the second ends", || second.try_wait().unwrap());
    let mut told = String::new();
    second
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    assert_eq!(status.code(), Some(75), "{told}");
    assert!(told.contains("is in use by process"), "{told}");
    assert_eq!(
        service.lines_dropped(),
        0,
        "it is there from the first scrape, and nothing was lost"
    );
    assert_eq!(service.end().0, Some(0));
}
