//! Models of the line: a reader and a writer in every interleaving, and every order in which the reader may see what the
//! writer wrote. What they count and assert about themselves: [`explore`].
//!
//! The reader is the thread that is spawned: the other way round the checker misses that a first attempt sees the new line.
//! The boot time of a model is a counter: each look at it is later than all before, and, being Relaxed, orders nothing else.

use std::cell::Cell;

use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::time::models::explore;

/// The boot time at the first look at it.
const FIRST_LOOK: u64 = 1000;
/// From then to the second look, somebody sleeps. All others follow at once.
const SLEEP: u64 = 100_000;

/// A line through nothing, and the boot time that it is read at.
struct Watch {
    line: ClockLine,
    looks: AtomicU64,
}

impl Watch {
    fn new(correction: i64) -> Arc<Watch> {
        let line = ClockLine::starting(0, 0);
        line.redraw(|| (0, 0, correction));
        Arc::new(Watch {
            line,
            looks: AtomicU64::new(0),
        })
    }

    fn look(&self) -> u64 {
        match self.looks.fetch_add(1, Ordering::Relaxed) {
            0 => FIRST_LOOK,
            later => SLEEP + later,
        }
    }
}

#[test]
fn loom_a_reading_is_of_one_line() {
    explore("the new line was read at the first attempt", |tally| {
        let watch = Watch::new(0);
        let reader = {
            let watch = Arc::clone(&watch);
            thread::spawn(move || {
                let looks = Cell::new(0);
                let shown = watch.line.at(|| {
                    looks.set(looks.get() + 1);
                    FIRST_LOOK
                });
                assert!(
                    [1_000, 70_530].contains(&shown),
                    "{shown} is of no line that was ever drawn"
                );
                (shown, looks.get())
            })
        };
        // Any mixture of this line and the one before shows another time than either.
        watch.line.redraw(|| (500, 70_000, 30));
        let (shown, attempts) = reader.join().expect("the model does not panic");
        tally.count(usize::from(shown == 70_530 && attempts == 1));
    });
}

#[test]
fn loom_the_estimate_never_goes_back_while_it_is_redrawn() {
    explore("the line was redrawn during a reading", |tally| {
        // From a line that gains on the boot time to one that falls behind it.
        let watch = Watch::new(i64::MAX);
        let reader = {
            let watch = Arc::clone(&watch);
            thread::spawn(move || {
                let attempts = Cell::new(0);
                let readings = [(), ()].map(|()| {
                    watch.line.at(|| {
                        attempts.set(attempts.get() + 1);
                        watch.look()
                    })
                });
                (readings, attempts.get())
            })
        };
        watch.line.redraw_from(|_, _| i64::MIN, || watch.look());
        let ([first, second], attempts) = reader.join().expect("the model does not panic");
        assert!(second >= first, "{second} came after {first}");
        tally.count(usize::from(attempts > 2));
    });
}
