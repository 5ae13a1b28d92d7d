//! The estimate of the clock as a straight line over the time since boot. The line can be read
//! without a lock while another thread replaces it.

use crate::sync::{AtomicI64, AtomicU64, Ordering, fence, spin_loop};

/// Limits the slew: within a time span, the estimate moves towards the wall clock by at most a
/// tenth of the span. For example, it moves by at most 1 s in 10 s.
const SLEW_DIVISOR: u64 = 10;

/// The estimate of the clock as a straight line through one point, with a correction. Reading and
/// replacing the line takes no lock.
///
/// `estimate = base + passed + correction`, where `passed` is the time since the point. The
/// correction is applied gradually: at most a tenth of `passed` at any time.
#[derive(Debug)]
pub(super) struct ClockLine {
    /// Even while the line is stable, and odd while it is being replaced. A reader that sees this
    /// number change reads the line again.
    /// Written by: `redraw`, by one thread at a time (it holds the lock `watched`).
    /// Read by: `at`.
    /// Invariant: never decreases.
    /// Ordering: Acquire and Release around the three values below. If a reader sees the same even
    /// number before and after reading them, the values and the boot time belong to the same line.
    /// Tested by: `loom_a_reading_is_of_one_line`,
    /// `loom_the_estimate_never_goes_back_while_it_is_redrawn`.
    version: AtomicU64,
    boot_nanos: AtomicU64,
    base_nanos: AtomicU64,
    correction_nanos: AtomicI64,
}

impl ClockLine {
    /// Creates a line on which the estimated time is `base_nanos` when `boot_nanos` have passed
    /// since boot. The line has no correction towards the wall clock yet.
    pub(super) fn starting(boot_nanos: u64, base_nanos: u64) -> ClockLine {
        ClockLine {
            version: AtomicU64::new(0),
            boot_nanos: AtomicU64::new(boot_nanos),
            base_nanos: AtomicU64::new(base_nanos),
            correction_nanos: AtomicI64::new(0),
        }
    }

    /// Returns the estimate at the current boot time, which `boot_now` reads.
    ///
    /// The boot time is read while the line is known to be stable. If it were read earlier or
    /// later, a suspended thread could combine an old line with a new boot time.
    // Always inlined, because every reservation reads the clock.
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

    /// Replaces the line from which the time is computed. `point` returns three values for the new
    /// line: the time since boot, the estimated time then, and the correction.
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

    /// Replaces the line with one that continues from the current estimate of the true time, with a
    /// new correction. `correction` receives the current estimate and the time since boot, and
    /// returns the correction, which the new line applies gradually.
    pub(super) fn redraw_from(
        &self,
        correction: impl FnOnce(u64, u64) -> i64,
        boot_now: impl FnOnce() -> u64,
    ) {
        self.redraw(|| {
            // Read the boot time only now that the version is odd. A reader that combines old
            // values with a later boot time then sees the changed version, and reads again.
            let boot_nanos = boot_now();
            let base_nanos = self.estimate_at(boot_nanos);
            (boot_nanos, base_nanos, correction(base_nanos, boot_nanos))
        });
    }

    /// Raises the estimate of the true time to the result of `base`, or keeps the estimate if it is
    /// already higher. `base` receives the time since boot.
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

    /// Returns the estimated time at `boot_nanos` after boot, computed from the stored values.
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
