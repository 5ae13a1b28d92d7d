//! Checks the second address of the service (`http.admin_listen`), which serves metrics and health.

use idmint_testing::http1::{Client, request};
use idmint_testing::service::{Home, Service, Signal, idmint, run};

#[test]
fn a_second_address_answers_metrics_and_health_alone_to_the_end() {
    let home = Home::new();
    let tokens = home.path("tokens.toml");
    let made = run(idmint(&[
        "token",
        "new",
        "--name",
        "all",
        "--scopes",
        "mint,metrics",
        "--file",
        tokens.to_str().unwrap(),
    ]));
    made.assert(0, &[]);
    let settings = format!(
        "http.tokens = '{}'\nhttp.drain_delay = '1h'\nhttp.admin_listen = '127.0.0.1:0'",
        tokens.display()
    );
    let service = Service::start(home.serve_with(&settings));
    service.wait_until_ready();
    let log = service.log_once_it_says("metrics and health are also served on http://");
    let (_, address) = log.split_once("also served on http://").unwrap();
    let address = address.split_whitespace().next().unwrap().parse().unwrap();
    let authorization = format!("authorization: Bearer {}\r\n", made.out.trim_end());
    let ask = |target: &str, headers: &str| {
        Client::connect(address).exchange(request(target, headers, ""))
    };
    assert_eq!(ask("GET /health/ready", "").status, 200);
    assert_eq!(ask("GET /metrics", "").status, 401);
    let metrics = ask("GET /metrics", &authorization);
    assert!(metrics.status == 200 && metrics.text().contains("idmint_ids_minted_total"));
    for target in ["POST /ids/payment", "GET /formats", "GET /", "GET /healthy"] {
        assert_eq!(ask(target, &authorization).status, 404, "{target}");
    }
    let minted = Client::connect(service.address()).exchange(request(
        "POST /ids/payment",
        &authorization,
        "",
    ));
    assert_eq!(minted.status, 200);
    service.send(Signal::TERM);
    service.log_once_it_says("SIGTERM: draining");
    assert_eq!(
        ask("GET /health/ready", "").status,
        503,
        "it says so to the end"
    );
    service.send(Signal::TERM);
    service.wait().assert(0, &[]);
}

#[test]
fn a_stalled_probe_does_not_use_the_time_to_drain_a_second_time() {
    let home = Home::new();
    let settings = "http.header_timeout = '1h'\nhttp.admin_listen = '127.0.0.1:0'";
    let service = Service::start(home.serve_with(settings));
    service.wait_until_ready();
    let log = service.log_once_it_says("metrics and health are also served on http://");
    let (_, address) = log.split_once("also served on http://").unwrap();
    let address = address.split_whitespace().next().unwrap().parse().unwrap();
    let mut stalled = Client::connect(address);
    stalled.send("GET /health/live HTTP/1.1\r\nhost: ");
    service.send(Signal::TERM);
    service
        .wait()
        .assert(0, &["closing 1 connections that did not end within 1s"]);
    drop(stalled);
}
