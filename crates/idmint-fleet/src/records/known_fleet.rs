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
//! Responses may overtake each other. So each response is compared with the highest revision that
//! was known when its request was sent. After a restore, writes of other nodes may raise the
//! revision above that value again. So each write also compares the node's own key, which the node
//! rewrites every few seconds: the horizon of its slot, or a separate key while it has no slot. A
//! response from another cluster, or from an earlier election term, shows a restore too.

use std::sync::{Mutex, MutexGuard};

use crate::coordinator::{Compare, Key, KeyValue, Revision, Term};
#[cfg(test)]
use crate::nonce::Nonce;
use idmint_core::time::UnixNanos;
use idmint_storage::{FailureKind, Obstacle, StoreError};

/// An era of a fleet: the time from one fence (an operator's command after a restore) to the next.
/// Of two eras of one fleet, the later one compares as greater.
///
/// Eras compare by their count of fences first. A later era may have a lower floor, because a fence
/// lowers a floor that a clock far ahead has set. Earlier versions of this program did not count
/// fences. Their eras have the count 0, and compare by their floors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct FleetEra {
    /// The number of fences (operator's commands after a restore) so far. 0 if the last one was run
    /// by an earlier version of this program, which did not count fences.
    pub(crate) fences: u32,
    /// The fleet's floor: no node mints an id for a time before this instant.
    pub(crate) floor: UnixNanos,
    /// The fleet's first name, which no fence changes.
    pub(crate) origin: u128,
}

#[cfg(test)]
impl FleetEra {
    /// Returns the era of a fleet before its first fence.
    pub(crate) fn first(fleet: Nonce, floor: UnixNanos) -> FleetEra {
        FleetEra {
            fences: 0,
            floor,
            origin: fleet.bits(),
        }
    }
}

/// The fleet's agreement (the settings that all its nodes share under the store key `meta`), as
/// this node last read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AgreedMeta {
    /// The revision of the settings' key `meta`, or [`Revision::ABSENT`] if the key is missing.
    pub(crate) revision: Revision,
    /// The fleet's current name.
    pub(crate) fleet: u128,
    /// The fleet's current era, the time since the last fence.
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
    /// Nodes neither read nor write records, because the last fence (an operator's command after a
    /// restore) found that some are missing.
    Missing,
    /// Nodes neither read nor write records, because the fleet has not taken over all records of a
    /// single node yet.
    Adopting,
}

/// The key that this node rewrites every few seconds: the key of its slot's horizon (the end of the
/// reserved time), or a separate key while it has no slot (place in the fleet). If the stored key
/// is older than the last acknowledged write, the coordinator has lost data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnKey {
    /// The key.
    pub(crate) key: Key,
    /// The revision of the last acknowledged write.
    pub(crate) revision: Revision,
    /// The value last sent for `key`. For a slot's key, `None` once the write has a response.
    pub(crate) sent: Option<Vec<u8>>,
    /// `true` if the key is the horizon of a slot.
    pub(crate) is_slot: bool,
}

/// This node's knowledge of its fleet, shared by all parts of the node that use the coordinator.
///
/// Every write compares the revision of the agreement (`meta`) that this node accepts. So a write
/// fails if the fleet was fenced or the agreement has changed without this node having seen it yet.
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
    /// The etcd cluster that sent the responses so far, and its highest election term in them.
    term: Term,
    own_key: Option<OwnKey>,
    /// `true` if this node regularly rewrites a key of its own, by which it detects lost data.
    /// While that key is not written yet, `own_key` is `None`.
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

/// The conditions that a write must include.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terms {
    /// The comparisons that the write adds to its own.
    pub(super) compare: Vec<Compare>,
    /// The revision of `meta` that these comparisons require.
    pub(super) meta: Revision,
}

impl KnownFleet {
    /// Creates the `KnownFleet` of a node or command that has already accepted the fleet's settings
    /// `agreed`, but has seen no response of the coordinator.
    pub(crate) fn agreeing(agreed: AgreedMeta) -> KnownFleet {
        KnownFleet(Mutex::new(Known {
            agreed,
            ..Known::default()
        }))
    }

    /// Returns the store revision of the fleet's settings (`meta`) that this node accepted last.
    /// Returns `None` while this node refuses all work because the coordinator may have lost data.
    pub fn meta(&self) -> Option<Revision> {
        let known = self.lock();
        (!known.is_withdrawn).then_some(known.agreed.revision)
    }

    /// Returns the fleet's era as this node last read it. Each `fence-restore` command begins a new
    /// era.
    pub(super) fn era(&self) -> FleetEra {
        self.lock().agreed.era
    }

