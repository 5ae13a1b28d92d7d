//! A server without file descriptors refuses instead of leaving callers in the dark, and recovers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{LONG, Running, WIDE};

/// Not a test: the server of the one below, in a process of its own because the limit holds for a whole process.
#[test]
#[ignore = "runs until its standard input is closed"]
fn serve_until_standard_input_closes() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(Running::start(WIDE));
    println!("\nlistening on {}", server.address);
    let _ = std::io::stdin().read(&mut [0]);
}

struct FewDescriptors(Child);

impl FewDescriptors {
    fn start() -> (Self, SocketAddr) {
        let mut child = Command::new("sh")
            .args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "descriptors::serve_until_standard_input_closes"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("listening on ")?.parse().ok());
        (Self(child), address.expect("the server says where it listens"))
    }
}

impl Drop for FewDescriptors {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn answer_to_hello(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LONG))?;
    stream.write_all(b"GET /hello HTTP/1.1\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn running_out_of_descriptors_is_refused_and_recovered_from() {
    let (_server, address) = FewDescriptors::start();
    assert!(answer_to_hello(address).unwrap().ends_with("hello"));

    let held: Vec<_> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    let refused = |mut stream: &TcpStream| {
        let mut answer = String::new();
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let _ = stream.read_to_string(&mut answer);
        answer.starts_with("HTTP/1.1 503 ")
    };
    let began = Instant::now();
    while !held.iter().any(refused) {
        assert!(began.elapsed() < LONG, "nobody is told");
    }

    drop(held);
    while !answer_to_hello(address).is_ok_and(|answer| answer.ends_with("hello")) {
        assert!(began.elapsed() < LONG, "it does not recover");
        std::thread::sleep(Duration::from_millis(20));
    }
}
