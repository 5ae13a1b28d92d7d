//! Collects all metrics with their current values.
//!
//! A mint only increments atomic counters, which costs little. This module turns the counters into
//! metrics when the metrics are scraped.

use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

use super::service::Service;
use crate::load::Shed;
use idmint_storage::{RequestOutcome, Reserver};

impl Service {
    /// Returns all metrics with their current values.
    pub fn metric_families(&self) -> Vec<MetricFamily> {
        let mut families = self.counters().gather();
        families.extend(minting(self));
        families.extend(node(self));
        // Remove metric families that have no time series, because such families are not valid. For
        // example, a fleet node without a slot has no worker numbers to report.
        families.retain(|family| !family.get_metric().is_empty());
        families.sort_by(|a, b| a.name().cmp(b.name()));
        families
    }
}

/// The labels and the value of one time series.
type Sample = (Vec<(&'static str, String)>, f64);

/// Returns the metrics of minted ids and mint requests, for each format.
fn minting(service: &Service) -> Vec<MetricFamily> {
    let mut minted = Vec::new();
    let mut requests = Vec::new();
    let mut waits = Vec::new();
    let mut exhausted = Vec::new();
    let mut ends = Vec::new();
    for served in service.formats().iter() {
        let (format, counters) = (served.format(), served.counters());
        let labels = || vec![("format", format.name.clone())];
        minted.push((labels(), count(counters.minted())));
        waits.push((labels(), count(counters.waits())));
        for (outcome, total) in [
            ("minted", counters.granted()),
            ("refused", counters.refused()),
            ("invalid", counters.invalid()),
        ] {
            requests.push((
                [labels(), vec![("outcome", outcome.to_owned())]].concat(),
                count(total),
            ));
        }
        for (worker, total) in served.workers().iter().zip(counters.exhausted()) {
            exhausted.push((
                [labels(), vec![("worker", worker.to_string())]].concat(),
                count(total),
            ));
        }
        if let Some(end) = format.end() {
            ends.push((labels(), seconds(end.seconds())));
        }
    }
    vec![
        counters("idmint_ids_minted_total", "Ids handed out.", minted),
        counters(
            "idmint_mint_requests_total",
            "Mint requests, by outcome.",
            requests,
        ),
        counters(
            "idmint_mint_waits_total",
            "Mint requests that were held until their ids were due.",
            waits,
        ),
        counters(
            "idmint_sequence_exhausted_total",
            "Requests that found the sequence of a worker number used up.",
            exhausted,
        ),
        gauges(
            "idmint_format_end_timestamp_seconds",
            "Time at which the format stops minting, in seconds since 1970.",
            ends,
        ),
    ]
}

/// Returns the metrics of this node's state.
fn node(service: &Service) -> Vec<MetricFamily> {
    let readiness = service.readiness();
    let now = service.clock().now();
    let remaining = service
        .session()
        .map_or(0.0, |session| session.horizon().since(now).as_secs_f64());
    let counts = service.reserver().map(Reserver::counts).unwrap_or_default();
    let requests = RequestOutcome::ALL.map(|outcome| {
        let total = counts.requests[outcome as usize];
        (vec![("outcome", outcome.label().to_owned())], count(total))
    });
    let by_outcome = [("extended", counts.extended), ("failed", counts.failed)];
    let extensions =
        by_outcome.map(|(outcome, total)| (vec![("outcome", outcome.to_owned())], count(total)));
    let load = service.load();
    let shed = Shed::ALL.map(|shed| {
        (
            vec![("reason", shed.label().to_owned())],
            count(load.counts.of(shed)),
        )
    });
    let expiries = service.expiries().into_iter().map(|expiry| {
        let kind = ("kind", expiry.kind.label().to_owned());
        (
            vec![kind, ("name", expiry.name)],
            seconds(expiry.at.seconds()),
        )
    });
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    vec![
        gauge(
            "idmint_ready",
            "1 if the node mints sequenced ids, else 0.",
            f64::from(u8::from(readiness.horizon.is_ok())),
        ),
        gauge(
            "idmint_worker_slot",
            "The slot this node holds; -1 while it has none.",
            readiness.slot.map_or(-1.0, f64::from),
        ),
        counter(
            "idmint_fenced_total",
            "Times this node lost its slot to another.",
            count(counts.fenced),
        ),
        gauge(
            "idmint_peer_clock_skew_seconds",
            "Minimum lead of the clock over the median clock of the fleet; negative if it is behind.",
            counts.peer_skew_seconds,
        ),
        gauge(
            "idmint_coordinator_regressed",
            "1 while the coordinator of the fleet has lost acknowledged writes, as after a restore, else 0.",
            f64::from(u8::from(counts.is_regressed)),
        ),
        counters(
            "idmint_coordinator_requests_total",
            "Slot requests of this node to the coordinator of its fleet, by outcome.",
            requests.to_vec(),
        ),
        gauge(
            "idmint_horizon_remaining_seconds",
            "Time reserved on disk and not used yet; 0 when idle.",
            remaining,
        ),
        counters(
            "idmint_horizon_extensions_total",
            "Extensions of the horizon, by outcome.",
            extensions.to_vec(),
        ),
        counters(
            "idmint_requests_shed_total",
            "Requests and connections rejected because of overload, by exhausted resource.",
            shed.to_vec(),
        ),
        gauge(
            "idmint_connections_open",
            "Open connections.",
            count(u64::try_from(load.connections.get()).unwrap_or(0)),
        ),
        gauge(
            "idmint_memory_budget_used_bytes",
            "Memory of http.memory_max in use by callers.",
            count(u64::try_from(load.memory.used()).unwrap_or(u64::MAX)),
        ),
        counter(
            "idmint_log_lines_dropped_total",
            "Log lines dropped because their reader was too slow or a write failed.",
            count(service.dropped_lines()),
        ),
        gauges(
            "idmint_expiry_timestamp_seconds",
            "Time at which a certificate, revocation list or token expires, in seconds since 1970.",
            expiries.collect(),
        ),
        gauges(
            "idmint_build_info",
            "Always 1; the label names the build.",
            vec![(version, 1.0)],
        ),
    ]
}

fn counter(name: &str, help: &str, value: f64) -> MetricFamily {
    counters(name, help, vec![(vec![], value)])
}

fn gauge(name: &str, help: &str, value: f64) -> MetricFamily {
    gauges(name, help, vec![(vec![], value)])
}

fn counters(name: &str, help: &str, samples: Vec<Sample>) -> MetricFamily {
    let metric = |value| {
        let (mut metric, mut counter) = (Metric::default(), Counter::default());
        counter.set_value(value);
        metric.set_counter(counter);
        metric
    };
    family(name, help, MetricType::COUNTER, samples, metric)
}

fn gauges(name: &str, help: &str, samples: Vec<Sample>) -> MetricFamily {
    let metric = |value| {
        let (mut metric, mut gauge) = (Metric::default(), Gauge::default());
        gauge.set_value(value);
        metric.set_gauge(gauge);
        metric
    };
    family(name, help, MetricType::GAUGE, samples, metric)
}

fn family(
    name: &str,
    help: &str,
    kind: MetricType,
    samples: Vec<Sample>,
    metric: impl Fn(f64) -> Metric,
) -> MetricFamily {
    let labelled = |(labels, value): Sample| {
        let pair = |(name, value): (&str, String)| {
            let mut pair = LabelPair::default();
            pair.set_name(name.to_owned());
            pair.set_value(value);
            pair
        };
        let mut metric = metric(value);
        metric.set_label(labels.into_iter().map(pair).collect());
        metric
    };
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(kind);
    family.set_metric(samples.into_iter().map(labelled).collect());
    family
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a metric is a double; 2^53 ids are minted in 100 years at 3 M/s"
)]
fn count(total: u64) -> f64 {
    total as f64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a metric is a double; seconds are exact for 285 million years"
)]
fn seconds(seconds: i128) -> f64 {
    seconds as f64
}
