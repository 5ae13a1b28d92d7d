//! Checks that a service has at most as many connections as its limit of file descriptors permits.
//! Without free descriptors, the service must refuse callers instead of ignoring them, and must
//! recover.

use std::process::Command;
use std::time::Duration;

use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, Service, run_by, until};

/// A limit of open files that a hundred callers exceed.
const FEW: u64 = 64;

fn has_answer(client: &mut Client) -> bool {
    client
        .try_exchange(request("GET /health/live", "", ""))
        .is_ok_and(|answer| answer.status == 200)
}

fn is_refused(client: &mut Client) -> bool {
    client
        .try_receive_within(Duration::from_millis(20))
        .is_ok_and(|answer| answer.status == 503)
}

#[test]
fn the_hard_limit_on_descriptors_is_used_and_bounds_the_connections() {
    let home = Home::new();
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "ulimit -Sn 150 && ulimit -Hn 300 && exec \"$0\" \"$@\"",
    ]);
    let mut command = run_by(shell, &home.serve());
    command.env("IDMINT_HTTP__IDLE_TIMEOUT", "10m");
    let service = Service::start(command);
    service.wait_until_ready();
    let banner = service.banner();
    assert!(banner.contains("at most 200 connections"), "{banner}");
    service.log_once_it_says("http.connections_max is 200 instead of");

    let mut clients: Vec<_> = (0..201)
        .map(|_| {
            let mut client = Client::connect(service.address());
            assert!(has_answer(&mut client));
            client
        })
        .collect();
    // A request on a connection ends its idle time. If it arrives before the service closes that
    // connection, the service closes another idle one instead.
    let closed = until("an idle connection is closed", || {
        clients.iter_mut().position(|client| !has_answer(client))
    });
    assert!(closed < 100, "{closed} was not idle for long");
    clients.remove(closed);
    assert!(clients.iter_mut().all(has_answer));
}

#[test]
fn running_out_of_descriptors_is_refused_and_recovered_from() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    service.limit_open_files(FEW);

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
    let mut command = home.serve();
    command.env("IDMINT_HTTP__IDLE_TIMEOUT", "10m");
    let service = Service::start(command);
    service.wait_until_ready();
    service.limit_open_files(FEW);

    let mut idle = Vec::new();
    while let Ok(mut client) = Client::try_connect(service.address())
        && has_answer(&mut client)
    {
        idle.push(client);
    }
    assert!(
        idle.len() > 10,
        "{} of {FEW} descriptors were there for callers",
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
