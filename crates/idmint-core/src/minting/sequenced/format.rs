//! A sequenced format on this node: its worker numbers and current minter.

use std::cell::RefCell;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::excluded_ids::{ExcludedIds, ExcludedTicks};
use super::lanes::{Lanes, SlotLanes};
use super::minter::{Beginning, SequencedMinter};
use crate::id::Format;
use crate::time::UnixNanos;

/// A sequenced format, with this node's worker numbers.
#[derive(Debug)]
pub(in crate::minting) struct SequencedFormat {
    format: Arc<Format>,
    holding: Holding,
    /// The ticks that another generator used. Empty until the ids of that generator have been read.
    excluded: OnceLock<ExcludedTicks>,
}

/// The worker numbers of this node and the current minter. The node has the worker numbers either
/// until the process exits or for one session.
#[derive(Debug)]
pub(in crate::minting) enum Holding {
    /// The node has the same worker numbers until the process exits.
    ForGood {
        lanes: Lanes,
        /// The minter of the only session. Empty until the session begins.
        in_session: OnceLock<Arc<SequencedMinter>>,
    },
    /// The node has the worker numbers of its leased slot. When the slot is lost, the session ends.
    /// The next session has the worker numbers of the slot that the node leases then.
    Leased {
        lanes: SlotLanes,
        in_session: LeasedMinter,
    },
}

impl Holding {
    pub(in crate::minting) fn for_good(lanes: Lanes) -> Holding {
        Holding::ForGood {
            lanes,
            in_session: OnceLock::new(),
        }
    }

    /// Creates the [`Holding`] of a node in a fleet, which has no minter yet. Its worker numbers
    /// depend on the slot that the node leases. `place` is the index of the format in its
    /// [`Mint`](crate::minting::Mint).
    pub(in crate::minting) fn leased(lanes: SlotLanes, place: usize) -> Holding {
        Holding::Leased {
            lanes,
            in_session: LeasedMinter::at(place),
        }
    }
}

impl SequencedFormat {
    pub(in crate::minting) fn new(format: Arc<Format>, holding: Holding) -> SequencedFormat {
        SequencedFormat {
            format,
            holding,
            excluded: OnceLock::new(),
        }
    }

    pub(in crate::minting) fn format(&self) -> &Arc<Format> {
        &self.format
    }

    /// Returns the worker numbers with which this node mints the format, or `None` while this node
    /// of a fleet has no worker numbers.
    pub(in crate::minting) fn lanes(&self) -> Option<Lanes> {
        match &self.holding {
            Holding::ForGood { lanes, .. } => Some(lanes.clone()),
            Holding::Leased { in_session, .. } => {
                in_session.get().map(|minter| minter.lanes().clone())
            }
        }
    }

    /// Returns the worker numbers of this node. In a fleet, where they depend on the leased slot,
    /// returns the worker numbers of slot 0, because no other slot has more.
    pub(in crate::minting) fn most_lanes(&self) -> &Lanes {
        match &self.holding {
            Holding::ForGood { lanes, .. } => lanes,
            Holding::Leased { lanes, .. } => lanes.most(),
        }
    }

    /// Returns a reader for the ids of another generator. The reader collects the ticks that
    /// sessions must skip, and ignores ticks before `from`. Every session must therefore begin at
    /// or after `from`.
    pub(in crate::minting) fn excluded_ids(&self, from: UnixNanos) -> ExcludedIds {
        let workers = match &self.holding {
            Holding::ForGood { lanes, .. } => Some(lanes.workers().to_vec()),
            // The node may lease any slot, so every worker number matters.
            Holding::Leased { .. } => None,
        };
        ExcludedIds::of(Arc::clone(&self.format), workers, from)
    }

    /// Makes every later session skip these ticks, which another generator has used.
    ///
    /// # Panics
    /// Panics if this function was called before.
    pub(in crate::minting) fn exclude(&self, ticks: ExcludedTicks) {
        assert!(
            self.excluded.set(ticks).is_ok(),
            "what is left out is read once"
        );
    }

    /// Creates a minter of the format for the session that `beginning` describes.
    ///
    /// # Panics
    /// Panics if the session has a slot although the worker numbers are permanent, or has no slot
    /// although they are leased. Also panics if the ids to exclude have not been read yet.
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

    /// Makes `minter` the current minter of the format.
    ///
    /// # Panics
    /// Panics if the format has a minter already, because worker numbers would be used twice.
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

    /// Removes the current minter. Requests that are in progress can still finish.
    ///
    /// # Panics
    /// Panics if the node keeps its worker numbers until the process exits.
    pub(in crate::minting) fn end(&self) {
        match &self.holding {
            Holding::ForGood { .. } => panic!("numbers that are held for good have one session"),
            Holding::Leased { in_session, .. } => in_session.end(),
        }
    }

