//! What came of an attack, as a row of the table and as objections.

use std::time::Duration;

use super::honest::Seen;
use super::metrics::Shed;

/// Without optimisation a body is parsed for longer, beside others, than is estimated: on a busy machine they are more at once.
pub(crate) const RESIDENT_MAX_MIB: u64 = if IS_OPTIMISED { 256 } else { 384 };

/// Of 100 honest requests on kept connections so many are answered.
const ANSWERED_MIN_PERCENT: usize = 99;

/// Beside a control that does nothing, a p99 up to this says more about the machine than about the service: four processes
/// share its few cores, perhaps with others that have nothing to do with them, and each waits for a few time slices of the rest.
pub(crate) const P99_FLOOR: Duration = Duration::from_millis(50);

/// Beside a control that answers, the machine is busy with that too.
pub(crate) const P99_ANSWERED_FLOOR: Duration = Duration::from_millis(20);

/// What long work takes is estimated for an optimised build. Without optimisation more of it is admitted than can be done
/// soon, and times are only printed.
pub(crate) const IS_OPTIMISED: bool = !cfg!(debug_assertions);

/// The honest caller beside the control, and then beside the attack.
pub(crate) struct Round {
    pub(crate) control: Seen,
    pub(crate) attacked: Seen,
    pub(crate) newcomers: Seen,
    /// A p99 up to this is no objection.
    pub(crate) p99_floor: Duration,
}

impl Round {
    pub(crate) fn is_fast_enough(&self) -> bool {
        !IS_OPTIMISED || self.attacked.p99() <= self.p99_floor.max(2 * self.control.p99())
    }

    fn lost_too_many(&self) -> bool {
        self.attacked.is_answered() * 100 < self.attacked.asked() * ANSWERED_MIN_PERCENT
    }
}

pub(crate) struct Outcome {
    pub(crate) name: &'static str,
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
        object(self.failed > 0, format!("{} answers of 500 or 504", self.failed));
        object(self.has_panicked, "the log tells of a panic".to_owned());
        object(self.peak_mib > RESIDENT_MAX_MIB, format!("{} MiB resident", self.peak_mib));
        for round in self.rounds.iter().filter(|round| round.lost_too_many()) {
            let refusals: Vec<_> = round.attacked.refusals().iter().take(5).collect();
            object(
                true,
                format!("{} of {} answered: {refusals:?} …", round.attacked.is_answered(), round.attacked.asked()),
            );
        }
        let p99s = || self.rounds.iter().map(|round| (round.attacked.p99(), round.control.p99())).collect::<Vec<_>>();
        object(
            !self.rounds.iter().any(Round::is_fast_enough),
            format!("p99 under attack and of the control: {:?}", p99s()),
        );
        objections
    }

    /// Its row in Markdown. Of several rounds, the last one counts for times.
    pub(crate) fn row(&self) -> String {
        let last = self.rounds.last().expect("at least one");
        let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        let share = |seen: &Seen| format!("{} of {}", seen.is_answered(), seen.asked());
        format!(
            "| {} | {} | {} | {} | {} | {} MiB | {} |",
            self.name,
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
| attack | honest answered | newcomers answered | p99 | control's p99 | peak memory | shed, by reason |
|---|---|---|---|---|---|---|
";