    /// Checks that records may be read now.
    ///
    /// # Errors
    /// Returns the [`Obstacle`] if this node currently refuses all work because the coordinator may
    /// have lost data, if records are missing, or during an adoption.
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
    /// fleet's agreement (`meta`), and the revision of this node's own key if it has one.
    ///
    /// # Errors
    /// Returns the errors of [`KnownFleet::check`], and another [`Obstacle`] before this node has
    /// written its own key.
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

    /// Returns the highest revision in any response of the coordinator so far. The response to a
    /// request that is sent now must have at least this revision.
    pub(crate) fn highest(&self) -> Revision {
        self.lock().highest
    }

    /// Returns the etcd cluster that sent the responses so far, and its highest election term in
    /// them.
    pub(crate) fn term(&self) -> Term {
        self.lock().term
    }

    /// Records the etcd cluster and the election term of a response (`found`). They are compared
    /// with `asked`, the last known [term](Self::term) when the request was sent.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the response comes from another cluster, or from an earlier
    /// election term.
    pub(super) fn see_term(&self, asked: Term, found: Term) -> Result<(), StoreError> {
        let mut known = self.lock();
        if !known.term.follows(asked) {
            // An operator ran `fence-restore` after this request was sent, and the node forgot
            // etcd's former election terms. So the response may be from etcd before its restore.
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
    /// revision when the request was sent.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the response is inconsistent with earlier ones, which means that
    /// the coordinator was restored from a backup. From then on this node refuses all work until
    /// the coordinator has been checked again.
    pub(super) fn see(&self, asked: Revision, found: Revision) -> Result<(), StoreError> {
        self.see_from(asked, asked, found)
    }

    /// Records the response to a write. `found` is the store revision that the write created. It
    /// must be higher than `asked`, the highest revision that this node knew when it sent the
    /// write.
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
            // After this request was sent, an operator ran `fence-restore`, and this node lowered
            // the highest revision it knows. The response may come from etcd before its restore, so
            // it is not used.
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

    /// Checks this node's own key after a refused write, which read the key at the revision `at`
    /// and returned `found`. Does nothing if this node has no own key.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the value is neither the acknowledged one nor the one that was
    /// sent since. In that case another node has the slot, or the coordinator was restored from a
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
        // The response is older than the last acknowledged write of the key that this node
        // regularly rewrites, so the response shows nothing about that write.
        if at < own.revision {
            return Ok(());
        }
        match found {
            Some(entry) if entry.key == own.key && entry.modified == own.revision => Ok(()),
            Some(entry) if entry.key == own.key && own.sent.as_ref() == Some(&entry.value) => {
                own.revision = entry.modified;
                Ok(())
            }
            // The refused write compared a key that this node no longer rewrites, for example
            // because the node now has a slot (place in the fleet) and rewrites the slot's key.
            Some(entry) if entry.key != own.key => Ok(()),
            Some(_) | None => {
                known.doubt();
                Err(lost())
            }
        }
    }

    /// Returns the number of the coordinator's responses that contradicted its earlier responses.
    /// After each of them, the thread that renews this node's slot checks whether the coordinator
    /// has lost data.
    pub(crate) fn doubts(&self) -> u64 {
        self.lock().doubts
    }

    /// Records that this node agrees with the agreement `agreed`, and that the coordinator is at
    /// `revision`. The response that proved this was consistent with everything known before. When
    /// its request was sent, the number of [doubts](Self::doubts) was `doubts`. If that number has
    /// grown since, this node still refuses all work.
    ///
    /// After a loss of data, a high enough revision alone does not show that the lost data is back.
    /// Other nodes may have written since, and an operator may have imported records before the
    /// fence. So this node agrees with the same fleet again only if `meta` has the same revision as
    /// before the loss. An operator who imports records rewrites `meta` first.
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
        // After a restore of etcd from a backup, `fence-restore` gives the fleet a new name. The
        // restored etcd may have lower revisions, so forget the highest one seen before.
        known.highest = if known.agreed.fleet == agreed.fleet {
            known.highest.max(revision)
        } else {
            revision
        };
        known.agreed = agreed;
        known.is_withdrawn = known.doubts != doubts;
    }

    /// Records the key that this node rewrites regularly, and by which it detects lost data. `None`
    /// before its first write. No other node writes the key unless it takes this node's slot.
    pub(crate) fn hold(&self, own_key: Option<OwnKey>) {
        let mut known = self.lock();
        (known.own_key, known.has_own_key) = (own_key, true);
    }

    /// `true` if this node has a slot, as far as it knows.
    pub(super) fn has_slot(&self) -> bool {
        self.lock().own_key.as_ref().is_some_and(|own| own.is_slot)
    }

    /// Makes this node refuse all reads and writes of records, because the coordinator has lost
    /// acknowledged data. The refusal ends when the node accepts the fleet's settings again.
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
            // The request was sent in term 2, before the election for term 3. Another response has
            // shown term 3 before this one arrives.
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
