//! The counters that the service increments when an event happens. Minted ids are counted by each
//! format. The module `metrics` reads those counts when metrics are scraped.

use std::num::NonZeroU32;
use std::time::Duration;

use prometheus::proto::MetricFamily;
use prometheus::{Gauge, Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts, Registry};

use super::error::{GroupFailure, ServiceError};
use idmint_core::named;
use idmint_core::time::{Observation, WallStep};
use idmint_records::conjunction::Grouped;
use idmint_records::ledger::{
    AppendRefusal, ClosedSeries, GivenNumbers, NumberRefusal, VoidRefusal, VoidedNumber,
};
use idmint_storage::{Appended, Numbered, RecordError};

/// Histogram buckets, in seconds, for the time that a response is held until the clock reaches the
/// time of its ids. They range from 100 µs to the longest wait that can be configured.
const WAIT_BUCKETS_SECONDS: [f64; 11] = [
    1e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 0.1, 0.25, 1.0, 60.0,
];

/// Histogram buckets, in seconds, for backward steps of the clock. They range from 50 ms, as after
/// a smeared leap second, to a year, as with a clock that was never set.
const REGRESSION_BUCKETS_SECONDS: [f64; 8] =
    [0.05, 0.25, 1.0, 5.0, 60.0, 3600.0, 86_400.0, 31_536_000.0];

named! {
    /// The outcome of a decode request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum DecodeOutcome {
        /// The text is an id of some format.
        Matched = "matched",
        /// The text is not an id of any format.
        NoMatch = "no_match",
        /// No text was decoded, because the request is invalid.
        Invalid = "invalid",
        /// No text was decoded, because the service is overloaded or failed.
        Refused = "refused",
    }
}

/// The metrics of the service, except the counters of minted ids and mint requests, which each
/// format keeps itself.
pub struct ServiceCounters {
    registry: Registry,
    /// The time, in seconds, for which responses were held until the clock reached the time of
    /// their ids.
    pub mint_wait_seconds: Histogram,
    /// The number of starts that found no record of earlier ids. The ids of such a start are unique
    /// only if the clock was not set back.
    pub horizon_cold_starts: IntCounter,
    clock_regressions: IntCounter,
    clock_regression_seconds: Histogram,
    clock_skew_seconds: Gauge,
    /// The database size of the fullest etcd member of this node's fleet, and the quota of that
    /// member.
    pub coordinator_space: SpaceGauges,
    data_dir_free: Gauge,
    /// The number of append rounds that a fleet node could not write to its journal. A round is a
    /// group of requests that are written together. The journal is the local copy of the records
    /// that the node commits to etcd.
    pub journal_failures: IntCounter,
    decode_requests: IntCounterVec,
    ledger_appends: IntCounterVec,
    conjunction_reports: IntCounterVec,
    conjunction_near: IntCounter,
    numbers: IntCounter,
    number_requests: IntCounterVec,
}

/// The used space and the space quota of the fleet's coordinator, in bytes.
#[derive(Clone)]
pub struct SpaceGauges {
    used: Gauge,
    quota: Gauge,
}

