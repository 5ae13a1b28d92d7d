//! What this node knows of its fleet: what the nodes have agreed on, and how far the coordinator was when it answered last.
//!
//! The slot keeper and the records ask one coordinator, each by requests of its own. A coordinator that is restored from a
//! backup is noticed by whichever of them asks it first, and from then on neither plans or answers anything:
//!
//! ```text
//! highest revision seen when a request is sent   20                    an answer of 20 or later follows from it
//! revision of the answer                         25, or 12             12: the coordinator has lost what it had acknowledged
//! ```
//!
//! Answers may overtake each other, so what counts is what was seen when the request was sent. Since the writes of others may
//! carry a restored coordinator past that revision, writes also compare the horizon of the node's own slot, which is renewed
//! every few seconds.

use std::sync::{Mutex, MutexGuard};

use crate::storage::coordinator::{Compare, Key, KeyValue, Revision};
use crate::storage::failure::{FailureKind, StoreError};
use crate::time::UnixNanos;

/// Which fleet it is, and since which fence. A later fence has a higher floor, so of two eras of one fleet the greater one is
/// the later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FleetEra {
    /// The first name of the fleet, which a fence keeps.
    pub origin: u128,
    /// No slot is used below.
    pub floor: UnixNanos,
}

/// What the nodes of a fleet have agreed on, as one of them has read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AgreedMeta {
    /// The revision of the key `meta`; [`Revision::ABSENT`] where there is none.
    pub revision: Revision,
    /// The name that the fleet has now.
    pub fleet: u128,
    /// Since when it has that.
    pub era: FleetEra,
}

/// The horizon of the slot that this node has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnHorizon {
    /// Where it is.
    pub key: Key,
    /// The revision that wrote it, as was acknowledged last.
    pub revision: Revision,
    /// What a renewal writes that was sent and not answered yet.
    pub sent: Option<Vec<u8>>,
}

/// What this node knows of its fleet, shared by all that ask the coordinator.
///
/// Every write compares the revision of `meta` that this node agrees with, so a node that has not seen that the fleet was
/// fenced, or has agreed on something else, writes nothing.
#[derive(Debug, Default)]
pub struct KnownFleet(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    agreed: AgreedMeta,
    is_withdrawn: bool,
    /// The coordinator has lost what it had acknowledged, as far as is known.
    is_lost: bool,
    /// The highest revision of any answer.
    highest: Revision,
    own_horizon: Option<OwnHorizon>,
    /// How often an answer could not follow from what was known.
    doubts: u64,
}

/// What a request is sent with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terms {
    /// What a write compares beside what it was decided on.
    pub(super) compare: Vec<Compare>,
    /// The revision of `meta` among that.
    pub(super) meta: Revision,
}

impl KnownFleet {
    /// A node, or a command, that agrees with this from the beginning.
    pub fn agreeing(agreed: AgreedMeta) -> KnownFleet {
        KnownFleet(Mutex::new(Known {
            agreed,
            ..Known::default()
        }))
    }

    /// The revision of `meta` that was agreed with; `None` while this node agrees with none.
    pub fn meta(&self) -> Option<Revision> {
        let known = self.lock();
        (!known.is_withdrawn).then_some(known.agreed.revision)
    }

    /// The era of the fleet that was agreed with last.
    pub(super) fn era(&self) -> FleetEra {
        self.lock().agreed.era
    }

    /// What writes compare now.
    ///
    /// # Errors
    /// [`StoreError`]: this node agrees with nothing.
    pub(super) fn terms(&self, meta: Key) -> Result<Terms, StoreError> {
        let known = self.lock();
        if known.is_withdrawn {
            return Err(lost());
        }
        let revision = known.agreed.revision;
        let own = known
            .own_horizon
            .as_ref()
            .map(|own| Compare::Modified(own.key.clone(), own.revision));
        Ok(Terms {
            compare: [Compare::Modified(meta, revision)]
                .into_iter()
                .chain(own)
                .collect(),
            meta: revision,
        })
    }

    /// The highest revision that any answer had so far: what is asked from now on is answered at that or a later one.
    pub fn highest(&self) -> Revision {
        self.lock().highest
    }

    /// An answer of revision `found` has come to a request that was sent when `asked` was the [highest](Self::highest).
    ///
    /// # Errors
    /// [`StoreError`]: it cannot follow from what this node was told before, so the coordinator was restored from a backup. This
    /// node agrees with nothing from now on, until it has looked anew.
    pub(super) fn see(&self, asked: Revision, found: Revision) -> Result<(), StoreError> {
        self.see_from(asked, asked, found)
    }

    /// The same of a write that was done, which makes a revision of its own.
    ///
    /// # Errors
    /// As [`KnownFleet::see`].
    pub(super) fn see_written(&self, asked: Revision, found: Revision) -> Result<(), StoreError> {
        self.see_from(asked, asked.next(), found)
    }

    fn see_from(
        &self,
        asked: Revision,
        least: Revision,
        found: Revision,
    ) -> Result<(), StoreError> {
        let mut known = self.lock();
        if asked > known.highest {
            // The fleet was fenced since it was sent, and goes on from another revision, of which this says nothing.
            return Err(lost());
        }
        if found < least {
            known.doubt();
            known.is_lost = true;
            return Err(lost());
        }
        known.highest = known.highest.max(found);
        Ok(())
    }

