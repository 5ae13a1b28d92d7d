//! What the service counts: some where it happens, the rest read from the mint when metrics are scraped.

use std::time::Duration;

use prometheus::proto::{Counter, Gauge as GaugeValue, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{Gauge, Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts, Registry};

use super::problem::Slug;
use super::service::Service;
use crate::time::Observation;
use crate::time::WallStep;

/// From 100 us to the longest wait that can be configured.
const WAIT_BUCKETS_SECONDS: [f64; 11] = [1e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 0.1, 0.25, 1.0, 60.0];

/// From a smeared leap second to a clock that was never set.
const REGRESSION_BUCKETS_SECONDS: [f64; 8] = [0.05, 0.25, 1.0, 5.0, 60.0, 3600.0, 86_400.0, 31_536_000.0];

/// Counters and histograms of what happens outside the mint.
pub struct ServiceMetrics {
    registry: Registry,
    /// How long answers were held until their ids were due.
    pub mint_wait_seconds: Histogram,
    /// Starts that found no record of what was minted before.
    pub horizon_cold_starts: IntCounter,
    clock_regressions: IntCounter,
    clock_regression_seconds: Histogram,
    clock_skew_seconds: Gauge,
    decode_requests: IntCounterVec,
}

impl ServiceMetrics {
    /// Registers all of them, at 0.
    ///
    /// # Errors
    /// If the registry already has metrics of these names.
    pub fn register(registry: &Registry) -> prometheus::Result<ServiceMetrics> {
        let counter = |name: &str, help: &str| -> prometheus::Result<IntCounter> {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        let histogram = |name: &str, help: &str, buckets: &[f64]| -> prometheus::Result<Histogram> {
            let histogram = Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets.to_vec()))?;
            registry.register(Box::new(histogram.clone()))?;
            Ok(histogram)
        };
        let clock_skew_seconds =
            Gauge::new("idmint_clock_skew_seconds", "Wall clock less the estimate that ids are minted by.")?;
        registry.register(Box::new(clock_skew_seconds.clone()))?;
        let opts = Opts::new("idmint_decode_requests_total", "Decode requests, by outcome.");
        let decode_requests = IntCounterVec::new(opts, &["outcome"])?;
        registry.register(Box::new(decode_requests.clone()))?;
        for outcome in ["matched", "no_match", "invalid"] {
            decode_requests.with_label_values(&[outcome]);
        }
        // No slot is leased by a single node, so none can be lost; the series is there for alerts that cover fleets.
        counter("idmint_fenced_total", "How often this node lost its slot to another.")?;
        Ok(ServiceMetrics {
            registry: registry.clone(),
            mint_wait_seconds: histogram(
                "idmint_mint_wait_seconds",
                "How long answers were held until their ids were due.",
                &WAIT_BUCKETS_SECONDS,
            )?,
            horizon_cold_starts: counter(
                "idmint_horizon_cold_starts_total",
                "Starts that found no record of what was minted before.",
            )?,
            clock_regressions: counter("idmint_clock_regressions_total", "How often the wall clock was set back.")?,
            clock_regression_seconds: histogram(
                "idmint_clock_regression_seconds",
                "By how much the wall clock was set back.",
                &REGRESSION_BUCKETS_SECONDS,
            )?,
            clock_skew_seconds,
            decode_requests,
        })
    }

    /// Takes in what a look at the wall clock found.
    pub fn observed(&self, observation: &Observation) {
        let skew = Duration::from_nanos(observation.skew_nanos.unsigned_abs()).as_secs_f64();
        self.clock_skew_seconds.set(if observation.skew_nanos < 0 { -skew } else { skew });
        if let Some(WallStep::Back(by)) = observation.step {
            self.clock_regressions.inc();
            self.clock_regression_seconds.observe(by.as_secs_f64());
        }
    }

    /// Counts a decode request by the problem it ended in, if any.
    pub fn decoded(&self, problem: Option<Slug>) {
        let outcome = match problem {
            None => "matched",
            Some(Slug::NoFormatMatches) => "no_match",
            Some(_) => "invalid",
        };
        self.decode_requests.with_label_values(&[outcome]).inc();
    }

    /// Everything there is to scrape.
    pub fn scrape(&self, service: &Service) -> Vec<MetricFamily> {
        let mut families = self.registry.gather();
        families.extend(minting(service));
        families.extend(node(service));
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
    let mut unsent = Vec::new();
    let mut exhausted = Vec::new();
    let mut ends = Vec::new();
    for (format, lanes, stats) in service.mint.formats() {
        let labels = || vec![("format", format.name.clone())];
        minted.push((labels(), count(stats.minted())));
        waits.push((labels(), count(stats.waits())));
        unsent.push((labels(), count(stats.unsent())));
        for (outcome, total) in
            [("minted", stats.granted()), ("refused", stats.refused()), ("invalid", stats.invalid())]
        {
            requests.push(([labels(), vec![("outcome", outcome.to_owned())]].concat(), count(total)));
        }
        let workers = lanes.map_or(&[][..], |lanes| lanes.workers());
        for (worker, total) in workers.iter().zip(stats.exhausted()) {
            exhausted.push(([labels(), vec![("worker", worker.to_string())]].concat(), count(total)));
        }
        if let Some(end) = format.end() {
            ends.push((labels(), seconds(end.seconds())));
        }
    }
    vec![
        counters("idmint_ids_minted_total", "Ids handed out.", minted),
        counters("idmint_mint_requests_total", "Mint requests, by outcome.", requests),
        counters("idmint_mint_waits_total", "Mint requests that were held until their ids were due.", waits),
        counters(
            "idmint_ids_unsent_total",
            "Ids that were handed out and never sent, because the caller had gone.",
            unsent,
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
    let now = service.mint.clock().now();
    let remaining = service.mint.tenure().map_or(0.0, |tenure| tenure.horizon().since(now).as_secs_f64());
    let extensions =
        service.keeper.get().map_or((0, 0), |keeper| (keeper.counts().extended(), keeper.counts().failed()));
    let by_outcome = [("extended", extensions.0), ("failed", extensions.1)];
    let extensions = by_outcome.map(|(outcome, total)| (vec![("outcome", outcome.to_owned())], count(total)));
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    vec![
        gauges(
            "idmint_ready",
            "1 if sequenced ids are minted, else 0.",
            vec![(vec![], f64::from(u8::from(readiness.ready)))],
        ),
        gauges("idmint_worker_slot", "The slot this node holds.", vec![(vec![], f64::from(service.slot))]),
        gauges(
            "idmint_horizon_remaining_seconds",
            "Time reserved on disk and not used yet; 0 when idle.",
            vec![(vec![], remaining)],
        ),
        counters("idmint_horizon_extensions_total", "Extensions of the horizon, by outcome.", extensions.to_vec()),
        gauges("idmint_build_info", "Always 1; the label says which build this is.", vec![(version, 1.0)]),
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
        let (mut metric, mut gauge) = (Metric::default(), GaugeValue::default());
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

#[expect(clippy::cast_precision_loss, reason = "a metric is a double; 2^53 ids are minted in 100 years at 3 M/s")]
fn count(total: u64) -> f64 {
    total as f64
}

#[expect(clippy::cast_precision_loss, reason = "a metric is a double; seconds are exact for 285 million years")]
fn seconds(seconds: i128) -> f64 {
    seconds as f64
}
