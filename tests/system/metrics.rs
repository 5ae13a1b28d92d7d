//! Checks the output of `/metrics`. Prometheus' own tool must accept it, and it must contain all
//! metrics from the first scrape on.

use crate::tools::promtool_reads;
use idmint_testing::service::Home;

/// Every metric of this build, without the prefix `idmint_`.
const METRICS: [&str; 22] = [
    "ids_minted_total{format=\"snowflake\"}",
    "mint_requests_total{format=\"snowflake\",outcome=\"minted\"}",
    "sequence_exhausted_total{format=\"snowflake\",worker=\"0\"}",
    "mint_waits_total{format=\"snowflake\"}",
    "mint_wait_seconds_count",
    "clock_regressions_total",
    "clock_regression_seconds_count",
    "clock_skew_seconds",
    "peer_clock_skew_seconds",
    "horizon_remaining_seconds",
    "horizon_extensions_total{outcome=\"extended\"}",
    "horizon_cold_starts_total",
    "worker_slot",
    "fenced_total",
    "decode_requests_total{outcome=\"matched\"}",
    "http_requests_total{method=\"POST\",route=\"/ids/{format}\",status=\"200\"}",
    "http_requests_total{method=\"POST\",route=\"/ids/{format}\",status=\"503\"}",
    "http_request_duration_seconds_count{route=\"/ids/{format}\"}",
    "http_in_flight",
    "format_end_timestamp_seconds{format=\"snowflake\"}",
    "ready",
    "build_info{version=\"0.1.0\"}",
];

/// The metrics of the process, under the names that Prometheus recommends.
const OF_PROCESS: [&str; 5] = [
    "process_resident_memory_bytes",
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_max_fds",
    "process_start_time_seconds",
];

#[test]
fn every_metric_is_there_in_the_first_scrape_and_every_counter_at_zero() {
    let home = Home::new();
    // Use a second start, because the first start of a folder counts as a cold start in the
    // metrics.
    home.start().wait_until_ready();
    let service = home.start();
    let first = service.get("/metrics").text();
    for metric in METRICS {
        let series = format!("\nidmint_{metric} ");
        assert!(first.contains(&series), "no {metric} in\n{first}");
    }
    for name in OF_PROCESS {
        let value = first.lines().find_map(|line| {
            line.strip_prefix(name)?
                .strip_prefix(' ')?
                .parse::<f64>()
                .ok()
        });
        assert!(
            value.is_some_and(|value| value > 0.0 || name.ends_with("_total")),
            "{name} is {value:?}"
        );
    }
    let counters = first
        .lines()
        .filter(|line| line.starts_with("idmint_") && line.contains("_total"));
    for counter in counters {
        assert!(counter.ends_with(" 0"), "{counter}");
    }
}

#[test]
fn promtool_accepts_what_is_scraped_before_and_after_work() {
    let home = Home::new();
    let service = home.start();
    promtool_reads(&["check", "metrics"], &service.get("/metrics").text());
    service.wait_until_ready();
    service.mint("snowflake?count=5000");
    service.get("/decode/175928847299117063");
    service.get("/nonesuch");
    promtool_reads(&["check", "metrics"], &service.get("/metrics").text());
}
