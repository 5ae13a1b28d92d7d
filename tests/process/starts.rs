//! Checks requests that arrive while the service is starting.

use std::thread;

use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, Service};

/// Mints one id on the first connection that the service accepts. Returns the status of the
/// response.
fn mint_at(service: &Service, format: &str) -> u16 {
    let line = format!("POST /ids/{format}");
    let answer = Client::connect(service.address()).exchange(request(&line, "", ""));
    answer.status
}

/// Set `STARTS=200` to repeat this more often.
#[test]
fn mints_that_arrive_during_a_start_wait_for_it() {
    let starts = std::env::var("STARTS").map_or(3, |count| count.parse().expect("a number"));
    for settings in [
        "",
        "worker.slots = 2\nworker.slot = 1\nworker.exclusive = true",
    ] {
        for _ in 0..starts {
            let home = Home::new();
            if !settings.is_empty() {
                // A first start with several slots waits for 5 s, which is the maximum time that a
                // mint request waits. Start once before the test, so that the test does not include
                // this wait.
                let service = Service::start(home.serve_with(settings));
                service.wait_until_ready();
                service.kill();
            }
            for _ in ["first start", "restart"] {
                let service = Service::start(home.serve_with(settings));
                let statuses: Vec<u16> = thread::scope(|scope| {
                    let callers = ["snowflake", "instagram", "uuid7", "twitter"]
                        .map(|format| scope.spawn(|| mint_at(&service, format)));
                    callers.map(|caller| caller.join().unwrap()).to_vec()
                });
                assert_eq!(statuses, [200; 4], "with {settings:?}");
                service.kill();
            }
        }
    }
}

#[test]
fn a_mint_does_not_wait_for_a_clock_that_is_behind() {
    let home = Home::new();
    let mut command = home.serve_with("");
    command.args(["--floor", "2200-01-01T00:00:00Z"]);
    let service = Service::start(command);
    let mut client = Client::connect(service.address());
    let answer = client.exchange(request("POST /ids/snowflake", "", ""));
    assert_eq!(
        (answer.status, answer.json()["type"].as_str()),
        (503, Some("/problems/clock-behind"))
    );
    assert_eq!(mint_at(&service, "uuid7"), 200);
}
