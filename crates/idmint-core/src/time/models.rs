//! Runs loom models. A model that never reaches the situation it is meant to test would pass
//! without testing anything.
//!
//! Each model therefore counts how often the situation occurs, prints this count and the number of
//! iterations, and asserts that the count is not zero.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts how often the tested situation occurred, over all iterations of a loom model.
#[derive(Clone, Default)]
pub(crate) struct Tally {
    iterations: Arc<AtomicUsize>,
    times: Arc<AtomicUsize>,
}

impl Tally {
    /// Adds `times` occurrences of the situation.
    pub(crate) fn count(&self, times: usize) {
        self.times.fetch_add(times, Ordering::Relaxed);
    }
}

/// Runs a loom model. Asserts that it has several interleavings, and that the tested situation
/// occurs in at least one of them. `subject` describes this situation.
pub(crate) fn explore(subject: &str, model: impl Fn(&Tally) + Send + Sync + 'static) {
    let tally = Tally::default();
    let counted = tally.clone();
    loom::model(move || {
        counted.iterations.fetch_add(1, Ordering::Relaxed);
        model(&counted);
    });
    let [iterations, times] =
        [&tally.iterations, &tally.times].map(|count| count.load(Ordering::Relaxed));
    println!("{iterations} iterations, {times} times {subject}");
    assert!(
        iterations > 2,
        "a model of {iterations} interleavings models nothing"
    );
    assert!(times > 0, "never {subject}");
}
