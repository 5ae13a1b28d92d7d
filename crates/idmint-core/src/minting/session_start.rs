//! The instant from which ids may be minted after a start, and the floor of the node, which is a
//! time below which no node mints.

use crate::time::UnixNanos;

/// The instant at which a session begins, and the floor of the node.
///
/// A horizon is exact: stamps before it may have been handed out, but no stamp at or after it has
/// been. A floor is less precise, because it refers to the times in ids. An operator sets the
/// floor, or the node reads it from a clock if it has no record of earlier ids.
///
/// All ids of a tick carry the time at which the tick begins. In the tick that contains the floor,
/// ids may therefore exist with every sequence, although their time is before the floor. For this
/// reason, each format begins with its first whole tick after the floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionStart {
    pub(super) at: UnixNanos,
    pub(super) floor: Option<UnixNanos>,
}

impl SessionStart {
    /// Creates a start of minting at `instant`, without a floor. The caller must know that no stamp
    /// from `instant` on was used before.
    pub fn at(instant: UnixNanos) -> SessionStart {
        SessionStart {
            at: instant,
            floor: None,
        }
    }

    /// Sets the floor of the node, which is a time below which no node mints. The floor was stored
    /// when the node was first started. `None` if the node has no floor.
    #[must_use]
    pub fn above_floor(self, floor: Option<UnixNanos>) -> SessionStart {
        SessionStart { floor, ..self }
    }
}
