//! The goals for idmint in comparison with other servers, and the check of each goal.

use serde::Serialize;

use crate::harness::comparison::{median, ratios};
use crate::scenario::{Round, Scenario, find};
use crate::startup::Startup;

/// The bound for a figure of a goal.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// An upper bound for the figure of every round. All other bounds apply to the median.
    NeverAbove(f64),
    /// No bound. The figure is only shown for comparison.
    Shown,
}

/// The result of checking a goal, with the figures of all rounds.
#[derive(Serialize)]
pub(crate) struct Verdict {
    pub(crate) claim: String,
    pub(crate) unit: &'static str,
    pub(crate) figures: Vec<f64>,
    pub(crate) wanted: String,
    pub(crate) verdict: String,
}

impl Verdict {
    fn of(claim: String, unit: &'static str, figures: Vec<f64>, bound: Bound) -> Self {
        let said = |is_met: bool| if is_met { "PASS" } else { "MISS" }.to_owned();
        let middle = median(&mut figures.clone());
        let (wanted, verdict) = match bound {
            Bound::AtLeast(least) => (format!("≥ {least}"), said(middle >= least)),
            Bound::AtMost(most) => (format!("≤ {most}"), said(middle <= most)),
            Bound::NeverAbove(most) => (
                format!("never > {most}"),
                said(figures.iter().all(|figure| *figure <= most)),
            ),
            Bound::Shown => (String::new(), String::new()),
        };
        Self {
            claim,
            unit,
            figures,
            wanted,
            verdict,
        }
    }

    fn missing(claim: String, reason: &str) -> Self {
        Self {
            claim,
            unit: "",
            figures: Vec::new(),
            wanted: String::new(),
            verdict: reason.to_owned(),
        }
    }
}

type Figure = fn(&Round) -> f64;
const REQUESTS: Figure = |round| round.requests_per_second;
const IDS: Figure = |round| round.ids_per_second;
const SERVER: Figure = |round| round.server_us;
const P99: Figure = |round| round.p99_us;
const P999: Figure = |round| round.p999_us.unwrap_or(f64::NAN);

