//! A sequenced format of this node: its worker numbers, and what mints it in the session.

use std::sync::{Arc, OnceLock};

use super::beginning::Beginning;
use super::exclusion::{ExcludedIds, ExcludedTicks};
use super::lanes::{Lanes, SlotLanes};
use super::leased_minter::{KeptMinter, LeasedMinter};
use super::minter::SequencedMinter;
use crate::id::Format;
use crate::time::UnixNanos;

/// A format with the worker numbers that this node has in it.
#[derive(Debug)]
pub(in crate::minting) struct SequencedFormat {
    format: Arc<Format>,
    holding: Holding,
    /// The ticks of another generator, once they are read.
    excluded: OnceLock<ExcludedTicks>,
}

/// How this node holds its worker numbers, and what mints with them.
#[derive(Debug)]
enum Holding {
    /// From the first session to the end of the process.
    ForGood {
        lanes: Lanes,
        /// Empty until the session begins.
        in_session: OnceLock<Arc<SequencedMinter>>,
    },
    /// For one session, which ends when the slot is lost; the next one has the numbers of another slot.
    Leased {
        lanes: SlotLanes,
        in_session: LeasedMinter,
    },
}

impl SequencedFormat {
    /// A format whose worker numbers stay.
    pub(in crate::minting) fn with_lanes(format: Arc<Format>, lanes: Lanes) -> SequencedFormat {
        let holding = Holding::ForGood {
            lanes,
            in_session: OnceLock::new(),
        };
        SequencedFormat {
            format,
            holding,
            excluded: OnceLock::new(),
        }
    }

    /// A format whose worker numbers come with the slot of each session. `place`: see [`LeasedMinter::at`].
    pub(in crate::minting) fn with_slot_lanes(
        format: Arc<Format>,
        lanes: SlotLanes,
        place: usize,
    ) -> SequencedFormat {
        let holding = Holding::Leased {
            lanes,
            in_session: LeasedMinter::at(place),
        };
        SequencedFormat {
            format,
            holding,
            excluded: OnceLock::new(),
        }
    }

    pub(in crate::minting) fn format(&self) -> &Arc<Format> {
        &self.format
    }

    /// The worker numbers that it is minted with now; none while it waits for a slot.
    pub(in crate::minting) fn lanes(&self) -> Option<Lanes> {
        match &self.holding {
            Holding::ForGood { lanes, .. } => Some(lanes.clone()),
            Holding::Leased { in_session, .. } => {
                in_session.get().map(|minter| minter.lanes().clone())
            }
        }
    }

    /// As many worker numbers as it ever has at once.
    pub(in crate::minting) fn most_lanes(&self) -> &Lanes {
        match &self.holding {
            Holding::ForGood { lanes, .. } => lanes,
            Holding::Leased { lanes, .. } => lanes.most(),
        }
    }

    /// Reads ids of another generator, to find the ticks that sessions from that instant on leave out.
    pub(in crate::minting) fn excluded_ids(&self, from: UnixNanos) -> ExcludedIds {
        let workers = match &self.holding {
            Holding::ForGood { lanes, .. } => Some(lanes.workers().to_vec()),
            // Any slot may be leased.
            Holding::Leased { .. } => None,
        };
        ExcludedIds::of(Arc::clone(&self.format), workers, from)
    }

    /// Every later session leaves these ticks out.
    ///
    /// # Panics
    /// When others are left out already.
    pub(in crate::minting) fn exclude(&self, ticks: ExcludedTicks) {
        assert!(
            self.excluded.set(ticks).is_ok(),
            "what is left out is read once"
        );
    }

    /// What would mint it in a session that begins so.
    ///
    /// # Panics
    /// When the session has a slot and the format's numbers do not come with one, or the other way round; and when the ids that
    /// are to be left out were not read.
    pub(in crate::minting) fn minter(&self, beginning: &Beginning) -> SequencedMinter {
        let lanes = match (&self.holding, beginning.slot) {
            (Holding::ForGood { lanes, .. }, None) => lanes.clone(),
            (Holding::Leased { lanes, .. }, Some(slot)) => lanes.of_slot(&self.format, slot),
            _ => panic!("a session has a slot exactly if worker numbers are leased"),
        };
        let excluded = self.excluded.get();
        assert!(
            excluded.is_some() || self.format.exclude.is_none(),
            "`exclude` is read before a session begins"
        );
        SequencedMinter::new(&self.format, lanes, excluded, beginning)
    }

    /// From now on this mints it.
    ///
    /// # Panics
    /// When another one does already: worker numbers would be used twice.
    pub(in crate::minting) fn begin(&self, minter: Arc<SequencedMinter>) {
        match &self.holding {
            Holding::ForGood { in_session, .. } => {
                assert!(
                    in_session.set(minter).is_ok(),
                    "numbers that are held for good have one session"
                );
            }
            Holding::Leased { in_session, .. } => in_session.begin(minter),
        }
    }

    /// From now on nothing mints it. A mint that has begun may end.
    ///
    /// # Panics
    /// When its numbers are held for good.
    pub(in crate::minting) fn end(&self) {
        match &self.holding {
            Holding::ForGood { .. } => panic!("numbers that are held for good have one session"),
            Holding::Leased { in_session, .. } => in_session.end(),
        }
    }

    /// What mints it, once its one session has begun; `None` where numbers are leased.
    #[inline]
    pub(in crate::minting) fn held_for_good(&self) -> Option<&SequencedMinter> {
        match &self.holding {
            Holding::ForGood { in_session, .. } => in_session.get().map(AsRef::as_ref),
            Holding::Leased { .. } => None,
        }
    }

    /// What mints it in the slot of the session, if there is one.
    #[inline]
    pub(in crate::minting) fn leased(&self) -> Option<KeptMinter> {
        match &self.holding {
            Holding::ForGood { .. } => None,
            Holding::Leased { in_session, .. } => in_session.get(),
        }
    }

    /// What `mint` makes of the minter of the session; `None` while there is none.
    pub(in crate::minting) fn in_session<R>(
        &self,
        mint: impl FnOnce(&SequencedMinter) -> R,
    ) -> Option<R> {
        match &self.holding {
            Holding::ForGood { .. } => self.held_for_good().map(mint),
            Holding::Leased { .. } => self.leased().map(|minter| mint(&minter)),
        }
    }
}
