//! This node's knowledge of its fleet: the agreement of the nodes, and the highest revision that
//! the coordinator has returned so far.
//!
//! Two parts of a node send separate requests to the coordinator: the thread that renews the slot,
//! and the record store. If the coordinator was restored from a backup, the first response to
//! either part reveals the restore. From then on both parts refuse all work:
//!
//! ```text
//! highest revision seen when a request is sent   20          a response of 20 or later is consistent
//! revision of the response                       25, or 12   12: the coordinator has lost acknowledged data
//! ```
//!
//! Responses may overtake each other, so each response is compared with the highest revision that
//! was known when its request was sent. After a restore, writes of other nodes may raise the
//! revision above that value again. So each write also compares this node's own key, which it
//! rewrites every few seconds. This key is the horizon of its slot, or a separate key while it has
//! no slot. A response from another cluster or from an earlier election term shows a restore, too.

use std::sync::{Mutex, MutexGuard};

use crate::coordinator::{Compare, Key, KeyValue, Revision, Term};
#[cfg(test)]
use crate::nonce::Nonce;
use idmint_core::time::UnixNanos;
use idmint_storage::{FailureKind, Obstacle, StoreError};

/// An era of a fleet, which lasts from one fence to the next. Of two eras of one fleet, the later
/// one compares as greater.
///
/// Eras compare by their number of fences first. The floor alone is not sufficient, because a fence
/// may lower a floor that a clock far ahead has set. Earlier versions of this program did not count
/// fences. Their eras have the count 0, and compare by their floors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct FleetEra {
    /// The number of times that an operator has fenced the fleet. 0 if the last fence was by an
    /// earlier version of this program, which did not count them.
    pub(crate) fences: u32,
    /// The fleet's floor. No node mints an id for a time before this instant.
    pub(crate) floor: UnixNanos,
    /// The fleet's first name, which no fence changes.
    pub(crate) origin: u128,
}

impl FleetEra {
    /// `true` if a fence that came after the era `earlier` began this era. A node accepts the fence
    /// even if it has given the fleet another first name, as after a wipe of the store.
    pub(crate) fn is_later_fence(self, earlier: FleetEra) -> bool {
        self.fences > 0 && self.fences >= earlier.fences && self.floor > earlier.floor
    }

    /// Returns the era of a fleet before its first fence.
    #[cfg(test)]
    pub(crate) fn first(fleet: Nonce, floor: UnixNanos) -> FleetEra {
        FleetEra {
            fences: 0,
            floor,
            origin: fleet.bits(),
        }
    }
}

/// The fleet's agreement, which all nodes share under the key `meta`, as this node last read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AgreedMeta {
    /// The revision of the key `meta`, or [`Revision::ABSENT`] if the key is missing.
    pub(crate) revision: Revision,
    /// The fleet's current name.
    pub(crate) fleet: u128,
    /// The fleet's current era, which began with the last fence.
    pub(crate) era: FleetEra,
    /// The state of the records that nodes share.
    pub(crate) records: SharedRecords,
}

/// The state of the records that nodes share. If some are missing, new records could take their
/// positions or repeat their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SharedRecords {
    /// Nodes read and write records.
    #[default]
    Complete,
    /// Nodes neither read nor write records, because the last fence found that records are missing.
    Missing,
    /// Nodes neither read nor write records, because an adoption is incomplete.
    Adopting,
}

/// The key that this node rewrites every few seconds: the horizon of its slot, or a separate key
/// while it has no slot. If the store has an older value than the last acknowledged one, the
/// coordinator has lost data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnKey {
    /// The key that this node rewrites.
    pub(crate) key: Key,
    /// The revision of the last acknowledged write.
    pub(crate) revision: Revision,
    /// The value that was last sent for `key`. For a slot's horizon, `None` once the write has a
    /// response.
    pub(crate) sent: Option<Vec<u8>>,
    /// `true` if the key is the horizon of a slot.
    pub(crate) is_slot: bool,
}

/// This node's knowledge of its fleet. All parts of the node that use the coordinator share it.
///
/// Every write compares the revision of the agreement that this node last read. So a write fails if
/// the agreement has changed since then, for example by a fence.
#[derive(Debug, Default)]
pub struct KnownFleet(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    agreed: AgreedMeta,
    is_withdrawn: bool,
    /// `true` if the coordinator has certainly lost acknowledged data.
    is_lost: bool,
    /// The highest revision in any response so far.
    highest: Revision,
    /// The etcd cluster that sent the responses so far, and the highest election term in them.
    term: Term,
    own_key: Option<OwnKey>,
    /// `true` if this node regularly rewrites a key of its own, by which it detects lost data.
    /// `own_key` is `None` until that key is written for the first time.
    has_own_key: bool,
    /// The number of responses so far that contradicted earlier responses.
    doubts: u64,
}