/// The figure with which a scenario is compared.
enum Baseline {
    Scenario(&'static str),
    Figure(f64),
}

/// The number of ids per second that one lane (worker number) of the format conjunction-v1 has:
/// 2^13 in each millisecond.
const LANE_IDS_PER_SECOND: f64 = 8_192_000.0;

/// The goals. Each has a claim, the key of a scenario, a figure, a baseline and a bound. The figure
/// divided by the baseline must meet the bound.
const GOALS: &[(&str, &str, Figure, Baseline, Bound)] = &[
    (
        "one id / axum: requests/s",
        "one",
        REQUESTS,
        Baseline::Scenario("axum"),
        Bound::AtLeast(0.95),
    ),
    (
        "one id / hyper: server CPU for each request",
        "one",
        SERVER,
        Baseline::Scenario("hyper"),
        Bound::AtMost(1.10),
    ),
    (
        "one id / axum: server CPU for each request",
        "one",
        SERVER,
        Baseline::Scenario("axum"),
        Bound::Shown,
    ),
    (
        "one id / nginx: requests/s",
        "one",
        REQUESTS,
        Baseline::Scenario("nginx"),
        Bound::Shown,
    ),
    (
        "one id / axum, both pipelined: requests/s",
        "one-pipelined",
        REQUESTS,
        Baseline::Scenario("axum-pipelined"),
        Bound::AtLeast(2.5),
    ),
    (
        "the same: server CPU for each request",
        "one-pipelined",
        SERVER,
        Baseline::Scenario("axum-pipelined"),
        Bound::Shown,
    ),
    (
        "one id / hyper with pipeline_flush, both pipelined: requests/s",
        "one-pipelined",
        REQUESTS,
        Baseline::Scenario("flush-pipelined"),
        Bound::Shown,
    ),
    (
        "1 000 ids / hyper, same length: requests/s",
        "json-1000",
        REQUESTS,
        Baseline::Scenario("hyper-1000"),
        Bound::AtLeast(0.75),
    ),
    (
        "the same: server CPU for each request",
        "json-1000",
        SERVER,
        Baseline::Scenario("hyper-1000"),
        Bound::Shown,
    ),
    (
        "10 000 ids / hyper, same length: requests/s",
        "json-10000",
        REQUESTS,
        Baseline::Scenario("hyper-10000"),
        Bound::AtLeast(0.65),
    ),
    (
        "the same: server CPU for each request",
        "json-10000",
        SERVER,
        Baseline::Scenario("hyper-10000"),
        Bound::Shown,
    ),
    (
        "10 000 ids as bytes / as JSON: ids/s",
        "packed-10000",
        IDS,
        Baseline::Scenario("json-10000"),
        Bound::AtLeast(1.5),
    ),
    (
        "one id / Redis INCR: requests/s",
        "one",
        REQUESTS,
        Baseline::Scenario("incr"),
        Bound::AtLeast(1.2),
    ),
    (
        "1 000 ids as JSON / Redis INCR pipelined: ids/s",
        "json-1000",
        IDS,
        Baseline::Scenario("incr-pipelined"),
        Bound::AtLeast(40.0),
    ),
    (
        "10 000 ids as bytes / Redis INCR pipelined: ids/s",
        "packed-10000",
        IDS,
        Baseline::Scenario("incr-pipelined"),
        Bound::AtLeast(120.0),
    ),
    (
        "1 000 ids as rows / Redis INCRBY 1000, both pipelined: requests/s",
        "rows-pipelined",
        REQUESTS,
        Baseline::Scenario("incrby-pipelined"),
        Bound::AtLeast(0.8),
    ),
    (
        "one id / PostgreSQL nextval: requests/s",
        "one",
        REQUESTS,
        Baseline::Scenario("nextval"),
        Bound::AtLeast(2.5),
    ),
    (
        "one lane of conjunction-v1 / 8 192 000 ids/s",
        "lane",
        IDS,
        Baseline::Figure(LANE_IDS_PER_SECOND),
        Bound::AtLeast(0.97),
    ),
    (
        "the same, highest round",
        "lane",
        IDS,
        Baseline::Figure(LANE_IDS_PER_SECOND),
        Bound::NeverAbove(1.01),
    ),
    (
        "one id / axum at 10 000 requests/s: p99",
        "one-fixed",
        P99,
        Baseline::Scenario("axum-fixed"),
        Bound::AtMost(1.5),
    ),
    (
        "one id at 35 000 requests/s beside a scraper and a lister: p99.9 / 2 ms",
        "one-half",
        P999,
        Baseline::Figure(2_000.0),
        Bound::AtMost(1.0),
    ),
    (
        "the same / axum",
        "one-half",
        P999,
        Baseline::Scenario("axum-half"),
        Bound::Shown,
    ),
    (
        "decoding a decimal snowflake / one id: requests/s",
        "decode-decimal",
        REQUESTS,
        Baseline::Scenario("one"),
        Bound::AtLeast(0.6),
    ),
    (
        "decoding a Flax ID / one id: requests/s",
        "decode-flax",
        REQUESTS,
        Baseline::Scenario("one"),
        Bound::AtLeast(0.6),
    ),
    (
        "decoding 10 000 ids / 1 000 000 ids/s",
        "decode-many",
        IDS,
        Baseline::Figure(1e6),
        Bound::AtLeast(0.5),
    ),
];

/// Checks every goal. A ratio is computed from two figures of the same round, because the machine
/// was in the same state for both.
pub(crate) fn check(scenarios: &[Scenario], startup: &Result<Startup, String>) -> Vec<Verdict> {
    let ratio = |(claim, over, figure, baseline, bound): &(&str, &str, Figure, Baseline, Bound)| {
        let over = find(scenarios, over);
        let baseline = match baseline {
            Baseline::Scenario(key) => Ok(find(scenarios, key)),
            Baseline::Figure(figure) => Err(*figure),
        };
        let failure = over.failure.as_ref().or(baseline
            .as_ref()
            .ok()
            .and_then(|scenario| scenario.failure.as_ref()));
        if let Some(failure) = failure {
            return Verdict::missing((*claim).to_owned(), failure);
        }
        let figures = over.figures(figure);
        let baseline = baseline.map_or_else(
            |figure| vec![figure; figures.len()],
            |scenario| scenario.figures(figure),
        );
        Verdict::of(
            (*claim).to_owned(),
            "×",
            ratios(&figures, &baseline),
            *bound,
        )
    };
    let mut verdicts: Vec<Verdict> = GOALS.iter().map(ratio).collect();
    verdicts.extend(check_startup(startup));
    verdicts
}

fn check_startup(startup: &Result<Startup, String>) -> Vec<Verdict> {
    let startup = match startup {
        Ok(startup) => startup,
        Err(reason) => {
            return vec![Verdict::missing(
                "starts".to_owned(),
                &format!("not measured: {reason}"),
            )];
        }
    };
    let of = |claim: &str, unit, figures: &[f64], most| {
        Verdict::of(
            claim.to_owned(),
            unit,
            figures.to_vec(),
            Bound::AtMost(most),
        )
    };
    vec![
        of(
            "resident memory after the start",
            "MB",
            &startup.started_mb,
            15.0,
        ),
        of(
            "resident memory after batches of 100 000",
            "MB",
            &startup.loaded_mb,
            40.0,
        ),
        of(
            "start to first id, empty data directory",
            "ms",
            &startup.fresh_ms,
            50.0,
        ),
        of(
            "start to first id, data directory used before",
            "ms",
            &startup.again_ms,
            50.0,
        ),
        of("binary, stripped", "MB", &[startup.binary_mb], 12.0),
    ]
}
