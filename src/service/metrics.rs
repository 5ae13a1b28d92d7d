//! Everything that is counted, as it is now.
//!
//! The minters' own counters are read here, when they are asked for, so that counting costs a mint next to nothing.

use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

use super::lifecycle::Reserver;
use super::service::Service;
use crate::cluster::{RequestOutcome, SlotCounts};
use crate::service::load::Shed;

impl Service {
    /// Every metric, as it is now.
    pub fn metric_families(&self) -> Vec<MetricFamily> {
        let mut families = self.counters().gather();
        families.extend(minting(self));
        families.extend(node(self));
        // A node of a fleet has no worker numbers to count by while it has no slot, and a family without series is no metric.
        families.retain(|family| !family.get_metric().is_empty());
        families.sort_by(|a, b| a.name().cmp(b.name()));
        families
    }
}

/// Labels and value of one series.
type Sample = (Vec<(&'static str, String)>, f64);

/// What the mint has counted.
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
            "How often a worker number had used up its sequence when ids were asked for.",
            exhausted,
        ),
        gauges(
            "idmint_format_end_timestamp_seconds",
            "When the format cannot mint any more, in seconds since 1970.",
            ends,
        ),
    ]
}

/// The state of this node.
fn node(service: &Service) -> Vec<MetricFamily> {
    let readiness = service.readiness();
    let now = service.clock().now();
    let remaining = service
        .session()
        .map_or(0.0, |session| session.horizon().since(now).as_secs_f64());
    let extensions = match service.reserver() {
        None => (0, 0),
        Some(Reserver::Horizon(keeper)) => (keeper.counts().extended(), keeper.counts().failed()),
        Some(Reserver::Slot(keeper)) => (keeper.counts().renewed(), 0),
    };
    let (slots, peer_skew) = match service.reserver() {
        Some(Reserver::Slot(keeper)) => (Some(keeper.counts()), keeper.peer_skew_seconds()),
        Some(Reserver::Horizon(_)) | None => (None, 0.0),
    };
    let fenced = slots.map_or(0, SlotCounts::fenced);
    let is_regressed = slots.is_some_and(SlotCounts::is_regressed);
    let requests = RequestOutcome::ALL.map(|outcome| {
        let total = slots.map_or(0, |counts| counts.of(outcome));
        (vec![("outcome", outcome.label().to_owned())], count(total))
    });
    let by_outcome = [("extended", extensions.0), ("failed", extensions.1)];
    let extensions =
        by_outcome.map(|(outcome, total)| (vec![("outcome", outcome.to_owned())], count(total)));
    let load = service.load();
    let shed = Shed::ALL.map(|shed| {
        (
            vec![("reason", shed.label().to_owned())],
            count(load.counts.of(shed)),
        )
    });
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    vec![
        gauges(
            "idmint_ready",
            "1 if sequenced ids are minted, else 0.",
            vec![(vec![], f64::from(u8::from(readiness.horizon.is_ok())))],
        ),
        gauges(
            "idmint_worker_slot",
            "The slot this node holds; -1 while it has none.",
            vec![(vec![], readiness.slot.map_or(-1.0, f64::from))],
        ),
        counters(
            "idmint_fenced_total",
            "How often this node lost its slot to another.",
            vec![(vec![], count(fenced))],
        ),
        gauges(
            "idmint_peer_clock_skew_seconds",
            "How far the clock is ahead of the median of the fleet's clocks, for certain; negative if it is behind.",
            vec![(vec![], peer_skew)],
        ),
        gauges(
            "idmint_coordinator_regressed",
            "1 while the coordinator of this node's fleet has lost what it had acknowledged, as after a restore, else 0.",
            vec![(vec![], f64::from(u8::from(is_regressed)))],
        ),
        counters(
            "idmint_coordinator_requests_total",
            "Requests about the slot of this node to the coordinator of its fleet, by outcome.",
            requests.to_vec(),
        ),
        gauges(
            "idmint_horizon_remaining_seconds",
            "Time reserved on disk and not used yet; 0 when idle.",
            vec![(vec![], remaining)],
        ),
        counters(
            "idmint_horizon_extensions_total",
            "Extensions of the horizon, by outcome.",
            extensions.to_vec(),
        ),
        counters(
            "idmint_requests_shed_total",
            "Requests and connections that were turned away for want of room, by what there was too little of.",
            shed.to_vec(),
        ),
        gauges(
            "idmint_connections_open",
            "Connections that are open.",
            vec![(
                vec![],
                count(u64::try_from(load.connections.get()).unwrap_or(0)),
            )],
        ),
        gauges(
            "idmint_memory_budget_used_bytes",
            "Memory of http.memory_max that callers have.",
            vec![(
                vec![],
                count(u64::try_from(load.memory.used()).unwrap_or(u64::MAX)),
            )],
        ),
        counters(
            "idmint_log_lines_dropped_total",
            "Log lines that nobody will read: their reader was too slow, or they could not be written.",
            vec![(vec![], count(service.dropped_lines()))],
        ),
        gauges(
            "idmint_build_info",
            "Always 1; the label says which build this is.",
            vec![(version, 1.0)],
        ),
    ]
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