const LOST: Obstacle = Obstacle::new(
    FailureKind::Unreachable,
    "etcd has lost acknowledged writes, as after a restore from a backup, or it is another etcd; check etcd.endpoints, then run `idmint fleet fence-restore`",
);

const RECORDS_MISSING: Obstacle = Obstacle::new(
    FailureKind::Unreachable,
    "the last fence found that records are missing; run `idmint fleet fence-restore` with all journals, or without any to give them up",
);

const ADOPTING: Obstacle = Obstacle::new(
    FailureKind::Unreachable,
    "the fleet has not adopted all records of a single node yet; wait for `idmint fleet adopt`, or run it again on the same folder",
);

const JOINING: Obstacle = Obstacle::new(
    FailureKind::Unreachable,
    "this node has just joined the fleet or lost its slot, and stores records again within seconds; retry",
);

/// The comparisons that a write of records must include.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terms {
    /// The comparisons to add to the write's own ones.
    pub(super) compare: Vec<Compare>,
    /// The revision of `meta` that these comparisons require.
    pub(super) meta: Revision,
}

impl KnownFleet {
    /// Creates the knowledge of a node or command that has read and accepted the fleet's agreement
    /// `agreed`.
    pub(crate) fn agreeing(agreed: AgreedMeta) -> KnownFleet {
        KnownFleet(Mutex::new(Known {
            agreed,
            ..Known::default()
        }))
    }

    /// Returns the store revision of the agreement that this node last accepted. Returns `None`
    /// while this node refuses all work because the coordinator may have lost data.
    pub fn meta(&self) -> Option<Revision> {
        let known = self.lock();
        (!known.is_withdrawn).then_some(known.agreed.revision)
    }

    /// Returns the fleet's era as this node last read it. Each fence begins a new era.
    pub(super) fn era(&self) -> FleetEra {
        self.lock().agreed.era
    }

    /// Checks that records may be read now.
    ///
    /// # Errors
    /// Returns the [`Obstacle`] if the coordinator may have lost data, if records are missing, or
    /// if an adoption is incomplete.
    pub(super) fn check(&self) -> Result<(), Obstacle> {
        let known = self.lock();
        if known.is_withdrawn {
            return Err(LOST);
        }
        match known.agreed.records {
            SharedRecords::Complete => Ok(()),
            SharedRecords::Missing => Err(RECORDS_MISSING),
            SharedRecords::Adopting => Err(ADOPTING),
        }
    }

