//! Measures several subjects side by side. Each round measures every subject once, so that a slow
//! moment of the machine affects all of them.

use std::time::{Duration, Instant};

/// The target for a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// The figure must be less than this value.
    Under(f64),
    /// The figure must be at least this value.
    AtLeast(f64),
    /// No target. The figure is only shown for comparison.
    None,
}

/// The subjects of a comparison with their figures, in nanoseconds for each unit of work.
pub(crate) struct Comparison<'a> {
    subjects: Vec<Subject<'a>>,
}

struct Subject<'a> {
    name: String,
    target: Target,
    /// A function that does some work, and returns the nanoseconds for each unit of work.
    round: Box<dyn FnMut() -> f64 + 'a>,
    figures: Vec<f64>,
}

impl<'a> Comparison<'a> {
    pub(crate) fn new() -> Self {
        Self {
            subjects: Vec::new(),
        }
    }

    /// Adds a subject. `round` does some work, and returns the nanoseconds for each unit of work.
    pub(crate) fn add(
        &mut self,
        name: impl Into<String>,
        target: Target,
        round: impl FnMut() -> f64 + 'a,
    ) {
        self.subjects.push(Subject {
            name: name.into(),
            target,
            round: Box::new(round),
            figures: Vec::new(),
        });
    }

    /// Measures every subject once in each round, and prints a table. One more round precedes these
    /// rounds and does not count.
    pub(crate) fn run(mut self, title: &str, rounds: usize) {
        for round in 0..=rounds {
            for subject in &mut self.subjects {
                let figure = (subject.round)();
                if round > 0 {
                    subject.figures.push(figure);
                }
            }
        }
        println!("\n{title}: median of {rounds} rounds, and from the first tenth to the last");
        for Subject {
            name,
            target,
            figures,
            ..
        } in &mut self.subjects
        {
            report(name, "ns", *target, figures);
        }
    }
}

/// Prints one row of the table: the median, the spread of the figures, and whether the median meets
/// the target.
pub(crate) fn report(name: &str, unit: &str, target: Target, figures: &mut [f64]) {
    let middle = median(figures);
    let verdict = match target {
        Target::Under(most) if middle < most => format!("PASS (under {most} {unit})"),
        Target::Under(most) => format!("MISS (under {most} {unit})"),
        Target::AtLeast(least) if middle >= least => format!("PASS (at least {least} {unit})"),
        Target::AtLeast(least) => format!("MISS (at least {least} {unit})"),
        Target::None => String::new(),
    };
    let (low, high) = (
        figures[figures.len() / 10],
        figures[figures.len() - 1 - figures.len() / 10],
    );
    println!(
        "  {name:<52} {middle:>9.2} {unit:<3} {:>21}   {verdict}",
        format!("{low:.2} .. {high:.2}")
    );
}

/// Returns the median, and sorts the figures.
pub(crate) fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Runs `work`, which does `units` units of work, and returns the nanoseconds for each unit.
pub(crate) fn time_per_unit(units: u32, work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    nanos(began.elapsed()) / f64::from(units)
}

fn nanos(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e9
}

/// Returns the ratio of two figures for each round. Both figures of a round were measured in the
/// same state of the machine.
pub(crate) fn ratios(figures: &[f64], of: &[f64]) -> Vec<f64> {
    figures
        .iter()
        .zip(of)
        .map(|(figure, of)| figure / of)
        .collect()
}
