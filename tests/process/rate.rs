//! Checks the rate limit of a caller. Each response must say how much is left, and a caller over
//! the limit must wait.

use std::thread;
use std::time::Duration;

use idmint_testing::http1::{Answer, Client, request};
use idmint_testing::service::{Home, Service, idmint, run, until};

/// Returns the value of the header `name`. Panics if the header is missing.
fn field(answer: &Answer, name: &str) -> String {
    answer
        .header(name)
        .unwrap_or_else(|| panic!("no {name} in {answer:?}"))
        .to_owned()
}

#[test]
fn a_caller_over_its_rate_is_told_so_and_when_to_come_again() {
    let home = Home::new();
    let service = Service::start(home.serve_with("http.rate = 2"));
    service.wait_until_ready();
    let mut client = Client::connect(service.address());
    let mut mint = || client.exchange(request("POST /ids/flax", "", ""));
    let first = mint();
    assert_eq!(
        (first.status, field(&first, "ratelimit-policy").as_str()),
        (200, "\"second\";q=2;w=1")
    );
    assert_eq!(field(&first, "ratelimit"), "\"second\";r=1;t=1");
    let (mut granted, mut refused) = (1, None);
    // The loop ends even on a slow machine, because at some point five requests are sent within one
    // second.
    while refused.is_none() {
        let answer = mint();
        if answer.status == 200 {
            granted += 1;
        } else {
            refused = Some(answer);
        }
    }
    let refused = refused.expect("looked for");
    assert_eq!(
        (refused.status, field(&refused, "retry-after").as_str()),
        (429, "1")
    );
    assert_eq!(field(&refused, "ratelimit"), "\"second\";r=0;t=1");
    assert_eq!(field(&refused, "ratelimit-policy"), "\"second\";q=2;w=1");
    let problem: serde_json::Value = serde_json::from_str(&refused.text()).unwrap();
    assert_eq!(
        (&problem["type"], &problem["limit"]),
        (
            &"/problems/rate-limited".into(),
            &"2 requests a second".into()
        )
    );
    assert!(
        (1..=500).contains(&problem["retry_after_ms"].as_u64().unwrap()),
        "{problem}"
    );
    for _ in 0..20 {
        let health = service.get("/health/ready");
        assert_eq!(
            (health.status, health.header("ratelimit")),
            (200, None),
            "whoever asks how it is is not counted"
        );
    }
    assert_eq!(
        service.metric("idmint_ids_minted_total{format=\"flax\"}"),
        f64::from(granted)
    );
    let counted =
        "idmint_http_requests_total{method=\"POST\",route=\"/ids/{format}\",status=\"429\"}";
    assert!(service.metric(counted) >= 1.0);
}

#[test]
fn each_token_has_a_rate_of_its_own_and_whoever_has_none_shares_that_of_the_address() {
    let home = Home::new();
    let file = home.path("tokens.toml");
    let token = |name: &str| {
        let made = run(idmint(&[
            "token",
            "new",
            "--name",
            name,
            "--scopes",
            "mint",
            "--file",
            file.to_str().unwrap(),
        ]));
        made.assert(0, &[]);
        format!("authorization: Bearer {}\r\n", made.out.trim_end())
    };
    let (one, other) = (token("one"), token("other"));
    let settings = format!("http.rate = 1\nhttp.tokens = '{}'\n", file.display());
    let service = Service::start(home.serve_with(&settings));
    service.wait_until_ready();
    let ask = |headers: &str| {
        Client::connect(service.address())
            .exchange(request("POST /ids/flax", headers, ""))
            .status
    };
    let over = |headers: &str| while ask(headers) != 429 {};
    over(&one);
    assert_eq!(ask(&other), 200, "it has sent nothing yet");
    over(&other);
    assert_eq!(ask(""), 401, "neither has this address");
    over("");
    // The documents must count towards the same limit. After a pause of a second, one more request
    // is accepted, so use up the limit again and retry. If the documents had a separate limit, it
    // would recover during the pause, and this loop would never end.
    until("documents are refused, too", || {
        over("authorization: Bearer wrong\r\n");
        let page = Client::connect(service.address()).exchange(request("GET /", "", ""));
        if page.status != 429 {
            thread::sleep(Duration::from_millis(1_100));
        }
        (page.status == 429).then_some(())
    });
}

#[test]
fn who_guesses_tokens_at_the_metrics_is_slowed_down_and_who_has_one_is_not() {
    let home = Home::new();
    let file = home.path("tokens.toml");
    let made = run(idmint(&[
        "token",
        "new",
        "--name",
        "scraper",
        "--scopes",
        "metrics",
        "--file",
        file.to_str().unwrap(),
    ]));
    made.assert(0, &[]);
    let service = Service::start(home.serve_with(&format!(
        "http.rate = 1\nhttp.tokens = '{}'\n",
        file.display()
    )));
    service.wait_until_ready();
    let ask = |target: &str, token: &str| {
        let headers = format!("authorization: Bearer {token}\r\n");
        Client::connect(service.address())
            .exchange(request(target, &headers, ""))
            .status
    };
    for target in ["GET /metrics", "POST /metrics", "POST /health/live"] {
        // Send wrong tokens until one is refused because of the rate limit. This ends even on a
        // slow machine, because at some point two of them are sent within one second.
        let statuses: Vec<_> = (0..2_000)
            .map(|_| ask(target, "wrong"))
            .take_while(|status| *status != 429)
            .collect();
        assert!(statuses.len() < 2_000, "{target}: no guess is 429");
        assert!(
            statuses.iter().all(|status| *status == 401),
            "{target}: {statuses:?}"
        );
    }
    for _ in 0..20 {
        assert_eq!(
            ask("GET /metrics", made.out.trim_end()),
            200,
            "from the same address"
        );
        assert_eq!(
            ask("GET /health/live", "wrong"),
            200,
            "anybody may ask that"
        );
    }
}

#[test]
fn without_a_rate_answers_say_nothing_of_one() {
    let home = Home::new();
    let service = home.start();
    service.wait_until_ready();
    let answer = service.post("/ids/flax");
    assert_eq!(
        (
            answer.status,
            answer.header("ratelimit"),
            answer.header("ratelimit-policy")
        ),
        (200, None, None)
    );
}

#[test]
fn a_command_refused_for_a_moment_exits_75() {
    let home = Home::new();
    let rules = "http.rate = 1\n[formats.over]\nlike = 'payment'\ntick = '1ms'";
    let service = Service::start(home.serve_with(rules));
    service.wait_until_ready();
    until("a mint is refused", || {
        let ended = run(idmint(&["mint", "flax", "--server", &service.url()]));
        (ended.status.code() != Some(0)).then(|| ended.assert(75, &["429"]))
    });
    // A later request does not help after the end of a format.
    until("a mint is refused for good", || {
        let ended = run(idmint(&["mint", "over", "--server", &service.url()]));
        (ended.status.code() != Some(75)).then(|| ended.assert(1, &["its end at"]))
    });
}
