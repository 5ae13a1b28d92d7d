//! Checks that a service without free file descriptors refuses callers instead of ignoring them,
//! and that it recovers.

use std::process::Command;
use std::time::Duration;

use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, Service, run_by, until};

/// Returns the command with a limit of open files that a hundred callers exceed. The limit applies
/// to a whole process, so the service runs in a process of its own.
fn with_few_descriptors(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""]);
    run_by(shell, command)
}

fn is_refused(client: &mut Client) -> bool {
    client
        .try_receive_within(Duration::from_millis(20))
        .is_ok_and(|answer| answer.status == 503)
}

#[test]
fn running_out_of_descriptors_is_refused_and_recovered_from() {
    let home = Home::new();
    let service = Service::start(with_few_descriptors(&home.serve()));
    service.wait_until_ready();

    let mut held: Vec<_> = (0..100)
        .map(|_| Client::connect(service.address()))
        .collect();
    until("somebody is told that there is no room", || {
        held.iter_mut().any(is_refused).then_some(())
    });

    drop(held);
    until("the service answers again", || {
        let mut client = Client::try_connect(service.address()).ok()?;
        let answer = client
            .try_exchange(request("POST /ids/snowflake", "", ""))
            .ok()?;
        (answer.status == 200).then_some(())
    });
}

#[test]
fn idle_connections_make_room_when_descriptors_run_out() {
    let home = Home::new();
    let mut command = with_few_descriptors(&home.serve());
    command.env("IDMINT_HTTP__IDLE_TIMEOUT", "10m");
    let service = Service::start(command);
    service.wait_until_ready();

    let live = request("GET /health/live", "", "");
    let mut idle = Vec::new();
    let has_answer = |client: &mut Client| {
        client
            .try_exchange(&live)
            .is_ok_and(|answer| answer.status == 200)
    };
    while let Ok(mut client) = Client::try_connect(service.address())
        && has_answer(&mut client)
    {
        idle.push(client);
    }
    assert!(
        idle.len() > 10,
        "{} of 64 descriptors were there for callers",
        idle.len()
    );

    until("a newcomer has the place of an idle connection", || {
        let mut newcomer = Client::try_connect(service.address()).ok()?;
        has_answer(&mut newcomer).then_some(())
    });
    let left = idle
        .iter_mut()
        .filter_map(|client| has_answer(client).then_some(()))
        .count();
    assert!(
        left >= idle.len() / 2,
        "{left} of {} idle connections are left: no more go than are in the way",
        idle.len()
    );
}