    /// Returns the minter of a node whose worker numbers stay the same until the process exits.
    /// Returns `None` before minting begins, or if the node leases its worker numbers from a fleet.
    #[inline]
    pub(in crate::minting) fn held_for_good(&self) -> Option<&SequencedMinter> {
        match &self.holding {
            Holding::ForGood { in_session, .. } => in_session.get().map(AsRef::as_ref),
            Holding::Leased { .. } => None,
        }
    }

    /// Returns the current minter of a node with worker numbers leased from the fleet. `None` while
    /// no session of minting is active, or if the node keeps its numbers until the process exits.
    #[inline]
    pub(in crate::minting) fn leased(&self) -> Option<KeptMinter> {
        match &self.holding {
            Holding::ForGood { .. } => None,
            Holding::Leased { in_session, .. } => in_session.get(),
        }
    }

    /// Calls `mint` with the current minter and returns the result, or returns `None` if no session
    /// is active.
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

/// A thread's own reference to a minter. Each thread has its own reference count, because
/// concurrent threads would contend for a shared count.
pub(in crate::minting) type KeptMinter = Rc<Arc<SequencedMinter>>;

thread_local! {
    /// The minters that this thread used most recently, indexed by [`LeasedMinter::place`].
    static KEPT: RefCell<Vec<Option<KeptMinter>>> = const { RefCell::new(Vec::new()) };
}

/// The minter of one format on a node of a fleet. Empty while no session of minting is active.
#[derive(Debug)]
pub(in crate::minting) struct LeasedMinter {
    /// The index of the format in its [`Mint`](crate::minting::Mint).
    place: usize,
    /// The address of the current minter. It is only compared and never dereferenced. While a
    /// thread keeps a minter, no other minter can have the same address.
    /// Written by: `begin` and `end`, by one thread at a time.
    /// Read by: each mint.
    /// Ordering: Relaxed. A thread that reads an outdated address continues with the worker
    /// numbers, counters and ceiling of the previous session, just as if it had been suspended
    /// during the change. A thread that reads a new address takes the minter under the lock.
    /// Tested by: `who_reserves_in_a_session_that_has_ended_gets_what_is_still_reserved`.
    current: AtomicPtr<SequencedMinter>,
    minter: Mutex<Option<Arc<SequencedMinter>>>,
}

impl LeasedMinter {
    /// Creates a [`LeasedMinter`] that holds no minter yet. `place` is a number, starting at 0,
    /// that is unique among the formats of a [`Mint`](crate::minting::Mint).
    pub(super) fn at(place: usize) -> LeasedMinter {
        LeasedMinter {
            place,
            current: AtomicPtr::default(),
            minter: Mutex::default(),
        }
    }

    /// Makes `minter` the current minter for the leased slot.
    ///
    /// # Panics
    /// Panics if there already is a current minter.
    pub(super) fn begin(&self, minter: Arc<SequencedMinter>) {
        let mut current = self.minter.lock().expect("no holder of this lock panics");
        assert!(
            current.is_none(),
            "a session begins after the one before has ended"
        );
        self.current
            .store(Arc::as_ptr(&minter).cast_mut(), Ordering::Relaxed);
        *current = Some(minter);
    }

    /// Removes the current minter, so that new requests find no minter.
    pub(super) fn end(&self) {
        let mut current = self.minter.lock().expect("no holder of this lock panics");
        self.current.store(ptr::null_mut(), Ordering::Relaxed);
        *current = None;
    }

    /// Returns the current minter, or `None` if no session is active.
    #[inline]
    pub(super) fn get(&self) -> Option<KeptMinter> {
        let current = self.current.load(Ordering::Relaxed);
        if current.is_null() {
            return None;
        }
        KEPT.with_borrow_mut(|kept| match kept.get(self.place) {
            Some(Some(minter)) if ptr::eq(Arc::as_ptr(minter), current) => Some(Rc::clone(minter)),
            _ => self.keep(kept),
        })
    }

    /// Stores the current minter in `kept`, this thread's list of minters, and returns the minter.
    #[cold]
    fn keep(&self, kept: &mut Vec<Option<KeptMinter>>) -> Option<KeptMinter> {
        if kept.len() <= self.place {
            kept.resize(self.place + 1, None);
        }
        let minter = self
            .minter
            .lock()
            .expect("no holder of this lock panics")
            .clone();
        kept[self.place] = minter.map(Rc::new);
        kept[self.place].clone()
    }
}
