//! The happenings while ids were being minted, and their counts.

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
    /// A restore or a lost folder, after which only waiting for whole ticks keeps the ids of a
    /// format distinct from earlier ones.
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

/// The counts of all happenings.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    while_minting: BTreeMap<Happening, u64>,
    /// Happenings while no caller was served, which prove nothing.
    idle: BTreeMap<Happening, u64>,
}

impl Tally {
    /// Counts a happening. `while_minting` is `true` if ids were minted just before, and a request
    /// was in flight or ids were minted just after.
    pub(crate) fn count(&mut self, happening: Happening, while_minting: bool) {
        let counts = if while_minting {
            &mut self.while_minting
        } else {
            &mut self.idle
        };
        *counts.entry(happening).or_default() += 1;
    }

    /// Returns the count of the rarest happening while ids were being minted.
    pub(crate) fn fewest(&self) -> u64 {
        let count = |happening| self.while_minting.get(&happening).copied().unwrap_or(0);
        Happening::ALL.into_iter().map(count).min().unwrap_or(0)
    }
}
