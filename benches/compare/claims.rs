//! What idmint should reach beside the others, and whether it did.

use serde::Serialize;

use crate::harness::comparison::{median, ratios};
use crate::row::{Round, Row};
use crate::starts::Starts;

/// What a figure should be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    AtLeast(f64),
    AtMost(f64),
    /// Not one round may be above.
    NeverAbove(f64),
    /// Measured for comparison.
    Shown,
}

/// One figure of every round, and what was wanted of it.
#[derive(Serialize)]
pub(crate) struct Verdict {
    pub(crate) claim: String,
    pub(crate) unit: &'static str,
    pub(crate) figures: Vec<f64>,
    pub(crate) wanted: String,
    pub(crate) verdict: String,
}

impl Verdict {
    fn of(claim: String, unit: &'static str, figures: Vec<f64>, wanted: Wanted) -> Self {
        let said = |is_met: bool| if is_met { "PASS" } else { "MISS" }.to_owned();
        let middle = median(&mut figures.clone());
        let (wanted, verdict) = match wanted {
            Wanted::AtLeast(least) => (format!("≥ {least}"), said(middle >= least)),
            Wanted::AtMost(most) => (format!("≤ {most}"), said(middle <= most)),
            Wanted::NeverAbove(most) => (format!("never > {most}"), said(figures.iter().all(|figure| *figure <= most))),
            Wanted::Shown => (String::new(), String::new()),
        };
        Self { claim, unit, figures, wanted, verdict }
    }

    fn missing(claim: String, reason: &str) -> Self {
        Self { claim, unit: "", figures: Vec::new(), wanted: String::new(), verdict: reason.to_owned() }
    }
}

type Figure = fn(&Round) -> f64;
const REQUESTS: Figure = |round| round.requests_per_second;
const IDS: Figure = |round| round.ids_per_second;
const SERVER: Figure = |round| round.server_us;
const P99: Figure = |round| round.p99_us;

