//! What the service counts where it happens. What the mint counts is read when metrics are scraped: see `metrics`.

use std::num::NonZeroU32;
use std::time::Duration;

use prometheus::proto::MetricFamily;
use prometheus::{Gauge, Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts, Registry};

use super::error::GroupFailure;
use crate::conjunction::Grouped;
use crate::ledger::{AppendRefusal, GivenNumbers, NumberRefusal, VoidRefusal, VoidedNumber};
use crate::storage::{Appended, Numbered, RecordError, Space};
use crate::time::{Observation, WallStep};

/// From 100 us to the longest wait that can be configured.
const WAIT_BUCKETS_SECONDS: [f64; 11] = [
    1e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 0.1, 0.25, 1.0, 60.0,
];

/// From a smeared leap second to a clock that was never set.
const REGRESSION_BUCKETS_SECONDS: [f64; 8] =
    [0.05, 0.25, 1.0, 5.0, 60.0, 3600.0, 86_400.0, 31_536_000.0];

/// What a decode request ended in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeOutcome {
    /// The text is an id of some format.
    Matched,
    /// It is an id of none.
    NoMatch,
    /// Nothing was decoded: the request is at fault.
    Invalid,
}

/// Counters and histograms of what happens outside the mint.
pub struct ServiceCounters {
    registry: Registry,
    /// How long answers were held until their ids were due.
    pub mint_wait_seconds: Histogram,
    /// Starts that found no record of what was minted before.
    pub horizon_cold_starts: IntCounter,
    clock_regressions: IntCounter,
    clock_regression_seconds: Histogram,
    clock_skew_seconds: Gauge,
    /// How full the coordinator of a fleet is.
    pub coordinator_space: SpaceGauges,
    /// Appends that a node of a fleet could not write to its journal.
    pub journal_failures: IntCounter,
    decode_requests: IntCounterVec,
    ledger_appends: IntCounterVec,
    conjunction_reports: IntCounterVec,
    conjunction_near: IntCounter,
    numbers: IntCounter,
    number_requests: IntCounterVec,
}

/// How full the coordinator of a fleet is.
#[derive(Clone)]
pub struct SpaceGauges {
    used: Gauge,
    quota: Gauge,
}

impl SpaceGauges {
    /// Takes in how full it was found.
    pub fn set(&self, space: Space) {
        self.used.set(bytes(space.used));
        self.quota.set(bytes(space.quota));
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a metric is a double; 2^53 bytes are 8 PiB"
)]
fn bytes(bytes: u64) -> f64 {
    bytes as f64
}

impl ServiceCounters {
    /// Registers all of them, at 0.
    ///
    /// # Errors
    /// If the registry already has metrics of these names.
    pub fn register(registry: &Registry) -> prometheus::Result<ServiceCounters> {
        let counter = |name: &str, help: &str| -> prometheus::Result<IntCounter> {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        let histogram =
            |name: &str, help: &str, buckets: &[f64]| -> prometheus::Result<Histogram> {
                let histogram =
                    Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets.to_vec()))?;
                registry.register(Box::new(histogram.clone()))?;
                Ok(histogram)
            };
        let gauge = |name: &str, help: &str| -> prometheus::Result<Gauge> {
            let gauge = Gauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        let by_outcome =
            |name: &str, help: &str, outcomes: &[&str]| -> prometheus::Result<IntCounterVec> {
                let counters = IntCounterVec::new(Opts::new(name, help), &["outcome"])?;
                registry.register(Box::new(counters.clone()))?;
                for outcome in outcomes {
                    counters.with_label_values(&[outcome]);
                }
                Ok(counters)
            };
        Ok(ServiceCounters {
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
            clock_regressions: counter(
                "idmint_clock_regressions_total",
                "How often the wall clock was set back.",
            )?,
            clock_regression_seconds: histogram(
                "idmint_clock_regression_seconds",
                "By how much the wall clock was set back.",
                &REGRESSION_BUCKETS_SECONDS,
            )?,
            clock_skew_seconds: gauge(
                "idmint_clock_skew_seconds",
                "Wall clock less the estimate that ids are minted by.",
            )?,
            coordinator_space: SpaceGauges {
                used: gauge(
                    "idmint_coordinator_used_bytes",
                    "Bytes of the fullest member of the coordinator of this node's fleet; 0 without one.",
                )?,
                quota: gauge(
                    "idmint_coordinator_quota_bytes",
                    "Bytes at which that member takes no more; appends are refused from three quarters of it on.",
                )?,
            },
            journal_failures: counter(
                "idmint_journal_failures_total",
                "Rounds of appends that a node of a fleet could not write to its journal.",
            )?,
            decode_requests: by_outcome(
                "idmint_decode_requests_total",
                "Decode requests, by outcome.",
                &["matched", "no_match", "invalid"],
            )?,
            ledger_appends: by_outcome(
                "idmint_ledger_appends_total",
                "Requests to create a ledger or append to one, by outcome.",
                &[
                    "appended",
                    "replayed",
                    "head_moved",
                    "conflict",
                    "refused",
                    "unavailable",
                    "unknown",
                ],
            )?,
            numbers: counter(
                "idmint_numbers_total",
                "Numbers of all series that were given.",
            )?,
            number_requests: by_outcome(
                "idmint_number_requests_total",
                "Requests for numbers and to make one void, by outcome.",
                &[
                    "given",
                    "voided",
                    "replayed",
                    "conflict",
                    "ended",
                    "refused",
                    "unavailable",
                    "unknown",
                ],
            )?,
            conjunction_near: counter(
                "idmint_conjunction_near_total",
                "Conjunctions created within a minute of another one of the same two objects.",
            )?,
            conjunction_reports: by_outcome(
                "idmint_conjunction_reports_total",
                "Reports of conjunctions, by outcome.",
                &["created", "joined", "ungrouped", "refused", "unavailable"],
            )?,
        })
    }

