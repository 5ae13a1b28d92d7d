//! How a model is run, so that none is green because nothing happens in it.
//!
//! Each counts how often that came about which it is about, prints the count beside its iterations, and asserts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often something came about, over all iterations of a model.
#[derive(Clone, Default)]
pub(crate) struct Tally {
    iterations: Arc<AtomicUsize>,
    times: Arc<AtomicUsize>,
}

impl Tally {
    /// It came about so many times.
    pub(crate) fn count(&self, times: usize) {
        self.times.fetch_add(times, Ordering::Relaxed);
    }
}

/// Runs a model, and asserts that it had several interleavings and that its subject came about in some of them.
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