    /// Returns the comparisons that a write of records must include now: the revision of the
    /// agreement, and the revision of this node's own key if it has one.
    ///
    /// # Errors
    /// Returns the errors of [`KnownFleet::check`]. Also returns an [`Obstacle`] if this node has
    /// not written its own key yet.
    pub(super) fn terms(&self, meta: Key) -> Result<Terms, Obstacle> {
        self.check()?;
        let known = self.lock();
        if known.has_own_key && known.own_key.is_none() {
            return Err(JOINING);
        }
        let revision = known.agreed.revision;
        let own = known
            .own_key
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

    /// Returns the highest revision in any response so far. The response to a request that is sent
    /// now must have at least this revision.
    pub(crate) fn highest(&self) -> Revision {
        self.lock().highest
    }

    /// Returns the etcd cluster that sent the responses so far, and the highest election term in
    /// them.
    pub(crate) fn term(&self) -> Term {
        self.lock().term
    }

    /// Records that a response came from the cluster and election term `found`. `asked` is the
    /// [term](Self::term) that was known when the request was sent.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the response comes from another cluster or from an earlier term.
    pub(super) fn see_term(&self, asked: Term, found: Term) -> Result<(), StoreError> {
        let mut known = self.lock();
        if !known.term.follows(asked) {
            // The fleet was fenced after this request was sent, and the node has forgotten the
            // terms before the fence. The response may come from etcd before its restore, so it is
            // not used.
            return Err(lost());
        }
        if !found.follows(asked)
            || !found.follows(Term {
                term: 0,
                ..known.term
            })
        {
            known.doubt();
            known.is_lost = true;
            return Err(lost());
        }
        known.term = known.term.max(found);
        Ok(())
    }

    /// Records a response with the revision `found`. `asked` is the [highest](Self::highest)
    /// revision that was known when the request was sent.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the response contradicts earlier ones, because the coordinator was
    /// restored from a backup. This node then refuses all work until the coordinator has been
    /// checked again.
    pub(super) fn see(&self, asked: Revision, found: Revision) -> Result<(), StoreError> {
        self.see_from(asked, asked, found)
    }

    /// Records the response to a write, which created the store revision `found`. This revision
    /// must be above `asked`, the highest one that was known when the write was sent.
    ///
    /// # Errors
    /// Returns the errors of [`KnownFleet::see`].
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
            // The fleet was fenced after this request was sent, so the highest known revision was
            // lowered. The response may come from etcd before its restore, so it is not used.
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

    /// Checks this node's own key after a refused write. The write read the key at the revision
    /// `at` and found `found`. Does nothing if this node has no own key.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the stored value is neither the acknowledged one nor the one that
    /// was sent last. Either another node has the slot, or the coordinator was restored from a
    /// backup. This node then refuses all work until the coordinator has been checked again.
    pub(super) fn see_own_key(
        &self,
        at: Revision,
        found: Option<&KeyValue>,
    ) -> Result<(), StoreError> {
        let mut known = self.lock();
        let Some(own) = &mut known.own_key else {
            return Ok(());
        };
        // The response is older than the last acknowledged write of this key, so it proves nothing
        // about that write.
        if at < own.revision {
            return Ok(());
        }
        match found {
            Some(entry) if entry.key == own.key && entry.modified == own.revision => Ok(()),
            Some(entry) if entry.key == own.key && own.sent.as_ref() == Some(&entry.value) => {
                own.revision = entry.modified;
                Ok(())
            }
            // The refused write compared a key that this node no longer rewrites. For example, the
            // node has taken a slot in the meantime.
            Some(entry) if entry.key != own.key => Ok(()),
            Some(_) | None => {
                known.doubt();
                Err(lost())
            }
        }
    }

    /// Returns the number of responses that contradicted earlier ones. After each of them, the
    /// thread that renews this node's slot checks whether the coordinator has lost data.
    pub(crate) fn doubts(&self) -> u64 {
        self.lock().doubts
    }

    /// Records that this node accepts the agreement `agreed`, and that the coordinator is at
    /// `revision`. The response that contained both did not contradict earlier ones. When its
    /// request was sent, the number of [doubts](Self::doubts) was `doubts`. If that number has
    /// grown since, this node still refuses all work.
    ///
    /// After a loss of data, a high revision alone does not show that the data is back. Other nodes
    /// may have written since, and an operator may have imported records before the fence. So this
    /// node accepts the same fleet again only if `meta` has the same revision as before the loss.
    /// An operator who imports records rewrites `meta` first.
    pub(crate) fn agree(&self, agreed: AgreedMeta, revision: Revision, doubts: u64) {
        let mut known = self.lock();
        let is_rewritten =
            known.agreed.fleet == agreed.fleet && known.agreed.revision != agreed.revision;
        if known.is_lost && is_rewritten {
            return;
        }
        known.is_lost = false;
        if known.agreed.fleet != agreed.fleet {
            known.term = Term::default();
        }
        // A fence gives the fleet a new name, usually after a restore of etcd. The restored etcd
        // may have lower revisions, so forget the highest one.
        known.highest = if known.agreed.fleet == agreed.fleet {
            known.highest.max(revision)
        } else {
            revision
        };
        known.agreed = agreed;
        known.is_withdrawn = known.doubts != doubts;
    }

    /// Records the key that this node rewrites regularly to detect lost data, or `None` before its
    /// first write. Another node writes the key only if it takes this node's slot.
    pub(crate) fn hold(&self, own_key: Option<OwnKey>) {
        let mut known = self.lock();
        (known.own_key, known.has_own_key) = (own_key, true);
    }

    /// `true` if this node has a slot, according to the last response.
    pub(super) fn has_slot(&self) -> bool {
        self.lock().own_key.as_ref().is_some_and(|own| own.is_slot)
    }

    /// Makes this node refuse all reads and writes of records, because the coordinator has lost
    /// acknowledged data. The refusal ends when the node accepts the fleet's agreement again.
    pub(crate) fn withdraw(&self) {
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
    LOST.into()
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

    #[test]
    fn another_cluster_or_an_earlier_term_is_a_loss_and_an_answer_on_its_way_is_not() {
        let of = |cluster, term| Term { cluster, term };
        for (asked, found, is_fine) in [
            (of(7, 3), of(7, 3), true),
            (of(7, 3), of(7, 4), true),
            (of(7, 3), of(7, 2), false),
            (of(7, 3), of(8, 9), false),
            // The request was sent in term 2. Before its response arrives, another response has
            // shown term 3.
            (of(7, 2), of(7, 2), true),
            (Term::default(), of(8, 9), false),
        ] {
            let known = KnownFleet::default();
            known
                .see_term(Term::default(), of(7, 3))
                .expect("it is the first");
            assert_eq!(known.see_term(asked, found).is_ok(), is_fine, "{found:?}");
            assert_eq!(known.meta().is_some(), is_fine);
        }
    }

    #[test]
    fn while_records_are_missing_nothing_is_read_or_written() {
        for (records, is_usable) in [
            (SharedRecords::Complete, true),
            (SharedRecords::Missing, false),
            (SharedRecords::Adopting, false),
        ] {
            let known = KnownFleet::default();
            let agreed = AgreedMeta {
                records,
                ..AgreedMeta::default()
            };
            known.agree(agreed, Revision(1), 0);
            assert_eq!(known.terms("meta".to_owned()).is_ok(), is_usable);
        }
    }
}
