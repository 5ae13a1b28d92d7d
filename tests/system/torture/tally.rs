//! Counts the faults and changes that happened while ids were being minted.

use std::collections::BTreeMap;

/// A fault of the node, or a change of its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Happening {
    Kill,
    SyncFailed,
    WriteFailed,
    ClockSetBack,
    ClockSetAhead,
    StartAfterClockSetAhead,
    StartWithClockBehind,
    LanesChanged,
    Restore,
    FolderLost,
    /// A start after which only the wait for whole ticks prevents repeated ids of a format. The
    /// folder was restored or lost before the start.
    StartBelowReserved,
    LongTickHeldBack,
    FormatJoined,
    FormatsReordered,
    ChangedFormatRefused,
}

impl Happening {
    pub(crate) const ALL: [Happening; 15] = [
        Happening::Kill,
        Happening::SyncFailed,
        Happening::WriteFailed,
        Happening::ClockSetBack,
        Happening::ClockSetAhead,
        Happening::StartAfterClockSetAhead,
        Happening::StartWithClockBehind,
        Happening::LanesChanged,
        Happening::Restore,
        Happening::FolderLost,
        Happening::StartBelowReserved,
        Happening::LongTickHeldBack,
        Happening::FormatJoined,
        Happening::FormatsReordered,
        Happening::ChangedFormatRefused,
    ];
}

/// Counts of each fault and change.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    while_minting: BTreeMap<Happening, u64>,
    /// Counts of each while no caller was served. Such a case proves nothing.
    idle: BTreeMap<Happening, u64>,
}

impl Tally {
    /// Counts a fault or a change. `while_minting` is `true` if ids were minted just before it. In
    /// addition, a request must have been in progress, or ids must have been minted just after it.
    pub(crate) fn count(&mut self, happening: Happening, while_minting: bool) {
        let counts = if while_minting {
            &mut self.while_minting
        } else {
            &mut self.idle
        };
        *counts.entry(happening).or_default() += 1;
    }

    /// Returns how often the rarest fault or change has happened while ids were being minted.
    pub(crate) fn fewest(&self) -> u64 {
        let count = |happening| self.while_minting.get(&happening).copied().unwrap_or(0);
        Happening::ALL.into_iter().map(count).min().unwrap_or(0)
    }
}
