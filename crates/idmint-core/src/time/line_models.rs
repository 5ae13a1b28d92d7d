//! Model checks of [`ClockLine`]. They explore every interleaving of a reader and a writer, and
//! every order in which the reader may see the writes. [`explore`] asserts that each model reaches
//! the situation that it tests, and counts how often.
//!
//! The reader is the spawned thread. If it were the writer instead, the checker would miss the case
//! that the reader sees the new line at its first attempt. The boot time of a model is a counter:
//! each read is later than all earlier ones. Because these reads are Relaxed, they order no other
//! memory accesses.

use std::cell::Cell;

use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::time::models::explore;

/// The boot time that the first read returns, in nanoseconds.
const FIRST_LOOK: u64 = 1000;
/// All reads of the boot time except the first return slightly more than this many nanoseconds, as
/// if a thread had been suspended after the first read.
const SLEEP: u64 = 100_000;

/// A time estimate that is 0 at boot, and a simulated time since boot that advances on each read.
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
        // If the reader mixed values of the old line and the new one, the time that it computes
        // would differ from the times on both lines.
        watch.line.redraw(|| (500, 70_000, 30));
        let (shown, attempts) = reader.join().expect("the model does not panic");
        tally.count(usize::from(shown == 70_530 && attempts == 1));
    });
}

#[test]
fn loom_the_estimate_never_goes_back_while_it_is_redrawn() {
    explore("the line was redrawn during a reading", |tally| {
        // At first, the estimated time advances faster than the time since boot. `redraw_from`
        // below makes it advance more slowly than the time since boot.
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
