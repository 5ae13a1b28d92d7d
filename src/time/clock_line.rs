//! The estimate of the clock as a line, which readers follow without a lock while it is redrawn.

use super::sync::{AtomicI64, AtomicU64, Ordering, fence, spin_loop};

/// The estimate is drawn towards the wall clock by at most one part in this many.
const SLEW_DIVISOR: u64 = 10;

/// The estimate as a line through one point, bent towards a correction; read and redrawn without a lock.
///
/// `estimate = base + passed + correction`, of which a tenth of the time passed is applied at most.
#[derive(Debug)]
pub(super) struct ClockLine {
    /// Even while the line stands, odd while it is being redrawn; a reader that sees it change reads again.
    /// Written by: `redraw_from`, by one thread at a time (the `watched` lock). Read by: `at`.
    /// Invariant: only grows. Ordering: Acquire and Release around the three values below, so that a reader that saw
    /// the same even number before and after holds values, and a boot time, of one line.
    /// Tested by: `loom_a_reading_is_of_one_line`, `loom_the_estimate_never_goes_back_while_it_is_redrawn`.
    version: AtomicU64,
    boot_nanos: AtomicU64,
    base_nanos: AtomicU64,
    correction_nanos: AtomicI64,
}

impl ClockLine {
    /// A line that begins at `base` and is not bent.
    pub(super) fn starting(boot_nanos: u64, base_nanos: u64) -> ClockLine {
        ClockLine {
            version: AtomicU64::new(0),
            boot_nanos: AtomicU64::new(boot_nanos),
            base_nanos: AtomicU64::new(base_nanos),
            correction_nanos: AtomicI64::new(0),
        }
    }

    /// The estimate at the boot time that `boot_now` reads. It is read while the line is known to stand: a reader that
    /// slept between the two would apply an old line to a new time.
    // Always: every reservation reads it.
    #[inline(always)]
    pub(super) fn at(&self, boot_now: impl Fn() -> u64) -> u64 {
        loop {
            let version = self.version.load(Ordering::Acquire);
            let boot_nanos = self.boot_nanos.load(Ordering::Relaxed);
            let base_nanos = self.base_nanos.load(Ordering::Relaxed);
            let correction_nanos = self.correction_nanos.load(Ordering::Relaxed);
            let now = boot_now();
            fence(Ordering::Acquire);
            if version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version {
                return estimate(base_nanos, now.saturating_sub(boot_nanos), correction_nanos);
            }
            spin_loop();
        }
    }

    /// Replaces the line by one through `(boot, base)` with a correction.
    pub(super) fn redraw(&self, point: impl FnOnce() -> (u64, u64, i64)) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        let (boot_nanos, base_nanos, correction_nanos) = point();
        self.boot_nanos.store(boot_nanos, Ordering::Relaxed);
        self.base_nanos.store(base_nanos, Ordering::Relaxed);
        self.correction_nanos
            .store(correction_nanos, Ordering::Relaxed);
        self.version.store(version + 2, Ordering::Release);
    }

    /// Bends the line from where it is: `correction` is asked with the estimate and the boot time of this moment.
    pub(super) fn redraw_from(
        &self,
        correction: impl FnOnce(u64, u64) -> i64,
        boot_now: impl FnOnce() -> u64,
    ) {
        self.redraw(|| {
            // Read after the version turned odd: no reader can apply the old line to a later boot time than this one.
            let boot_nanos = boot_now();
            let base_nanos = self.estimate_at(boot_nanos);
            (boot_nanos, base_nanos, correction(base_nanos, boot_nanos))
        });
    }

    /// Lifts the line from where it is to `base`, which is asked with the boot time of this moment, if that is higher.
    pub(super) fn lift(&self, base: impl FnOnce(u64) -> u64, boot_now: impl FnOnce() -> u64) {
        self.redraw(|| {
            let boot_nanos = boot_now();
            (
                boot_nanos,
                self.estimate_at(boot_nanos).max(base(boot_nanos)),
                0,
            )
        });
    }

    /// The estimate by the line that is about to be redrawn.
    fn estimate_at(&self, boot_nanos: u64) -> u64 {
        let passed = boot_nanos.saturating_sub(self.boot_nanos.load(Ordering::Relaxed));
        let base = self.base_nanos.load(Ordering::Relaxed);
        estimate(base, passed, self.correction_nanos.load(Ordering::Relaxed))
    }
}

#[inline]
fn estimate(base_nanos: u64, passed_nanos: u64, correction_nanos: i64) -> u64 {
    let applied_nanos = correction_nanos
        .unsigned_abs()
        .min(passed_nanos / SLEW_DIVISOR);
    let straight = base_nanos.saturating_add(passed_nanos);
    if correction_nanos < 0 {
        straight - applied_nanos
    } else {
        straight.saturating_add(applied_nanos)
    }
}

#[cfg(all(test, idmint_loom))]
#[path = "line_models.rs"]
mod models;
