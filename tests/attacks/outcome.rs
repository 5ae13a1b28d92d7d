//! The result of an attack: a row of the table, and a list of the limits that were violated.

use std::time::Duration;

use super::aim::{Protocol, Way};
use super::honest::Seen;
use super::metrics::Shed;

/// The maximum resident memory in MiB. The limit is higher in an unoptimized build. Parsing a body
/// then takes longer than the service estimates, so the service parses more bodies at once.
pub(crate) const RESIDENT_MAX_MIB: u64 = if IS_OPTIMISED { 256 } else { 384 };

/// The p99 (99th percentile of the response time) up to which a result is accepted. Such a value
/// depends more on the machine than on the service. Four processes share a few cores, perhaps with
/// unrelated processes, so each of them sometimes waits for the time slices of others.
pub(crate) const P99_FLOOR: Duration = Duration::from_millis(50);

/// The limits that an honest caller's results must keep.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The minimum percentage of requests on kept connections that must succeed.
    pub(crate) answered_min_percent: usize,
    /// A p99 (99th percentile of the response time) up to this value is always accepted. A higher
    /// p99 is compared with the p99 during the attack on the control.
    pub(crate) p99_floor: Duration,
}

impl Bounds {
    /// The limits for attacks that close connections or fill tables of the service.
    pub(crate) const USUAL: Bounds = Bounds {
        answered_min_percent: 99,
        p99_floor: P99_FLOOR,
    };
    /// The limits for attacks whose requests cause long work or never end. They also apply if the
    /// control responds, because such a control keeps the machine as busy as the service does.
    ///
    /// In an unoptimized build, one request in a hundred may fail. The service then admits more
    /// long work than it can finish soon.
    pub(crate) const STRICT: Bounds = Bounds {
        answered_min_percent: if IS_OPTIMISED { 100 } else { 99 },
        p99_floor: Duration::from_millis(15),
    };
    /// The limits for a few attackers whose requests are as dear as possible.
    pub(crate) const CLOSE: Bounds = Bounds {
        answered_min_percent: Bounds::STRICT.answered_min_percent,
        p99_floor: Duration::from_millis(5),
    };
}

/// `true` in an optimized build, for which the service's estimates of long work are made. An
/// unoptimized build admits more work than it can finish soon, so its times are printed but not
/// checked.
pub(crate) const IS_OPTIMISED: bool = !cfg!(debug_assertions);

/// The results of the honest caller in one round: first during the attack on the control, then
/// during the attack on the service.
pub(crate) struct Round {
    pub(crate) control: Seen,
    pub(crate) attacked: Seen,
    pub(crate) newcomers: Seen,
    /// `true` if the attackers sent enough and the service defended itself.
    pub(crate) is_attack: bool,
    pub(crate) bounds: Bounds,
}

impl Round {
    pub(crate) fn is_fast_enough(&self) -> bool {
        !IS_OPTIMISED || self.attacked.p99() <= self.p99_max()
    }

    /// `true` if the attack need not be repeated. In an unoptimized build, a round in which too
    /// many requests failed is also repeated, because the machine may have been busy.
    pub(crate) fn is_good(&self) -> bool {
        self.is_fast_enough() && (IS_OPTIMISED || !self.lost_too_many())
    }

    fn p99_max(&self) -> Duration {
        self.bounds
            .p99_floor
            .max(self.control.p99().saturating_mul(2))
    }

    fn lost_too_many(&self) -> bool {
        self.attacked.is_answered() * 100 < self.attacked.asked() * self.bounds.answered_min_percent
    }
}

pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    pub(crate) way: Way,
    pub(crate) rounds: Vec<Round>,
    pub(crate) peak_mib: u64,
    pub(crate) shed: Shed,
    /// The number of responses with the status 500, and in an optimized build also 504, according to
    /// the metrics of the service.
    pub(crate) failed: u64,
    pub(crate) has_panicked: bool,
}

impl Outcome {
    pub(crate) fn objections(&self) -> Vec<String> {
        let mut objections = Vec::new();
        let mut object = |is_wrong: bool, what: String| objections.extend(is_wrong.then_some(what));
        object(
            self.failed > 0,
            format!("{} answers of 500 or 504", self.failed),
        );
        object(self.has_panicked, "the log tells of a panic".to_owned());
        object(
            self.peak_mib > RESIDENT_MAX_MIB,
            format!("{} MiB resident", self.peak_mib),
        );
        object(
            self.rounds.iter().any(|round| !round.is_attack),
            "too little was done, or nobody noticed".to_owned(),
        );
        let judged = match IS_OPTIMISED {
            true => &self.rounds[..],
            // In an unoptimized build, judge only the last round, because each earlier round was
            // repeated after it had lost too many requests.
            false => &self.rounds[self.rounds.len() - 1..],
        };
        for round in judged.iter().filter(|round| round.lost_too_many()) {
            let refusals: Vec<_> = round.attacked.refusals().iter().take(5).collect();
            object(
                true,
                format!(
                    "{} of {} answered: {refusals:?} …",
                    round.attacked.is_answered(),
                    round.attacked.asked()
                ),
            );
        }
        let p99s = || {
            self.rounds
                .iter()
                .map(|round| (round.attacked.p99(), round.control.p99()))
                .collect::<Vec<_>>()
        };
        object(
            !self.rounds.iter().any(Round::is_fast_enough),
            format!("p99 under attack and of the control: {:?}", p99s()),
        );
        objections
    }

    /// Returns `true` if both are the same attack over the same protocol.
    pub(crate) fn is_like(&self, other: &Outcome) -> bool {
        self.name == other.name && self.way.protocol == other.way.protocol
    }

    /// Returns the p99 divided by its limit. A ratio above 1 violates the limit.
    pub(crate) fn slowness(&self) -> f64 {
        let last = self.rounds.last().expect("at least one");
        last.attacked.p99().as_secs_f64() / last.p99_max().as_secs_f64()
    }

    /// Returns the result as a row of a Markdown table, with the times of the last round.
    pub(crate) fn row(&self) -> String {
        let last = self.rounds.last().expect("at least one");
        let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        let share = |seen: &Seen| format!("{} of {}", seen.is_answered(), seen.asked());
        format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} MiB | {} |",
            self.name,
            match self.way.protocol {
                Protocol::Http1 => "HTTP/1.1",
                Protocol::Http2 => "HTTP/2",
                Protocol::Tls => "TLS",
            },
            self.way.addresses,
            share(&last.attacked),
            share(&last.newcomers),
            ms(last.attacked.p99()),
            ms(last.control.p99()),
            self.peak_mib,
            self.shed,
        )
    }
}

pub(crate) const TABLE_HEAD: &str = "\
| attack | by | addresses | honest answered | newcomers answered | p99 | control's p99 | peak memory | shed, by reason |
|---|---|---|---|---|---|---|---|---|
";