impl SpaceGauges {
    /// Sets the used space and the quota of the coordinator, in bytes.
    pub fn set(&self, used: u64, quota: u64) {
        self.used.set(bytes(used));
        self.quota.set(bytes(quota));
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
    /// Registers all metrics, with value 0.
    ///
    /// # Errors
    /// Returns an error if the registry already has a metric with one of these names.
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
                "Time that responses were held until their ids were due.",
                &WAIT_BUCKETS_SECONDS,
            )?,
            horizon_cold_starts: counter(
                "idmint_horizon_cold_starts_total",
                "Starts that found no record of earlier ids.",
            )?,
            clock_regressions: counter(
                "idmint_clock_regressions_total",
                "Backward steps of the wall clock.",
            )?,
            clock_regression_seconds: histogram(
                "idmint_clock_regression_seconds",
                "Size of backward steps of the wall clock.",
                &REGRESSION_BUCKETS_SECONDS,
            )?,
            clock_skew_seconds: gauge(
                "idmint_clock_skew_seconds",
                "Wall clock minus the time that ids are minted with.",
            )?,
            coordinator_space: SpaceGauges {
                used: gauge(
                    "idmint_coordinator_used_bytes",
                    "Database size of the fullest etcd member of this node's fleet; 0 without a fleet.",
                )?,
                quota: gauge(
                    "idmint_coordinator_quota_bytes",
                    "Quota of that etcd member; appends are refused from three quarters of it on.",
                )?,
            },
            data_dir_free: gauge(
                "idmint_data_dir_free_bytes",
                "Free space on the file system of storage.data_dir; NaN if it is not known.",
            )?,
            journal_failures: counter(
                "idmint_journal_failures_total",
                "Append rounds that a fleet node could not write to its journal.",
            )?,
            decode_requests: by_outcome(
                "idmint_decode_requests_total",
                "Decode requests, by outcome.",
                &DecodeOutcome::ALL.map(DecodeOutcome::name),
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
            numbers: counter("idmint_numbers_total", "Numbers given, in all series.")?,
            number_requests: by_outcome(
                "idmint_number_requests_total",
                "Requests for numbers, voids and closed series, by outcome.",
                &[
                    "given",
                    "voided",
                    "closed",
                    "replayed",
                    "conflict",
                    "ended",
                    "held",
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
                &[
                    "created",
                    "joined",
                    "ungrouped",
                    "conflict",
                    "refused",
                    "unavailable",
                    "unknown",
                ],
            )?,
        })
    }

    /// Records how far the service's clock differs from the wall clock, and counts a backward step
    /// of the wall clock.
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

    /// Sets the gauge of the free space, in bytes, on the file system of the data directory. `None`
    /// means that the free space is unknown, and sets the gauge to NaN.
    pub fn observe_free_space(&self, free: Option<u64>) {
        self.data_dir_free.set(free.map_or(f64::NAN, bytes));
    }

    /// Returns how often the wall clock was set back, and by how many seconds in total.
    pub fn clock_regressions(&self) -> (u64, f64) {
        let seconds = self.clock_regression_seconds.get_sample_sum();
        (self.clock_regressions.get(), seconds)
    }

    /// Counts one backward step of the wall clock by `by`, whether it occurred while the service
    /// ran or before it started.
    pub fn count_regression(&self, by: Duration) {
        self.clock_regressions.inc();
        self.clock_regression_seconds.observe(by.as_secs_f64());
    }

    /// Counts a decode request.
    pub fn count_decode(&self, outcome: DecodeOutcome) {
        let outcome = outcome.name();
        self.decode_requests.with_label_values(&[outcome]).inc();
    }

    /// Counts a request that creates or extends a ledger, by the outcome of the request in the
    /// store.
    pub(super) fn count_append(&self, outcome: &Result<Appended, RecordError>) {
        let outcome = match outcome {
            Ok(appended) if appended.is_replayed => "replayed",
            Ok(_) => "appended",
            Err(RecordError::Append(AppendRefusal::HeadMoved { .. })) => "head_moved",
            Err(error) => outcome_of(error),
        };
        self.ledger_appends.with_label_values(&[outcome]).inc();
    }

    /// Counts a request for numbers of a series without gaps, by the outcome that the record store
    /// reported.
    pub(super) fn count_numbers(&self, outcome: &Result<Numbered<GivenNumbers>, RecordError>) {
        if let Ok(Numbered {
            is_replayed: false,
            stored,
            ..
        }) = outcome
        {
            self.numbers.inc_by(stored.count());
        }
        self.count_number_request(outcome, "given");
    }

    /// Counts a request for `count` numbers of a series that reserves blocks, by the outcome of the
    /// request.
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

    pub(super) fn count_void(&self, outcome: &Result<Numbered<VoidedNumber>, RecordError>) {
        self.count_number_request(outcome, "voided");
    }

    pub(super) fn count_close(&self, outcome: &Result<Numbered<ClosedSeries>, RecordError>) {
        self.count_number_request(outcome, "closed");
    }

    fn count_number_request<T>(&self, outcome: &Result<Numbered<T>, RecordError>, done: &str) {
        let outcome = match outcome {
            Ok(numbered) if numbered.is_replayed => "replayed",
            Ok(_) => done,
            Err(error) => number_outcome_of(error),
        };
        self.number_requests.with_label_values(&[outcome]).inc();
    }

    /// Counts the reports of one request by outcome.
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
            Err(GroupFailure::Service(ServiceError::Records(error))) => {
                count(outcome_of(error), reports)
            }
            Err(GroupFailure::Service(_)) => count("unavailable", reports),
        }
    }

    /// Counts newly created conjunctions that are within a minute of another conjunction of the
    /// same two objects.
    pub(super) fn count_near(&self, created: usize) {
        self.conjunction_near
            .inc_by(u64::try_from(created).unwrap_or(u64::MAX));
    }

    /// Counts reports that were refused although other reports of the same request were accepted.
    pub fn count_refused_reports(&self, reports: usize) {
        let reports = u64::try_from(reports).unwrap_or(u64::MAX);
        self.conjunction_reports
            .with_label_values(&["refused"])
            .inc_by(reports);
    }

    /// Returns all registered metrics with their current values.
    pub(super) fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }
}

/// Returns the value of the metric label `outcome` for a failed request for numbers of a series.
fn number_outcome_of(error: &RecordError) -> &'static str {
    match error {
        RecordError::Number(NumberRefusal::SeriesEnded { .. } | NumberRefusal::Closed(_)) => {
            "ended"
        }
        RecordError::Number(NumberRefusal::Held { .. }) => "held",
        error => outcome_of(error),
    }
}

/// Returns the value of the metric label `outcome` for a failed request to the record store.
fn outcome_of(error: &RecordError) -> &'static str {
    match error {
        RecordError::KeyConflict
        | RecordError::Number(
            NumberRefusal::KeyConflict { .. }
            | NumberRefusal::HasBegun { .. }
            | NumberRefusal::NotCorrectable { .. }
            | NumberRefusal::NotHeld { .. },
        )
        | RecordError::Void(VoidRefusal::AlreadyVoid(_)) => "conflict",
        RecordError::Append(_)
        | RecordError::Group(_)
        | RecordError::Number(
            NumberRefusal::BeginsBelow { .. }
            | NumberRefusal::SeriesEnded { .. }
            | NumberRefusal::Closed(_)
            | NumberRefusal::NotAdmitted(_)
            | NumberRefusal::ResumesOutside { .. },
        )
        | RecordError::Void(VoidRefusal::NotGiven { .. }) => "refused",
        RecordError::Clock(_)
        | RecordError::Number(NumberRefusal::Held { .. })
        | RecordError::Busy
        | RecordError::Unreachable(_)
        | RecordError::Unavailable(_) => "unavailable",
        RecordError::Unknown => "unknown",
    }
}