    /// Takes in what a look at the wall clock found.
    pub fn observe(&self, observation: &Observation) {
        let skew = Duration::from_nanos(observation.skew_nanos.unsigned_abs()).as_secs_f64();
        self.clock_skew_seconds.set(if observation.skew_nanos < 0 {
            -skew
        } else {
            skew
        });
        if let Some(WallStep::Back(by)) = observation.step {
            self.count_regression(by);
        }
    }

    /// How often the wall clock was set back.
    pub fn clock_regressions(&self) -> u64 {
        self.clock_regressions.get()
    }

    /// Counts a wall clock that was set back by so much, while the service ran or before it started.
    pub fn count_regression(&self, by: Duration) {
        self.clock_regressions.inc();
        self.clock_regression_seconds.observe(by.as_secs_f64());
    }

    /// Counts a decode request.
    pub fn count_decode(&self, outcome: DecodeOutcome) {
        let outcome = match outcome {
            DecodeOutcome::Matched => "matched",
            DecodeOutcome::NoMatch => "no_match",
            DecodeOutcome::Invalid => "invalid",
        };
        self.decode_requests.with_label_values(&[outcome]).inc();
    }

    /// Counts a request about ledgers that reached the store.
    pub(super) fn count_append(&self, outcome: &Result<Appended, RecordError>) {
        let outcome = match outcome {
            Ok(Appended {
                is_replayed: true, ..
            }) => "replayed",
            Ok(Appended {
                is_replayed: false, ..
            }) => "appended",
            Err(RecordError::Append(AppendRefusal::HeadMoved { .. })) => "head_moved",
            Err(error) => outcome_of(error),
        };
        self.ledger_appends.with_label_values(&[outcome]).inc();
    }

    /// Counts a request for numbers that reached the store.
    pub(super) fn count_numbers(&self, outcome: &Result<Numbered<GivenNumbers>, RecordError>) {
        if let Ok(Numbered {
            is_replayed: false,
            stored,
        }) = outcome
        {
            self.numbers.inc_by(stored.count());
        }
        self.count_number_request(outcome, "given");
    }

    /// Counts a request for a block of numbers.
    pub(super) fn count_block(&self, count: NonZeroU32, outcome: &Result<u64, RecordError>) {
        match outcome {
            Ok(_) => {
                self.numbers.inc_by(u64::from(count.get()));
                self.number_requests.with_label_values(&["given"]).inc();
            }
            Err(error) => self
                .number_requests
                .with_label_values(&[number_outcome_of(error)])
                .inc(),
        }
    }

    /// Counts a request to make a number void that reached the store.
    pub(super) fn count_void(&self, outcome: &Result<Numbered<VoidedNumber>, RecordError>) {
        self.count_number_request(outcome, "voided");
    }

    fn count_number_request<T>(&self, outcome: &Result<Numbered<T>, RecordError>, done: &str) {
        let outcome = match outcome {
            Ok(Numbered {
                is_replayed: true, ..
            }) => "replayed",
            Ok(Numbered {
                is_replayed: false, ..
            }) => done,
            Err(error) => number_outcome_of(error),
        };
        self.number_requests.with_label_values(&[outcome]).inc();
    }

    /// Counts reports that came in one request.
    pub(super) fn count_reports(
        &self,
        reports: usize,
        outcome: &Result<Vec<Grouped>, GroupFailure>,
    ) {
        let count = |outcome: &str, reports: usize| {
            self.conjunction_reports
                .with_label_values(&[outcome])
                .inc_by(u64::try_from(reports).unwrap_or(u64::MAX));
        };
        match outcome {
            Ok(grouped) => {
                let of = |created| {
                    grouped
                        .iter()
                        .filter(|report| report.created == created)
                        .count()
                };
                count("created", of(Some(true)));
                count("joined", of(Some(false)));
                count("ungrouped", of(None));
            }
            Err(GroupFailure::Report(_)) => count("refused", reports),
            Err(GroupFailure::Service(_)) => count("unavailable", reports),
        }
    }

    /// Counts conjunctions that were created near others of the same objects.
    pub(super) fn count_near(&self, created: usize) {
        self.conjunction_near
            .inc_by(u64::try_from(created).unwrap_or(u64::MAX));
    }

    /// Counts reports that were refused beside others of their request.
    pub fn count_refused_reports(&self, reports: usize) {
        let reports = u64::try_from(reports).unwrap_or(u64::MAX);
        self.conjunction_reports
            .with_label_values(&["refused"])
            .inc_by(reports);
    }

    /// What is registered, as it is now.
    pub(super) fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }
}

/// What a request about numbers ended in that was not done.
fn number_outcome_of(error: &RecordError) -> &'static str {
    match error {
        RecordError::Number(NumberRefusal::SeriesEnded { .. }) => "ended",
        error => outcome_of(error),
    }
}

/// What a request ended in that was not done.
fn outcome_of(error: &RecordError) -> &'static str {
    match error {
        RecordError::KeyConflict
        | RecordError::Number(NumberRefusal::KeyConflict { .. } | NumberRefusal::HasBegun { .. })
        | RecordError::Void(VoidRefusal::AlreadyVoid(_)) => "conflict",
        RecordError::Append(_)
        | RecordError::Group(_)
        | RecordError::Number(NumberRefusal::SeriesEnded { .. })
        | RecordError::Void(VoidRefusal::NotGiven { .. }) => "refused",
        RecordError::Clock(_)
        | RecordError::Busy
        | RecordError::Unreachable
        | RecordError::Unavailable => "unavailable",
        RecordError::Unknown => "unknown",
    }
}
