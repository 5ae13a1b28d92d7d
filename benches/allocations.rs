//! Counts the memory allocations of minting ids, and of checking a chain of events.
//!
//! A mint allocates memory for the request and for each 256 KiB chunk of the response, but never
//! for an id. A chain check allocates memory for its buffers, but never for an event.
//!
//! The count of a mint covers the router's whole response, up to the last chunk that a connection
//! would send. The count of a chain covers only the check.

mod harness;

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::http::Request;
use divan::{AllocProfiler, Bencher};
use harness::service::{YEARS, service};
use http_body_util::BodyExt;
use idmint_http::{Api, HostPolicy, HttpMetrics};
use idmint_records::ledger::{ChainChecker, Event, EventId, EventTime, LedgerId};
use prometheus::Registry;
use tokio::runtime::Runtime;
use tower::ServiceExt;

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

static SERVER: LazyLock<(Runtime, Api)> = LazyLock::new(|| {
    let runtime = Runtime::new().expect("a runtime");
    let service = service(&runtime, YEARS);
    let metrics =
        HttpMetrics::register(&Registry::new(), &idmint_http::paths()).expect("an empty registry");
    (
        runtime,
        Api::new(service, Arc::new(metrics), HostPolicy::default()),
    )
});

fn main() {
    divan::main();
}

#[divan::bench(args = [1, 1_000, 100_000], sample_count = 20, sample_size = 5)]
fn snowflake_as_json(bencher: Bencher<'_, '_>, count: u32) {
    mint(bencher, &format!("/ids/snowflake?count={count}"));
}

#[divan::bench(args = [1, 1_000, 100_000], sample_count = 20, sample_size = 5)]
fn flax_as_json(bencher: Bencher<'_, '_>, count: u32) {
    mint(bencher, &format!("/ids/flax?count={count}"));
}

fn mint(bencher: Bencher<'_, '_>, address: &str) {
    let (runtime, router) = &*SERVER;
    let request = || {
        (
            router.clone(),
            Request::post(address)
                .body(Body::empty())
                .expect("a request"),
        )
    };
    bencher
        .with_inputs(request)
        .bench_values(|(router, request)| {
            runtime.block_on(async {
                let response = router
                    .oneshot(request)
                    .await
                    .expect("the router answers everything");
                assert!(response.status().is_success());
                let mut body = response.into_body();
                while let Some(frame) = body.frame().await {
                    divan::black_box_drop(frame);
                }
            });
        });
}

#[divan::bench(args = [1, 1_000, 10_000], sample_count = 20, sample_size = 5)]
fn chain_of_events(bencher: Bencher<'_, '_>, count: u64) {
    let lines = chain(count);
    bencher.bench(|| {
        let mut checker = ChainChecker::from_genesis();
        for line in &lines {
            checker.check(line.as_bytes()).expect("it holds");
        }
    });
}

/// Returns a chain of JSON events, whose members are not sorted. The id of each event is computed
/// from the event and the id of the previous event.
fn chain(count: u64) -> Vec<String> {
    let mut last: Option<EventId> = None;
    let line = |at| {
        let time =
            EventTime::from_micros(1_700_000_000_000_000 + at).expect("long before the last");
        let members = format!(
            r#""data":{{"z":{at}.50,"a":["\u00e9",1e-7]}},"event":"e{at}","entities":{{}},"timestamp":"{time}""#
        );
        let event = Event::from_json(format!("{{{members}}}").as_bytes()).expect("an event");
        let ledger = last.map_or_else(|| LedgerId::of_genesis(&event, time), EventId::ledger);
        let id = event.seal(
            time,
            ledger,
            last.unwrap_or_else(|| EventId::before_genesis(time, ledger)),
        );
        last = Some(id);
        format!("{{{members},\"eventId\":\"{id}\"}}")
    };
    (0..count).map(line).collect()
}