/// What a row is measured by.
enum Under {
    Row(&'static str),
    Figure(f64),
}

/// One lane of conjunction-v1 has 2^13 ids in a millisecond.
const LANE_IDS_PER_SECOND: f64 = 8_192_000.0;

/// Claim, row, figure, what it is measured by, what is wanted.
const CLAIMS: &[(&str, &str, Figure, Under, Wanted)] = &[
    ("one id / axum: requests/s", "one", REQUESTS, Under::Row("axum"), Wanted::AtLeast(0.95)),
    ("one id / hyper: server CPU for each request", "one", SERVER, Under::Row("hyper"), Wanted::AtMost(1.10)),
    ("one id / axum: server CPU for each request", "one", SERVER, Under::Row("axum"), Wanted::Shown),
    ("one id / nginx: requests/s", "one", REQUESTS, Under::Row("nginx"), Wanted::Shown),
    (
        "one id / axum, both pipelined: requests/s",
        "one-pipelined",
        REQUESTS,
        Under::Row("axum-pipelined"),
        Wanted::AtLeast(2.5),
    ),
    ("the same: server CPU for each request", "one-pipelined", SERVER, Under::Row("axum-pipelined"), Wanted::Shown),
    (
        "one id / hyper with pipeline_flush, both pipelined: requests/s",
        "one-pipelined",
        REQUESTS,
        Under::Row("flush-pipelined"),
        Wanted::Shown,
    ),
    (
        "1 000 ids / hyper, same length: requests/s",
        "json-1000",
        REQUESTS,
        Under::Row("hyper-1000"),
        Wanted::AtLeast(0.75),
    ),
    ("the same: server CPU for each request", "json-1000", SERVER, Under::Row("hyper-1000"), Wanted::Shown),
    (
        "10 000 ids / hyper, same length: requests/s",
        "json-10000",
        REQUESTS,
        Under::Row("hyper-10000"),
        Wanted::AtLeast(0.65),
    ),
    ("the same: server CPU for each request", "json-10000", SERVER, Under::Row("hyper-10000"), Wanted::Shown),
    ("10 000 ids as bytes / as JSON: ids/s", "packed-10000", IDS, Under::Row("json-10000"), Wanted::AtLeast(1.5)),
    ("one id / Redis INCR: requests/s", "one", REQUESTS, Under::Row("incr"), Wanted::AtLeast(1.2)),
    (
        "1 000 ids as JSON / Redis INCR pipelined: ids/s",
        "json-1000",
        IDS,
        Under::Row("incr-pipelined"),
        Wanted::AtLeast(40.0),
    ),
    (
        "10 000 ids as bytes / Redis INCR pipelined: ids/s",
        "packed-10000",
        IDS,
        Under::Row("incr-pipelined"),
        Wanted::AtLeast(120.0),
    ),
    ("one id / PostgreSQL nextval: requests/s", "one", REQUESTS, Under::Row("nextval"), Wanted::AtLeast(2.5)),
    (
        "one lane of conjunction-v1 / 8 192 000 ids/s",
        "lane",
        IDS,
        Under::Figure(LANE_IDS_PER_SECOND),
        Wanted::AtLeast(0.97),
    ),
    ("the same, highest round", "lane", IDS, Under::Figure(LANE_IDS_PER_SECOND), Wanted::NeverAbove(1.01)),
    ("one id / axum at 10 000 requests/s: p99", "one-fixed", P99, Under::Row("axum-fixed"), Wanted::AtMost(1.5)),
    (
        "decoding a decimal snowflake / one id: requests/s",
        "decode-decimal",
        REQUESTS,
        Under::Row("one"),
        Wanted::AtLeast(0.6),
    ),
    ("decoding a Flax ID / one id: requests/s", "decode-flax", REQUESTS, Under::Row("one"), Wanted::AtLeast(0.6)),
    ("decoding 10 000 ids / 1 000 000 ids/s", "decode-many", IDS, Under::Figure(1e6), Wanted::AtLeast(0.5)),
];

/// Judges every claim by the ratios of figures that one round measured, since they met the same machine.
pub(crate) fn judged(rows: &[Row], starts: &Result<Starts, String>) -> Vec<Verdict> {
    let ratio = |(claim, over, figure, under, wanted): &(&str, &str, Figure, Under, Wanted)| {
        let over = row(rows, over);
        let under = match under {
            Under::Row(key) => Ok(row(rows, key)),
            Under::Figure(figure) => Err(*figure),
        };
        let trouble = over.trouble.as_ref().or(under.as_ref().ok().and_then(|row| row.trouble.as_ref()));
        if let Some(trouble) = trouble {
            return Verdict::missing((*claim).to_owned(), trouble);
        }
        let figures = over.figures(figure);
        let under = under.map_or_else(|figure| vec![figure; figures.len()], |row| row.figures(figure));
        Verdict::of((*claim).to_owned(), "×", ratios(&figures, &under), *wanted)
    };
    let mut verdicts: Vec<Verdict> = CLAIMS.iter().map(ratio).collect();
    verdicts.extend(of_starts(starts));
    verdicts
}

fn of_starts(starts: &Result<Starts, String>) -> Vec<Verdict> {
    let starts = match starts {
        Ok(starts) => starts,
        Err(reason) => return vec![Verdict::missing("starts".to_owned(), &format!("not measured: {reason}"))],
    };
    let of = |claim: &str, unit, figures: &[f64], most| {
        Verdict::of(claim.to_owned(), unit, figures.to_vec(), Wanted::AtMost(most))
    };
    vec![
        of("resident memory after the start", "MB", &starts.started_mb, 15.0),
        of("resident memory after batches of 100 000", "MB", &starts.loaded_mb, 40.0),
        of("start to first id, empty data directory", "ms", &starts.fresh_ms, 50.0),
        of("start to first id, data directory used before", "ms", &starts.again_ms, 50.0),
        of("binary, stripped", "MB", &[starts.binary_mb], 12.0),
    ]
}

pub(crate) fn row<'a>(rows: &'a [Row], key: &str) -> &'a Row {
    rows.iter().find(|row| row.key == key).expect("claims name rows that there are")
}
