//! The control: another process, which takes all connections and all bytes, and does nothing with them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

/// Set for the process that is the sink: this same program, running the test below.
const IS_SINK: &str = "IDMINT_TEST_IS_SINK";

const LISTENS_ON: &str = "the sink listens on ";

/// How much of one connection is read at once.
const READ_LEN: usize = 16 * 1024;

/// A sink at work; it ends with this value.
pub(crate) struct Sink {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Sink {
    pub(crate) fn start() -> Sink {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "sink::a_sink_takes_all_and_says_nothing", "--nocapture"]).env(IS_SINK, "1");
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
async fn take_all() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("\n{LISTENS_ON}{}", listener.local_addr().unwrap());
    std::io::stdout().flush().unwrap();
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        tokio::spawn(async move {
            let mut buffer = vec![0; READ_LEN];
            while let Ok(1..) = stream.read(&mut buffer).await {}
        });
    }
}

#[test]
fn a_sink_takes_all_and_says_nothing() {
    if std::env::var_os(IS_SINK).is_some() {
        return tokio::runtime::Runtime::new().unwrap().block_on(take_all());
    }
    let sink = Sink::start();
    let mut stream = std::net::TcpStream::connect(sink.address).unwrap();
    stream.write_all(&[0; 1 << 20]).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(stream.read(&mut [0]).is_err(), "it says nothing and keeps the connection");
    drop(sink);
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
}