    /// A write was refused, and this is the horizon of the slot at that revision, if it was compared.
    ///
    /// # Errors
    /// [`StoreError`]: it is neither what was acknowledged nor what this node has sent since. Another node has the slot, or the
    /// coordinator was restored from a backup; this node agrees with nothing until it has looked anew.
    pub(super) fn see_horizon(
        &self,
        at: Revision,
        found: Option<&KeyValue>,
    ) -> Result<(), StoreError> {
        let mut known = self.lock();
        let Some(own) = &mut known.own_horizon else {
            return Ok(());
        };
        // An older answer, overtaken by the one that acknowledged the horizon.
        if at < own.revision {
            return Ok(());
        }
        match found {
            Some(entry) if entry.key == own.key && entry.modified == own.revision => Ok(()),
            Some(entry) if entry.key == own.key && own.sent.as_ref() == Some(&entry.value) => {
                own.revision = entry.modified;
                Ok(())
            }
            // What was compared is the horizon of another slot, which this node had then.
            Some(entry) if entry.key != own.key => Ok(()),
            Some(_) | None => {
                known.doubt();
                Err(lost())
            }
        }
    }

    /// How often an answer could not follow from what was known: each time the slot keeper looks anew.
    pub fn doubts(&self) -> u64 {
        self.lock().doubts
    }

    /// An answer to a request that was sent after so many [doubts](Self::doubts), and whatever this node knew before, say that
    /// this is what the nodes have agreed on, and that the coordinator is at `revision`. A doubt since then stands.
    ///
    /// What was lost is not back for the revision alone: others write, and an operator brings back records before the fence. So
    /// the same fleet is agreed with again only by what it had agreed on before, which such an operator writes anew first.
    pub fn agree(&self, agreed: AgreedMeta, revision: Revision, doubts: u64) {
        let mut known = self.lock();
        let is_rewritten =
            known.agreed.fleet == agreed.fleet && known.agreed.revision != agreed.revision;
        if known.is_lost && is_rewritten {
            return;
        }
        known.is_lost = false;
        // A fleet that was fenced goes on from what its coordinator has now.
        known.highest = if known.agreed.fleet == agreed.fleet {
            known.highest.max(revision)
        } else {
            revision
        };
        known.agreed = agreed;
        known.is_withdrawn = known.doubts != doubts;
    }

    /// The horizon of the slot that this node has, if it has one.
    pub fn hold(&self, own_horizon: Option<OwnHorizon>) {
        self.lock().own_horizon = own_horizon;
    }

    /// Whether this node has a slot, as far as it knows.
    pub(super) fn has_slot(&self) -> bool {
        self.lock().own_horizon.is_some()
    }

    /// This node agrees with nothing until it agrees again: the coordinator has lost what it had acknowledged.
    pub fn withdraw(&self) {
        let mut known = self.lock();
        (known.is_withdrawn, known.is_lost) = (true, true);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().expect("no holder of this lock panics")
    }
}

impl Known {
    fn doubt(&mut self) {
        self.is_withdrawn = true;
        self.doubts += 1;
    }
}

fn lost() -> StoreError {
    let text = "the coordinator has lost what it had acknowledged; nothing is read or written until it was fenced";
    StoreError::new(FailureKind::Unreachable, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_outlived_a_fence_says_nothing_of_what_comes_after_it() {
        let known = KnownFleet::default();
        let of = |fleet| AgreedMeta {
            fleet,
            ..AgreedMeta::default()
        };
        known.agree(of(1), Revision(1_000), 0);
        let asked = known.highest();
        known.agree(of(2), Revision(12), 0);
        assert!(
            known.see(asked, Revision(1_005)).is_err()
                && known.see_written(asked, Revision(1_005)).is_err()
        );
        assert_eq!(
            (known.highest(), known.doubts(), known.meta().is_some()),
            (Revision(12), 0, true)
        );
        assert!(
            known.see_written(known.highest(), Revision(13)).is_ok(),
            "the control"
        );
        assert!(known.see(known.highest(), Revision(12)).is_err() && known.meta().is_none());
    }

    #[test]
    fn what_was_lost_is_back_by_the_fence_and_not_by_what_is_written_before_it() {
        let of = |fleet, revision| AgreedMeta {
            fleet,
            revision: Revision(revision),
            ..AgreedMeta::default()
        };
        for is_noticed_by_records in [true, false] {
            let known = KnownFleet::default();
            let lose = || match is_noticed_by_records {
                true => drop(known.see(known.highest(), Revision(3))),
                false => known.withdraw(),
            };
            known.agree(of(1, 2), Revision(20), 0);
            lose();
            known.agree(of(1, 2), Revision(21), known.doubts());
            assert_eq!(
                known.meta(),
                Some(Revision(2)),
                "the control: nothing was lost after all"
            );
            lose();
            known.agree(of(1, 22), Revision(25), known.doubts());
            assert_eq!(known.meta(), None, "somebody brings back records");
            known.agree(of(2, 26), Revision(26), known.doubts());
            assert_eq!(known.meta(), Some(Revision(26)), "fenced");
            known.agree(of(2, 30), Revision(30), known.doubts());
            assert_eq!(known.meta(), Some(Revision(30)), "a format was added");
        }
    }
}
