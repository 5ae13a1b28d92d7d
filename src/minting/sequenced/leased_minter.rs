//! What mints a format whose worker numbers are leased: each thread keeps the minter that it used last, and asks for another one
//! only when a session has ended or begun.

use std::cell::RefCell;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex};

use super::minter::SequencedMinter;

/// What a thread mints with. To keep it, a thread counts for itself: threads that mint at once would wait for each other's
/// count.
pub(in crate::minting) type KeptMinter = Rc<Arc<SequencedMinter>>;

thread_local! {
    /// By [`LeasedMinter::place`]: what this thread minted with last.
    static KEPT: RefCell<Vec<Option<KeptMinter>>> = const { RefCell::new(Vec::new()) };
}

/// The minter of the session that there is, if there is one.
#[derive(Debug)]
pub(super) struct LeasedMinter {
    /// Among the formats of one [`Mint`](crate::minting::Mint).
    place: usize,
    /// Where the minter is, to be compared and never followed. No other one can be where one is that a thread keeps.
    /// Written by: `begin` and `end`, by one thread at a time. Read by each mint. Ordering: Relaxed. A mint that reads an earlier one goes
    /// on with the numbers, the counters and the ceiling of its session, as one that sleeps meanwhile does; one that reads a
    /// later one gets the minter itself under the lock.
    /// Tested by: `who_reserves_in_a_session_that_has_ended_gets_what_is_still_reserved`.
    current: AtomicPtr<SequencedMinter>,
    minter: Mutex<Option<Arc<SequencedMinter>>>,
}

impl LeasedMinter {
    /// None yet. `place`: a number that no other format of the same mint has, counted from 0.
    pub(super) fn at(place: usize) -> LeasedMinter {
        LeasedMinter {
            place,
            current: AtomicPtr::default(),
            minter: Mutex::default(),
        }
    }

    /// From now on this one mints.
    ///
    /// # Panics
    /// When another one does already.
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

    /// From now on none mints.
    pub(super) fn end(&self) {
        let mut current = self.minter.lock().expect("no holder of this lock panics");
        self.current.store(ptr::null_mut(), Ordering::Relaxed);
        *current = None;
    }

    /// The minter; `None` while there is none.
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

    /// Keeps the minter of now for this thread.
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
