//! What came of an attack, as a row of the table and as objections.

use std::time::Duration;

use super::aim::{Protocol, Way};
use super::honest::Seen;
use super::metrics::Shed;

/// Without optimisation a body is parsed for longer, beside others, than is estimated: on a busy machine they are more at once.
pub(crate) const RESIDENT_MAX_MIB: u64 = if IS_OPTIMISED { 256 } else { 384 };

/// Beside a control that does nothing, a p99 up to this says more about the machine than about the service: four processes
/// share its few cores, perhaps with others that have nothing to do with them, and each waits for a few time slices of the rest.
pub(crate) const P99_FLOOR: Duration = Duration::from_millis(50);

/// What an honest caller may see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Of 100 requests on kept connections so many are answered.
    pub(crate) answered_min_percent: usize,
    /// A p99 up to this is no objection, whatever that of the control.
    pub(crate) p99_floor: Duration,
}

impl Bounds {
    /// For attacks that end connections or fill tables.
    pub(crate) const USUAL: Bounds = Bounds {
        answered_min_percent: 99,
        p99_floor: P99_FLOOR,
    };
    /// For requests that are long work, or never whole, and beside a control that answers, since that keeps the machine busy, too.
    /// Without optimisation one in a hundred may be, since more long work is admitted then than can be done soon.
    pub(crate) const STRICT: Bounds = Bounds {
        answered_min_percent: if IS_OPTIMISED { 100 } else { 99 },
        p99_floor: Duration::from_millis(20),
    };
}

/// What long work takes is estimated for an optimised build. Without optimisation more of it is admitted than can be done
/// soon, and times are only printed.
pub(crate) const IS_OPTIMISED: bool = !cfg!(debug_assertions);

/// The honest caller beside the control, and then beside the attack.
pub(crate) struct Round {
    pub(crate) control: Seen,
    pub(crate) attacked: Seen,
    pub(crate) newcomers: Seen,
    /// Whether as much was done as makes it an attack, and the service defended itself.
    pub(crate) is_attack: bool,
    pub(crate) bounds: Bounds,
}

impl Round {
    pub(crate) fn is_fast_enough(&self) -> bool {
        !IS_OPTIMISED || self.attacked.p99() <= self.p99_max()
    }

    fn p99_max(&self) -> Duration {
        self.bounds.p99_floor.max(2 * self.control.p99())
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
    /// Answers of 500 and 504, by the service's own count.
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
        for round in self.rounds.iter().filter(|round| round.lost_too_many()) {
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

    /// Whether both are the same attack by the same protocol.
    pub(crate) fn is_like(&self, other: &Outcome) -> bool {
        self.name == other.name && self.way.protocol == other.way.protocol
    }

    /// How near its p99 comes to what it may be: above 1 it is an objection.
    pub(crate) fn slowness(&self) -> f64 {
        let last = self.rounds.last().expect("at least one");
        last.attacked.p99().as_secs_f64() / last.p99_max().as_secs_f64()
    }

    /// Its row in Markdown. Of several rounds, the last one counts for times.
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
