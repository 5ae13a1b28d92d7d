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
    LongTickHeldBack,
    FormatJoined,
    FormatsReordered,
    ChangedFormatRefused,
}

impl Happening {
    pub(crate) const ALL: [Happening; 14] = [
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
        let counts = if while_minting { &mut self.while_minting } else { &mut self.idle };
        *counts.entry(happening).or_default() += 1;
    }

    /// Each has happened so often while ids were being minted.
    #[track_caller]
    pub(crate) fn assert_each_happened(&self, at_least: u64) {
        for happening in Happening::ALL {
            let count = self.while_minting.get(&happening).copied().unwrap_or(0);
            assert!(count >= at_least, "{happening:?} has happened {count} times while ids were minted: {self:?}");
        }
    }
}
