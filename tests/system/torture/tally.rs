//! What happened while ids were being minted, and how often.

use std::collections::BTreeMap;

/// A fault, or a change.
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
    /// A restore, or a lost folder, after which nothing but its whole ticks keeps a format from what it minted before.
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

/// Counts of everything.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    while_minting: BTreeMap<Happening, u64>,
    /// Happened when nobody was served: worth nothing.
    idle: BTreeMap<Happening, u64>,
}

impl Tally {
    /// It happened; `while_minting`: ids came just before, and a request was in flight or ids came just after.
    pub(crate) fn count(&mut self, happening: Happening, while_minting: bool) {
        let counts = if while_minting {
            &mut self.while_minting
        } else {
            &mut self.idle
        };
        *counts.entry(happening).or_default() += 1;
    }

    /// How often what happened least did so while ids were being minted.
    pub(crate) fn fewest(&self) -> u64 {
        let count = |happening| self.while_minting.get(&happening).copied().unwrap_or(0);
        Happening::ALL.into_iter().map(count).min().unwrap_or(0)
    }
}
