//! Where a session begins.

use crate::time::UnixNanos;

/// The instant at which a session begins, and the floor that its node once began at.
///
/// A horizon is exact: every stamp before it may have been handed out, and none from it on. A floor is somebody's word, of
/// an operator or of a clock without a record, about the times that ids carry. All ids of one tick carry one time, its
/// beginning, so the tick that contains the floor may be used up to its end: above a floor each format begins with its
/// first whole tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionStart {
    pub(super) at: UnixNanos,
    pub(super) floor: Option<UnixNanos>,
}

impl SessionStart {
    /// At an instant from which on no stamp was handed out.
    pub fn at(instant: UnixNanos) -> SessionStart {
        SessionStart {
            at: instant,
            floor: None,
        }
    }

    /// The same, on a node that once began at a floor.
    #[must_use]
    pub fn above_floor(self, floor: Option<UnixNanos>) -> SessionStart {
        SessionStart { floor, ..self }
    }
}
