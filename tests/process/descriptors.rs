//! A service without file descriptors refuses instead of leaving callers in the dark, and recovers.

use std::io::Read;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use crate::client::Caller;
use crate::service::{Home, Service, run_by, until};

/// With a limit that a hundred callers exceed. The limit holds for a whole process, so it is one of its own.
fn with_few_descriptors(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""]);
    run_by(shell, command)
}

fn is_refused(mut stream: &TcpStream) -> bool {
    let mut answer = String::new();
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let _ = stream.read_to_string(&mut answer);
    answer.starts_with("HTTP/1.1 503 ")
}

#[test]
fn running_out_of_descriptors_is_refused_and_recovered_from() {
    let home = Home::new();
    let service = Service::start(with_few_descriptors(&home.serve()));
    service.wait_until_ready();

    let held: Vec<_> = (0..100).map(|_| TcpStream::connect(service.address()).unwrap()).collect();
    until("somebody is told that there is no room", || held.iter().any(is_refused).then_some(()));

    drop(held);
    until("the service answers again", || {
        let answer = Caller::try_connect(service.address())?.ask("POST", "/ids/snowflake").ok()?;
        (answer.status == 200).then_some(())
    });
}
